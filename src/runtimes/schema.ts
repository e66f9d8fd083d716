import { timelineArguments } from '../graph/change-types.js';
import { addConnectionType, pageArguments, pageComplexity, readConnection } from '../graph/connection.js';
import type { Context } from '../graph/context.js';
import { addFilter, parseFilter } from '../graph/filter-input.js';
import { grantOf, type Graph } from '../graph/graph.js';
import { lookUpArguments, lookUpOf } from '../graph/look-up.js';
import { reads, sameRow } from '../graph/reading/declare.js';
import { toTimeline } from '../graph/reading/fields.js';
import { storedConditionsSchema } from '../kernel/conditions.js';
import type { RuntimeCommands } from './commands.js';
import { runtimeFilterSchema, type RuntimeFilter, type RuntimeFilterField } from './filter.js';
import { runtimesWanted } from './reads.js';
import { addRuntimeMutations } from './schema-mutations.js';

/** Runtimes in the graph: the object, its look-up and lists. Mutations: `schema-mutations.ts`. */
export function addRuntimeSchema(graph: Graph, commands: RuntimeCommands): void {
  addFields(graph);
  addQueries(graph);
  addRuntimeMutations(graph, commands);
}

type Row = Graph['types']['Runtime']['$inferType'];

function addFields(graph: Graph): void {
  const { builder, types, shared, changes } = graph;
  const status = builder.objectRef<Row>('RuntimeStatus').implement({
    description: 'What was observed of a runtime.',
    fields: (t) => ({
      conditions: t.field({
        type: [shared.condition],
        description: 'Its conditions, one of each type, in the order in which they first appeared.',
        ...reads<Row>('conditions'),
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
    status: t.field({ type: status, description: 'What was observed.', ...sameRow<Row>() }),
    changes: t.field({
      type: changes.page,
      description: 'What happened to it, newest first.',
      complexity: pageComplexity,
      args: timelineArguments(t.arg),
      ...toTimeline(graph),
    }),
  }));
}

function addQueries(graph: Graph): void {
  const { builder, types, shared, reader } = graph;
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
      resolve: (_root, args, context, info) => {
        const target = lookUpOf(args);
        if ('id' in target) return reader.byId('RUNTIME', target.id, context, info);
        const named = { namespace: { equals: target.namespace }, name: { equals: target.name } };
        return reader.first(wantedOf(context, named, false), context, info);
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
          wantedOf(context, args.filter, args.includeDeleted ?? false),
          args,
          context,
          info,
        ),
    }),
  }));
}

function wantedOf(context: Context, filter: RuntimeFilter | null | undefined, includeDeleted: boolean) {
  return runtimesWanted(
    parseFilter(runtimeFilterSchema, filter),
    grantOf(context, 'runtime:read'),
    includeDeleted,
  );
}
