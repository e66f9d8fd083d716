import { timelineArguments } from '../graph/change-types.js';
import { addConnectionType, pageArguments, pageComplexity, readConnection } from '../graph/connection.js';
import type { Context } from '../graph/context.js';
import { addEnum } from '../graph/enum.js';
import { addEnumFilter, addFilter, parseFilter } from '../graph/filter-input.js';
import { grantOf, type Graph } from '../graph/graph.js';
import { watchArguments, watchStreams, type StreamedKind } from '../graph/object-streams.js';
import { reads } from '../graph/reading/declare.js';
import { toOne, toPage, toTimeline } from '../graph/reading/fields.js';
import { storedJson } from '../graph/stored-json.js';
import { streaming } from '../graph/stream-field.js';
import { addWatchUnion, SNAPSHOT_READ_ROWS } from '../graph/stream-types.js';
import { rolloutFilterSchema, type RolloutFilter, type RolloutFilterField } from './filter.js';
import {
  ROLLOUT_OPERATIONS,
  ROLLOUT_OUTCOMES,
  ROLLOUT_PHASES,
  type RolloutError,
  type RolloutOperation,
  type RolloutOutcome,
  type RolloutPhase,
} from './model.js';
import { rolloutSnapshot, rolloutsWanted } from './reads.js';

/** Rollouts in the graph: the object, its look-up, lists and watch. What begins, drives and ends them is the deployments'. */
export function addRolloutSchema(graph: Graph): RolloutEnums {
  const enums = addEnums(graph);
  addFields(graph, enums);
  addQueries(graph, enums);
  addWatch(graph, enums);
  return enums;
}

export type RolloutEnums = ReturnType<typeof addEnums>;

function addEnums({ builder, shared: { filters } }: Graph) {
  const operation = addEnum<RolloutOperation>(
    builder,
    'RolloutOperation',
    'What a rollout is to do.',
    ROLLOUT_OPERATIONS,
  );
  const phase = addEnum<RolloutPhase>(
    builder,
    'RolloutPhase',
    'How far a rollout is, for people: any may follow any until it is active.',
    ROLLOUT_PHASES,
  );
  const meanings = Object.fromEntries(
    Object.entries(ROLLOUT_OUTCOMES).map(([name, rule]) => [name, rule.meaning]),
  );
  const outcome = addEnum<RolloutOutcome>(
    builder,
    'RolloutOutcome',
    'How a rollout ended.',
    meanings as Record<RolloutOutcome, string>, // the keys of the table
  );
  const filter = addFilter<RolloutFilterField>(
    builder,
    filters,
    'Rollout',
    {
      namespace: { type: filters.text, description: 'The namespace.' },
      deploymentId: { type: filters.id, description: 'The deployment.' },
      operation: {
        type: addEnumFilter(builder, 'RolloutOperation', operation),
        description: 'The operation.',
      },
      phase: { type: addEnumFilter(builder, 'RolloutPhase', phase), description: 'The phase.' },
      outcome: { type: addEnumFilter(builder, 'RolloutOutcome', outcome), description: 'The outcome.' },
      toReleaseId: { type: filters.id, description: 'The release that it moves to.' },
    },
    false,
  );
  return { operation, phase, outcome, filter };
}

type Row = Graph['types']['Rollout']['$inferType'];

