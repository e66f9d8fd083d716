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
import { deploymentFilterSchema, type DeploymentFilter, type DeploymentFilterField } from './filter.js';
import type { DeploymentPhase } from './lifecycle.js';
import { deploymentSnapshot } from './reads.js';

/** Streams of deployments: every move between phases, and the objects of a filter kept current. */
const DEPLOYMENTS: StreamedKind<DeploymentFilterField, 'deployment:read'> = {
  kind: 'DEPLOYMENT',
  name: 'Deployment',
  action: 'deployment:read',
  filterSchema: deploymentFilterSchema,
  snapshot(predicate, grant) {
    const read = deploymentSnapshot(predicate, grant);
    return (tx) => read(tx, SNAPSHOT_READ_ROWS);
  },
};

interface Enums {
  readonly phase: EnumRef<Types, DeploymentPhase>;
  readonly filter: InputRef<DeploymentFilter>;
}

export function addDeploymentStreams(graph: Graph, { phase, filter }: Enums): void {
  const { builder, types, streams } = graph;
  const transition = transitionType(graph, phase);
  builder.subscriptionFields((t) => ({
    deploymentPhaseChanged: t.field({
      type: transition,
      description:
        'Every move of a deployment from one phase to another, in order and without a gap. A client that is too slow is ended with SLOW_CONSUMER and resumes from its last cursor.',
      args: transitionArguments(t.arg, filter, 'deployments'),
      ...streaming(transitionStreams(graph, DEPLOYMENTS)),
    }),
    watchDeployments: t.field({
      type: addWatchUnion(builder, streams, 'Deployment', types.Deployment),
      description:
        'The deployments of a filter, kept current: without `after` a snapshot first, then what changes. Several changes of one deployment may come as one.',
      args: watchArguments(t.arg, filter, streams.onExpired, 'deployments'),
      ...streaming(watchStreams(graph, DEPLOYMENTS)),
    }),
  }));
}

function transitionType({ builder, types, streams }: Graph, phase: Enums['phase']) {
  return builder.objectRef<TransitionEvent>('DeploymentPhaseChange').implement({
    description: 'A deployment moved from one phase to another.',
    interfaces: [streams.event],
    fields: (t) => ({
      deployment: t.field({
        type: types.Deployment,
        description: 'The deployment as it was right after the move.',
        resolve: ({ change }) => storedJson<Graph['types']['Deployment']['$inferType']>(change.after),
      }),
      from: t.field({
        type: phase,
        nullable: true,
        description: 'The phase before; null when it was created.',
        resolve: ({ change }) => change.from as DeploymentPhase | null, // deployments' changes log phases
      }),
      to: t.field({
        type: phase,
        description: 'The phase afterwards.',
        resolve: ({ change }) => (change.to ?? 'DELETED') as DeploymentPhase, // null where the row was removed by hand
      }),
      version: t.int({
        description: 'The version that the move made.',
        resolve: ({ change }) => change.version,
      }),
      reason: t.string({
        nullable: true,
        description: 'Why, for machines; null if nothing was said.',
        resolve: ({ change }) => change.reason,
      }),
      message: t.string({
        nullable: true,
        description: 'Why, for people; null if nothing was said.',
        resolve: ({ change }) => change.message,
      }),
      actor: t.string({
        description: 'Who moved it, as in the change log.',
        resolve: ({ change }) => change.actor,
      }),
    }),
  });
}
