import { timelineArguments } from '../graph/change-types.js';
import { addConnectionType, pageArguments, pageComplexity, readConnection } from '../graph/connection.js';
import type { Context } from '../graph/context.js';
import { addEnum } from '../graph/enum.js';
import { operationError } from '../graph/errors.js';
import { addEnumFilter, addFilter, parseFilter } from '../graph/filter-input.js';
import { grantOf, type Graph } from '../graph/graph.js';
import { beside, toTimeline } from '../graph/reading/fields.js';
import type { AgentCommands } from './commands.js';
import { agentFilterSchema, type AgentFilter, type AgentFilterField } from './filter.js';
import type { AgentCost, AgentHealth } from './model.js';
import { agentsWanted } from './reads.js';
import { addAgentMutations } from './schema-mutations.js';
import { addAgentStreams } from './schema-streams.js';

/** Agents in the graph: the object, its look-up and lists. Beside it: `schema-mutations.ts`, `schema-streams.ts`. */
export function addAgentSchema(graph: Graph, commands: AgentCommands): void {
  const enums = addEnums(graph);
  addFields(graph, enums);
  addQueries(graph, enums);
  addAgentStreams(graph, enums);
  addAgentMutations(graph, enums, commands);
}

type AgentEnums = ReturnType<typeof addEnums>;

function addEnums({ builder, shared: { filters } }: Graph) {
  const health = addEnum<AgentHealth>(
    builder,
    'AgentHealth',
    'How an agent is doing, judged by this server alone.',
    {
      READY: 'It beats, and takes work as it comes.',
      CONGESTED: 'It beats, and has more work waiting than its threshold; it gets no new work.',
      UNAVAILABLE: 'It has not beaten in time. A heartbeat brings it back at once.',
    },
  );
  const cost = addEnum<AgentCost>(
    builder,
    'AgentCost',
    'How dear it is to have an agent do work, as its operator says.',
    {
      LOW: 'Lowest.',
      MEDIUM_LOW: 'Below the middle.',
      MEDIUM: 'In the middle.',
      MEDIUM_HIGH: 'Above the middle.',
      HIGH: 'Highest.',
    },
  );
  const filter = addFilter<AgentFilterField>(
    builder,
    filters,
    'Agent',
    {
      name: { type: filters.text, description: 'The name.' },
      topic: { type: filters.text, description: 'The topic.' },
      environment: { type: filters.text, description: 'The environment.' },
      cost: { type: addEnumFilter(builder, 'AgentCost', cost), description: 'The cost.' },
      health: { type: addEnumFilter(builder, 'AgentHealth', health), description: 'The health.' },
    },
    true,
  );
  return { health, cost, filter };
}

function addFields(graph: Graph, enums: AgentEnums): void {
  const { builder, types, changes } = graph;
  builder.objectFields(types.Agent, (t) => ({
    id: t.exposeID('id', {
      description:
        'A TypeID such as `agt_01h455vb4pex5vsknk084sn02q`. The same whenever an agent of this name registers.',
    }),
    name: t.exposeString('name', { description: 'The name, unique among agents.' }),
    topic: t.exposeString('topic', { description: 'Where its commands go, unique among agents.' }),
    environment: t.exposeString('environment', {
      nullable: true,
      description: 'The environment that it is in; null if it named none.',
    }),
    serviceTypes: t.exposeStringList('serviceTypes', {
      description: 'The service types that it can carry out.',
    }),
    cost: t.expose('cost', { type: enums.cost, description: 'How dear it is.' }),
    labels: t.expose('labels', {
      type: 'Labels',
      description: 'Labels, for filters. Empty if there are none.',
    }),
    health: t.expose('health', { type: enums.health, description: 'How it is doing.' }),
    cordoned: t.exposeBoolean('cordoned', { description: 'Whether an operator keeps new work from it.' }),
    congestionThreshold: t.exposeInt('congestionThreshold', {
      description: 'At how many waiting commands it is CONGESTED.',
    }),
    softwareVersion: t.exposeString('softwareVersion', {
      nullable: true,
      description: 'What it runs, as it says; null if it did not say.',
    }),
    protocolVersion: t.exposeInt('protocolVersion', {
      description: 'The version of the protocol that it speaks.',
    }),
    version: t.exposeInt('version', {
      description: 'Counts every change, from 1. Heartbeats that change no health count as none.',
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it first registered.' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'When it last changed.' }),
    lastHeartbeatAt: t.field({
      type: 'DateTime',
      nullable: true,
      description:
        'When its last heartbeat came, by the clock of the database; in an event, as of that moment. Null if it is gone.',
      ...beside<Date>(graph, 'lastHeartbeatAt'),
    }),
    consumerLag: t.int({
      nullable: true,
      description:
        'How many commands waited at it with its last heartbeat; in an event, as of that moment. Null if it is gone.',
      ...beside<number>(graph, 'consumerLag'),
    }),
    changes: t.field({
      type: changes.page,
      description: 'What happened to it, newest first.',
      complexity: pageComplexity,
      args: timelineArguments(t.arg),
      ...toTimeline(graph),
    }),
  }));
}

function addQueries(graph: Graph, enums: AgentEnums): void {
  const { builder, types, shared, reader } = graph;
  const connection = addConnectionType(builder, 'Agent', types.Agent);
  builder.queryFields((t) => ({
    agent: t.field({
      type: types.Agent,
      nullable: true,
      description: 'One agent, by id or by name; null if there is none that the caller may see.',
      args: {
        id: t.arg.id({ description: 'The id of the agent. Null: look it up by name.' }),
        name: t.arg.string({ description: 'The name of the agent. Null: look it up by id.' }),
      },
      resolve: (_root, { id, name }, context, info) => {
        if (typeof id === 'string' && typeof name !== 'string') {
          return reader.byId('AGENT', id, context, info);
        }
        if (typeof id === 'string' || typeof name !== 'string') {
          throw operationError('BAD_USER_INPUT', 'Give either `id` or `name`.');
        }
        return reader.first(wantedOf(context, { name: { equals: name } }), context, info);
      },
    }),
    agents: t.field({
      type: connection,
      description: 'The agents.',
      complexity: pageComplexity,
      args: {
        ...pageArguments(t.arg),
        filter: t.arg({ type: enums.filter, description: 'Which ones. Null: all.' }),
        orderBy: t.arg({ type: shared.order, description: 'In which order. Null: oldest first.' }),
      },
      resolve: (_root, args, context, info) =>
        readConnection(graph, wantedOf(context, args.filter), args, context, info),
    }),
  }));
}

function wantedOf(context: Context, filter: AgentFilter | null | undefined) {
  return agentsWanted(parseFilter(agentFilterSchema, filter), grantOf(context, 'agent:read'));
}