function addFields(graph: Graph, enums: RolloutEnums): void {
  const { builder, types, changes } = graph;
  const error = builder.objectRef<RolloutError>('RolloutError').implement({
    description: 'Why a rollout failed.',
    fields: (t) => ({
      code: t.exposeString('code', { description: 'For machines: `ProgressDeadlineExceeded`.' }),
      message: t.exposeString('message', { description: 'For people; at most 4 KiB.' }),
    }),
  });
  builder.objectFields(types.Rollout, (t) => ({
    id: t.exposeID('id', { description: 'A TypeID such as `ro_01h455vb4pex5vsknk084sn02q`.' }),
    namespace: t.exposeString('namespace', { description: 'The namespace of its deployment.' }),
    deployment: t.field({
      type: types.Deployment,
      nullable: true,
      description: 'What it changes; null if the caller may not see it.',
      ...toOne(graph, 'DEPLOYMENT', 'deploymentId'),
    }),
    operation: t.expose('operation', { type: enums.operation, description: 'What it is to do.' }),
    phase: t.expose('phase', { type: enums.phase, description: 'How far it is, or was when it ended.' }),
    activatedAt: t.expose('activatedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the deployment began to move to what it wants; null before.',
    }),
    cancelRequestedAt: t.expose('cancelRequestedAt', {
      type: 'DateTime',
      nullable: true,
      description:
        'When somebody called it off; null if nobody did. Once active it ends when the deployment is back.',
    }),
    outcome: t.expose('outcome', {
      type: enums.outcome,
      nullable: true,
      description: 'How it ended; null while it is under way. Never changes.',
    }),
    fromRelease: t.field({
      type: types.Release,
      nullable: true,
      description: 'What was serving when it began; null if nothing was.',
      ...toOne(graph, 'RELEASE', 'fromReleaseId'),
    }),
    toRelease: t.field({
      type: types.Release,
      nullable: true,
      description: 'What it moves to; null while that is being built, and for taking down.',
      ...toOne(graph, 'RELEASE', 'toReleaseId'),
    }),
    source: t.expose('source', {
      type: 'JSONObject',
      nullable: true,
      description: 'Where it was built from, as whoever began it says; null if nothing was said.',
    }),
    logUrl: t.exposeString('logUrl', {
      nullable: true,
      description: 'Where its build can be followed; null if nothing was said.',
    }),
    parentRollout: t.field({
      type: types.Rollout,
      nullable: true,
      description: 'Which one it tries again; null if it is no retry.',
      ...toOne(graph, 'ROLLOUT', 'parentRolloutId'),
    }),
    startedBy: t.exposeString('startedBy', { description: 'Who began it: an actor as in `Change.actor`.' }),
    startedAt: t.expose('createdAt', { type: 'DateTime', description: 'When it began.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it began.' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'When it last changed.' }),
    finishedAt: t.expose('finishedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it ended; null while it is under way.',
    }),
    message: t.exposeString('message', {
      nullable: true,
      description: 'What was said when it began or was called off, for people; null if nothing was.',
    }),
    error: t.field({
      type: error,
      nullable: true,
      description: 'Why it failed; null unless it did.',
      ...reads<Row>('error'),
      resolve: (row) => storedJson<RolloutError | null>(row.error),
    }),
    version: t.exposeInt('version', { description: 'Counts every change, from 1.' }),
    changes: t.field({
      type: changes.page,
      description: 'What happened to it, newest first.',
      complexity: pageComplexity,
      args: timelineArguments(t.arg),
      ...toTimeline(graph),
    }),
  }));
}

function addQueries(graph: Graph, enums: RolloutEnums): void {
  const { builder, types, shared, reader } = graph;
  const connection = addConnectionType(builder, 'Rollout', types.Rollout);
  builder.objectField(types.Deployment, 'rollouts', (t) =>
    t.field({
      type: connection,
      description: 'Its rollouts.',
      complexity: pageComplexity,
      args: {
        ...pageArguments(t.arg),
        filter: t.arg({ type: enums.filter, description: 'Which ones. Null: all.' }),
        orderBy: t.arg({ type: shared.creationOrder, description: 'In which order. Null: oldest first.' }),
      },
      ...toPage(
        graph,
        'deploymentId',
        (args, context) => wantedOf(context, (args as { filter?: RolloutFilter | null }).filter), // as declared above
      ),
    }),
  );
  builder.queryFields((t) => ({
    rollout: t.field({
      type: types.Rollout,
      nullable: true,
      description: 'One rollout; null if there is none that the caller may see.',
      args: { id: t.arg.id({ required: true, description: 'The id of the rollout.' }) },
      resolve: (_root, { id }, context, info) => reader.byId('ROLLOUT', id, context, info),
    }),
    rollouts: t.field({
      type: connection,
      description: 'The rollouts that the caller may see.',
      complexity: pageComplexity,
      args: {
        ...pageArguments(t.arg),
        filter: t.arg({ type: enums.filter, description: 'Which ones. Null: all.' }),
        orderBy: t.arg({ type: shared.creationOrder, description: 'In which order. Null: oldest first.' }),
      },
      resolve: (_root, args, context, info) =>
        readConnection(graph, wantedOf(context, args.filter), args, context, info),
    }),
  }));
}

function wantedOf(context: Context, filter: RolloutFilter | null | undefined) {
  return rolloutsWanted(parseFilter(rolloutFilterSchema, filter), grantOf(context, 'rollout:read'));
}

const ROLLOUTS: StreamedKind<RolloutFilterField, 'rollout:read'> = {
  kind: 'ROLLOUT',
  name: 'Rollout',
  action: 'rollout:read',
  filterSchema: rolloutFilterSchema,
  snapshot(predicate, grant) {
    const read = rolloutSnapshot(predicate, grant);
    return (tx) => read(tx, SNAPSHOT_READ_ROWS);
  },
};

function addWatch(graph: Graph, enums: RolloutEnums): void {
  const { builder, types, streams } = graph;
  builder.subscriptionField('watchRollouts', (t) =>
    t.field({
      type: addWatchUnion(builder, streams, 'Rollout', types.Rollout),
      description:
        'The rollouts of a filter, kept current: without `after` a snapshot first, then what changes. Several changes of one rollout may come as one.',
      args: watchArguments(t.arg, enums.filter, streams.onExpired, 'rollouts'),
      ...streaming(watchStreams(graph, ROLLOUTS)),
    }),
  );
}
