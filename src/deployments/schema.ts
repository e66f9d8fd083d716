import type { ArgBuilder, EnumRef } from '@pothos/core';

import { timelineArguments } from '../graph/change-types.js';
import { addConnectionType, pageArguments, pageComplexity, readConnection } from '../graph/connection.js';
import type { Context } from '../graph/context.js';
import { addEnum } from '../graph/enum.js';
import { addEnumFilter, addFilter, parseFilter } from '../graph/filter-input.js';
import { grantOf, type Graph } from '../graph/graph.js';
import type { Types } from '../graph/graph-types.js';
import { lookUpArguments, lookUpOf } from '../graph/look-up.js';
import { reads, sameRow } from '../graph/reading/declare.js';
import { toOne, toPage, toTimeline } from '../graph/reading/fields.js';
import { storedJson } from '../graph/stored-json.js';
import { storedConditionsSchema } from '../kernel/conditions.js';
import type { RolloutPhase } from '../rollouts/index.js';
import type { DeploymentCommands } from './commands.js';
import { deploymentFilterSchema, type DeploymentFilter, type DeploymentFilterField } from './filter.js';
import { LIFECYCLE, type DeploymentPhase } from './lifecycle.js';
import {
  summarise,
  type DeploymentError,
  type DeploymentOrigin,
  type DesiredState,
  type EnvironmentInfo,
  type EnvVariable,
  type ObservedRuntime,
} from './model.js';
import { deploymentsWanted } from './reads.js';
import { addDeploymentMutations } from './schema-mutations.js';
import { addDeploymentStanding } from './schema-standing.js';
import { addDeploymentStreams } from './schema-streams.js';

/** Deployments in the graph: the object, its look-up and lists, its streams. What may be done: `schema-standing.ts`; mutations: `schema-mutations.ts`. */
export function addDeploymentSchema(
  graph: Graph,
  commands: DeploymentCommands,
  rolloutPhase: EnumRef<Types, RolloutPhase>,
): void {
  const enums = { ...addEnums(graph), rolloutPhase };
  addFields(graph, enums);
  addDeploymentStanding(graph);
  addQueries(graph, enums);
  addDeploymentStreams(graph, enums);
  addDeploymentMutations(graph, enums, commands);
}

export type DeploymentEnums = ReturnType<typeof addEnums>;

function addEnums({ builder, shared: { filters } }: Graph) {
  const meanings = Object.fromEntries(
    Object.entries(LIFECYCLE).map(([phase, rule]) => [phase, rule.meaning]),
  );
  const phase = addEnum(
    builder,
    'DeploymentPhase',
    'Where a deployment is in its lifecycle.',
    meanings as Record<DeploymentPhase, string>, // the keys of the table
  );
  const desiredState = addEnum<DesiredState>(builder, 'DesiredState', 'Whether a deployment is to run.', {
    DEPLOYED: 'It is to run.',
    UNDEPLOYED: 'It is not to run; the deployment stays, to be deployed again.',
  });
  const origin = addEnum<DeploymentOrigin>(
    builder,
    'DeploymentOrigin',
    'How a deployment came to be known.',
    {
      MANAGED: 'It was applied by a client of this server.',
      DISCOVERED: 'It was found on its runtime; nobody here manages it.',
    },
  );
  const filter = addFilter<DeploymentFilterField>(
    builder,
    filters,
    'Deployment',
    {
      namespace: { type: filters.text, description: 'The namespace.' },
      name: { type: filters.text, description: 'The name.' },
      app: { type: filters.text, description: 'The app.' },
      phase: { type: addEnumFilter(builder, 'DeploymentPhase', phase), description: 'The phase.' },
      desiredState: {
        type: addEnumFilter(builder, 'DesiredState', desiredState),
        description: 'The desired state.',
      },
      origin: { type: addEnumFilter(builder, 'DeploymentOrigin', origin), description: 'The origin.' },
      runtimeId: { type: filters.id, description: 'The runtime.' },
    },
    true,
  );
  return { phase, desiredState, origin, filter };
}

