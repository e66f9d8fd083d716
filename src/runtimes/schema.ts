import { timelineArguments } from '../graph/change-types.js';
import {
  addConnectionType,
  PAGE_SIZE_DEFAULT,
  pageArguments,
  pageComplexity,
  readConnection,
} from '../graph/connection.js';
import type { Context } from '../graph/context.js';
import { addFilter, parseFilter } from '../graph/filter-input.js';
import { grantOf, type Graph } from '../graph/graph.js';
import { lookUpArguments, lookUpOf } from '../graph/look-up.js';
import { storedConditionsSchema } from '../kernel/conditions.js';
import type { RuntimeCommands } from './commands.js';
import { runtimeFilterSchema, type RuntimeFilter, type RuntimeFilterField } from './filter.js';
import { runtimeWhere } from './reads.js';
import { addRuntimeMutations } from './schema-mutations.js';

/** Runtimes in the graph: the object, its look-up and lists. Mutations: `schema-mutations.ts`. */
export function addRuntimeSchema(graph: Graph, commands: RuntimeCommands): void {
  addFields(graph);
  addQueries(graph);
  addRuntimeMutations(graph, commands);
}

function addFields(graph: Graph): void {
  const { builder, types, shared, changes, feed } = graph;
  const status = builder.objectRef<Graph['types']['Runtime']['$inferType']>('RuntimeStatus').implement({
    description: 'What was observed of a runtime.',
    fields: (t) => ({
      conditions: t.field({
        type: [shared.condition],
        description: 'Its conditions, one of each type, in the order in which they first appeared.',
        resolve: (row) => storedConditionsSchema.parse(row.conditions),
      }),
      observedGeneration: t.exposeInt('observedGeneration', {
        description: 'The generation that was observed; 0 before the first report.',
      }),
    }),
  });
  builder.objectFields(types.Runtime, (t) => ({
    id: t.exposeID('id', { description: 'A TypeID such as `rt_01h455vb4pex5vsknk084sn02q`.' }),
    namespace: t.exposeString('namespace', { description: 'The namespace. Never changes.' }),
    name: t.exposeString('name', {
      description: 'The name, unique in the namespace among those not deleted. Never changes.',
    }),
    type: t.exposeString('type', {
      description: 'What drives it: `external` is driven by clients of this API. Never changes.',
    }),
    environment: t.exposeString('environment', {
      nullable: true,
      description: 'The environment that it belongs to; null if none was named.',
    }),
    config: t.expose('config', {
      type: 'JSONObject',
      description: 'Its configuration, whose meaning its type defines. Holds no secrets.',
    }),
    labels: t.expose('labels', {
      type: 'Labels',
      description: 'Labels, for filters. Empty if there are none.',
    }),
    generation: t.exposeInt('generation', { description: 'Counts changes of what is wanted of it, from 1.' }),
    version: t.exposeInt('version', {
      description: 'Counts every change, from 1: what to expect when patching.',
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was created.' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'When it last changed.' }),
    deletionRequestedAt: t.expose('deletionRequestedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When somebody asked to delete it; null if nobody did. It goes with its last deployment.',
    }),
    status: t.field({ type: status, description: 'What was observed.', resolve: (row) => row }),
    changes: t.field({
      type: changes.page,
      description: 'What happened to it, newest first.',
      complexity: pageComplexity,
      args: timelineArguments(t.arg),
      resolve: ({ id, namespace }, args) =>
        feed.timeline({
          objectId: id,
          namespaces: new Set([namespace]),
          beforeVersion: args.beforeVersion ?? null,
          limit: args.first ?? PAGE_SIZE_DEFAULT,
        }),
    }),
  }));
}

function addQueries(graph: Graph): void {
  const { builder, types, shared, reads } = graph;
  const connection = addConnectionType(builder, 'Runtime', types.Runtime);
  const { text } = shared.filters;
  const filter = addFilter<RuntimeFilterField>(
    builder,
    shared.filters,
    'Runtime',
    {
      namespace: { type: text, description: 'The namespace.' },
      name: { type: text, description: 'The name.' },
      type: { type: text, description: 'The type.' },
      environment: { type: text, description: 'The environment.' },
    },
    true,
  );
  builder.queryFields((t) => ({
    runtime: t.field({
      type: types.Runtime,
      nullable: true,
      description:
        'One runtime, by id or by namespace and name; null if there is none that the caller may see.',
      args: lookUpArguments(t.arg, 'runtime'),
      resolve: (_root, args, context) => {
        const target = lookUpOf(args);
        if ('id' in target) return context.load.byId('RUNTIME', target.id);
        const named = { namespace: { equals: target.namespace }, name: { equals: target.name } };
        return reads.first('runtime', whereOf(context, named, false));
      },
    }),
    runtimes: t.field({
      type: connection,
      description: 'The runtimes that the caller may see.',
      complexity: pageComplexity,
      args: {
        ...pageArguments(t.arg),
        filter: t.arg({ type: filter, description: 'Which ones. Null: all.' }),
        orderBy: t.arg({ type: shared.order, description: 'In which order. Null: oldest first.' }),
        includeDeleted: t.arg.boolean({ description: 'Whether deleted ones are listed too. Null: false.' }),
      },
      resolve: (_root, args, context, info) =>
        readConnection(
          graph,
          'runtime',
          whereOf(context, args.filter, args.includeDeleted ?? false),
          args,
          info,
        ),
    }),
  }));
}

function whereOf(context: Context, filter: RuntimeFilter | null | undefined, includeDeleted: boolean) {
  return runtimeWhere(
    parseFilter(runtimeFilterSchema, filter),
    grantOf(context, 'runtime:read'),
    includeDeleted,
  );
}
