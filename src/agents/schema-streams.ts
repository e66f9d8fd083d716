import type { EnumRef, InputRef } from '@pothos/core';

import type { Graph } from '../graph/graph.js';
import type { Types } from '../graph/graph-types.js';
import {
  transitionArguments,
  transitionStreams,
  watchArguments,
  watchStreams,
  type StreamedKind,
} from '../graph/object-streams.js';
import { storedJson } from '../graph/stored-json.js';
import { streaming } from '../graph/stream-field.js';
import { addWatchUnion, SNAPSHOT_READ_ROWS, type TransitionEvent } from '../graph/stream-types.js';
import { agentFilterSchema, type AgentFilter, type AgentFilterField } from './filter.js';
import type { AgentHealth } from './model.js';
import { agentSnapshot } from './reads.js';

/** Streams of agents: every move of their health, and the objects of a filter kept current. */
const AGENTS: StreamedKind<AgentFilterField, 'agent:read'> = {
  kind: 'AGENT',
  name: 'Agent',
  action: 'agent:read',
  filterSchema: agentFilterSchema,
  snapshot(predicate, grant) {
    const read = agentSnapshot(predicate, grant);
    return (tx) => read(tx, SNAPSHOT_READ_ROWS);
  },
};

interface Enums {
  readonly health: EnumRef<Types, AgentHealth>;
  readonly filter: InputRef<AgentFilter>;
}

export function addAgentStreams(graph: Graph, { health, filter }: Enums): void {
  const { builder, types, streams } = graph;
  const transition = transitionType(graph, health);
  builder.subscriptionFields((t) => ({
    agentHealthChanged: t.field({
      type: transition,
      description:
        'Every move of an agent from one health to another, in order and without a gap. A client that is too slow is ended with SLOW_CONSUMER and resumes from its last cursor.',
      args: transitionArguments(t.arg, filter, 'agents'),
      ...streaming(transitionStreams(graph, AGENTS)),
    }),
    watchAgents: t.field({
      type: addWatchUnion(builder, streams, 'Agent', types.Agent),
      description:
        'The agents of a filter, kept current: without `after` a snapshot first, then what changes. Several changes of one agent may come as one; heartbeats that change nothing else are no changes.',
      args: watchArguments(t.arg, filter, streams.onExpired, 'agents'),
      ...streaming(watchStreams(graph, AGENTS)),
    }),
  }));
}

function transitionType({ builder, types, streams }: Graph, health: Enums['health']) {
  return builder.objectRef<TransitionEvent>('AgentHealthChange').implement({
    description: 'An agent’s health changed.',
    interfaces: [streams.event],
    fields: (t) => ({
      agent: t.field({
        type: types.Agent,
        description: 'The agent as it was right after the change.',
        resolve: ({ change }) => storedJson<Graph['types']['Agent']['$inferType']>(change.after),
      }),
      from: t.field({
        type: health,
        nullable: true,
        description: 'The health before; null when it first registered.',
        resolve: ({ change }) => change.from as AgentHealth | null, // agents' changes log healths
      }),
      to: t.field({
        type: health,
        description: 'The health afterwards.',
        resolve: ({ change }) => (change.to ?? 'UNAVAILABLE') as AgentHealth, // null where the row was removed by hand
      }),
      version: t.int({
        description: 'The version that the change made.',
        resolve: ({ change }) => change.version,
      }),
      reason: t.string({
        nullable: true,
        description: 'Why, for machines: `HeartbeatTimeout`; null if nothing was said.',
        resolve: ({ change }) => change.reason,
      }),
      consumerLag: t.int({
        nullable: true,
        description: 'How many commands waited at it at that moment; null if that is not known.',
        resolve: ({ change }) => (change.kind === 'AGENT' ? change.after.consumerLag : null),
      }),
    }),
  });
}