function addFields(graph: Graph, enums: DeploymentEnums): void {
  const { builder, types, changes } = graph;
  const spec = specType(graph, enums);
  const status = statusType(graph, enums);
  builder.objectFields(types.Deployment, (t) => ({
    id: t.exposeID('id', { description: 'A TypeID such as `dep_01h455vb4pex5vsknk084sn02q`.' }),
    namespace: t.exposeString('namespace', { description: 'The namespace. Never changes.' }),
    name: t.exposeString('name', {
      description: 'The name, unique in the namespace among those not deleted. Never changes.',
    }),
    app: t.exposeString('app', { description: 'The app that it installs. Never changes.' }),
    origin: t.expose('origin', { type: enums.origin, description: 'How it came to be known.' }),
    labels: t.expose('labels', {
      type: 'Labels',
      description: 'Labels, for filters. Empty if there are none.',
    }),
    generation: t.exposeInt('generation', { description: 'Counts changes of `spec`, from 1.' }),
    version: t.exposeInt('version', {
      description: 'Counts every change, from 1: what to expect when patching.',
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was created.' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'When it last changed.' }),
    deletionRequestedAt: t.expose('deletionRequestedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When somebody asked to delete it; null if nobody did.',
    }),
    protocolVersion: t.exposeInt('protocolVersion', {
      description: 'The version of the reporting protocol it was made with.',
    }),
    retryRequested: t.exposeBoolean('retryRequested', {
      description: 'Whether a retry was asked for and has not begun yet.',
    }),
    spec: t.field({ type: spec, description: 'What is wanted.', ...sameRow<Row>() }),
    status: t.field({ type: status, description: 'What was observed.', ...sameRow<Row>() }),
    runtime: t.field({
      type: types.Runtime,
      nullable: true,
      description: 'Where it runs; null if that runtime is in a namespace that the caller may not see.',
      ...toOne(graph, 'RUNTIME', 'runtimeId'),
    }),
    currentRelease: t.field({
      type: types.Release,
      nullable: true,
      description: 'What is serving; null if nothing is, or the caller may not see it.',
      ...toOne(graph, 'RELEASE', 'currentReleaseId'),
    }),
    targetRelease: t.field({
      type: types.Release,
      nullable: true,
      description:
        'What it is moving to. Where nothing runs (UNDEPLOYED, DELETED), what it would run: deploying again needs to name no release. Null once it runs what is wanted, or if the caller may not see it.',
      ...toOne(graph, 'RELEASE', 'targetReleaseId'),
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

type Row = Graph['types']['Deployment']['$inferType'];

function specType({ builder }: Graph, enums: DeploymentEnums) {
  const variable = builder.objectRef<EnvVariable>('EnvironmentVariable').implement({
    description: 'One environment variable of what runs.',
    fields: (t) => ({
      name: t.exposeString('name', { description: 'The name of the variable.' }),
      value: t.exposeString('value', {
        nullable: true,
        description: 'The value; null for a value that is kept back.',
      }),
    }),
  });
  return builder.objectRef<Row>('DeploymentSpec').implement({
    description: 'What is wanted of a deployment. Changes raise `generation`.',
    fields: (t) => ({
      desiredState: t.expose('desiredState', {
        type: enums.desiredState,
        description: 'Whether it is to run.',
      }),
      env: t.field({
        type: [variable],
        description: 'Its environment variables, by name.',
        ...reads<Row>('env'),
        resolve: (row) => [...storedJson<readonly EnvVariable[]>(row.env)],
      }),
      runtimeConfig: t.expose('runtimeConfig', {
        type: 'JSONObject',
        description:
          'What its runtime is told beside that; its meaning is the runtime’s own. Empty if nothing.',
      }),
    }),
  });
}

function statusType({ builder, shared }: Graph, enums: DeploymentEnums) {
  return builder.objectRef<Row>('DeploymentStatus').implement({
    description: 'What was observed of a deployment.',
    fields: (t) => ({
      phase: t.expose('phase', { type: enums.phase, description: 'Where it is in its lifecycle.' }),
      summary: t.string({
        description: 'One sentence: the error, else a condition that is false, else what is going on.',
        ...reads<Row>('phase', 'conditions', 'error'),
        resolve: (row) =>
          summarise({
            phase: row.phase,
            conditions: storedConditionsSchema.parse(row.conditions),
            error: storedJson<DeploymentError | null>(row.error),
          }),
      }),
      conditions: t.field({
        type: [shared.condition],
        description: 'Its conditions, one of each type, in the order in which they first appeared.',
        ...reads<Row>('conditions'),
        resolve: (row) => storedConditionsSchema.parse(row.conditions),
      }),
      observedGeneration: t.exposeInt('observedGeneration', {
        description: 'The generation of `spec` that was observed; 0 before the first report.',
      }),
      runtime: t.field({
        type: observedRuntimeType(builder),
        nullable: true,
        description: 'The workload as its runtime knows it; null while nothing runs.',
        ...reads<Row>('observedRuntime'),
        resolve: (row) => storedJson<ObservedRuntime | null>(row.observedRuntime),
      }),
      environmentInfo: t.field({
        type: environmentInfoType(builder),
        nullable: true,
        description: 'The environment that it runs in; null if nothing was reported.',
        ...reads<Row>('environmentInfo'),
        resolve: (row) => storedJson<EnvironmentInfo | null>(row.environmentInfo),
      }),
      error: t.field({
        type: errorType(builder),
        nullable: true,
        description: 'What went wrong last; null once it went well again.',
        ...reads<Row>('error'),
        resolve: (row) => storedJson<DeploymentError | null>(row.error),
      }),
    }),
  });
}

function observedRuntimeType(builder: Graph['builder']) {
  const fact = (what: string) => ({
    nullable: true as const,
    description: `${what} Null if it was not reported.`,
  });
  return builder.objectRef<ObservedRuntime>('ObservedRuntime').implement({
    description: 'What runs, as the runtime that runs it knows it.',
    fields: (t) => ({
      id: t.exposeString('id', fact('The runtime’s own id of itself.')),
      name: t.exposeString('name', fact('The runtime’s own name of what runs.')),
      resourceId: t.exposeString('resourceId', fact('The runtime’s own id of what runs.')),
      endpoint: t.exposeString('endpoint', fact('Where what runs is reached, a URL mostly.')),
    }),
  });
}

function environmentInfoType(builder: Graph['builder']) {
  const fact = (what: string) => ({
    nullable: true as const,
    description: `${what} Null if it was not reported.`,
  });
  return builder.objectRef<EnvironmentInfo>('EnvironmentInfo').implement({
    description: 'The environment that a deployment runs in.',
    fields: (t) => ({
      provider: t.exposeString('provider', fact('Who provides it.')),
      account: t.exposeString('account', fact('The account or project there.')),
      region: t.exposeString('region', fact('The region.')),
      location: t.exposeString('location', fact('The place in the region: a zone, a site, a rack.')),
      hostname: t.exposeString('hostname', fact('The name of the host.')),
      os: t.exposeString('os', fact('The operating system.')),
      arch: t.exposeString('arch', fact('The architecture of the processor.')),
    }),
  });
}

function errorType(builder: Graph['builder']) {
  return builder.objectRef<DeploymentError>('DeploymentError').implement({
    description: 'What went wrong with a deployment.',
    fields: (t) => ({
      code: t.exposeString('code', { description: 'For machines: `HealthCheckFailed`.' }),
      message: t.exposeString('message', { description: 'For people; at most 4 KiB.' }),
      retryable: t.exposeBoolean('retryable', { description: 'Whether the same again may go well.' }),
    }),
  });
}

function addQueries(graph: Graph, enums: DeploymentEnums): void {
  const { builder, types, reader } = graph;
  const connection = addConnectionType(builder, 'Deployment', types.Deployment);
  builder.objectField(types.Runtime, 'deployments', (t) =>
    t.field({
      type: connection,
      description: 'The deployments on this runtime that the caller may see.',
      complexity: pageComplexity,
      args: listArguments(graph, enums)(t.arg),
      ...toPage(
        graph,
        'runtimeId',
        (args, context) => wantedOf(context, args.filter as DeploymentFilter, args.includeDeleted ?? false), // of `listArguments`
      ),
    }),
  );
  builder.queryFields((t) => ({
    deployment: t.field({
      type: types.Deployment,
      nullable: true,
      description:
        'One deployment, by id or by namespace and name; null if there is none that the caller may see.',
      args: lookUpArguments(t.arg, 'deployment'),
      resolve: (_root, args, context, info) => {
        const target = lookUpOf(args);
        if ('id' in target) return reader.byId('DEPLOYMENT', target.id, context, info);
        const filter = { namespace: { equals: target.namespace }, name: { equals: target.name } };
        return reader.first(wantedOf(context, filter, false), context, info);
      },
    }),
    deployments: t.field({
      type: connection,
      description: 'The deployments that the caller may see.',
      complexity: pageComplexity,
      args: listArguments(graph, enums)(t.arg),
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

function listArguments({ shared }: Graph, enums: DeploymentEnums) {
  return (t: ArgBuilder<Types>) => ({
    ...pageArguments(t),
    filter: t({ type: enums.filter, description: 'Which ones. Null: all.' }),
    orderBy: t({ type: shared.order, description: 'In which order. Null: oldest first.' }),
    includeDeleted: t.boolean({
      description: 'Whether deleted ones are listed too; they are purged after 7 days. Null: false.',
    }),
  });
}

function wantedOf(context: Context, filter: DeploymentFilter | null | undefined, includeDeleted: boolean) {
  return deploymentsWanted(
    parseFilter(deploymentFilterSchema, filter),
    grantOf(context, 'deployment:read'),
    includeDeleted,
  );
}
