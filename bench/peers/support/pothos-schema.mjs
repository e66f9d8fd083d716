/** The same part of the graph as the server has it, with Pothos and Prisma as their guides write it. */
import SchemaBuilder from '@pothos/core';
import PrismaPlugin from '@pothos/plugin-prisma';
import { queryFromInfo } from '@pothos/plugin-prisma';
import { PrismaPg } from '@prisma/adapter-pg';
import { randomUUID } from 'node:crypto';

import { getDatamodel, PrismaClient } from '../../node_modules/.slipway/client.mjs';

const LIVE = { deletedAt: null };
const ORDER = [{ createdAt: 'asc' }, { id: 'asc' }];

/** A statement is parsed once a connection, as it is for everybody else. */
function statementNames() {
  const names = new Map();
  return ({ sql }) => {
    let name = names.get(sql);
    if (name === undefined) names.set(sql, (name = `s${names.size}`));
    return name;
  };
}

/** `strategy`: how Prisma loads relations: `query`, one statement each, or `join`. */
export function pothosSchema({ databaseUrl, poolSize, strategy }) {
  const adapter = new PrismaPg(
    { connectionString: databaseUrl, max: poolSize },
    { statementNameGenerator: statementNames() },
  );
  const prisma = new PrismaClient({ adapter });
  const builder = new SchemaBuilder({
    plugins: [PrismaPlugin],
    defaultFieldNullability: false,
    prisma: { client: prisma, dmmf: getDatamodel() },
  });
  const load = { relationLoadStrategy: strategy };
  builder.scalarType('DateTime', { serialize: (date) => date.toISOString() });
  addObjects(builder);
  addQueries(builder, prisma, load);
  addPatch(builder, prisma);
  return builder.toSchema();
}

function addObjects(builder) {
  const condition = builder.objectRef('Condition').implement({
    fields: (t) => ({ type: t.exposeString('type'), status: t.exposeString('status') }),
  });
  const resource = builder.objectRef('ReleaseResource').implement({
    fields: (t) => ({ name: t.exposeString('name') }),
  });
  const status = builder.prismaObject('Deployment', {
    variant: 'DeploymentStatus',
    fields: (t) => ({
      phase: t.exposeString('phase'),
      conditions: t.field({ type: [condition], resolve: ({ conditions }) => conditions }),
    }),
  });
  builder.prismaObject('Deployment', {
    fields: (t) => ({
      id: t.exposeID('id'),
      name: t.exposeString('name'),
      version: t.exposeInt('version'),
      createdAt: t.expose('createdAt', { type: 'DateTime' }),
      status: t.variant(status),
      runtime: t.relation('runtime'),
      currentRelease: t.relation('currentRelease', { nullable: true }),
    }),
  });
  builder.prismaObject('Release', {
    fields: (t) => ({
      id: t.exposeID('id'),
      label: t.exposeString('label'),
      resources: t.field({ type: [resource], resolve: ({ resources }) => resources }),
    }),
  });
  const page = deploymentPage(builder);
  builder.prismaObject('Runtime', {
    fields: (t) => ({
      id: t.exposeID('id'),
      name: t.exposeString('name'),
      type: t.exposeString('type'),
      deployments: t.field({
        type: page,
        args: { first: t.arg.int({ required: true }) },
        select: ({ first }, _context, nested) => ({
          deployments: { where: LIVE, orderBy: ORDER, take: first, ...nested(true, ['nodes']) },
        }),
        resolve: ({ deployments }) => ({ nodes: deployments }),
      }),
    }),
  });
}

function deploymentPage(builder) {
  return builder.objectRef('DeploymentConnection').implement({
    fields: (t) => ({ nodes: t.field({ type: ['Deployment'], resolve: ({ nodes }) => nodes }) }),
  });
}

function addQueries(builder, prisma, load) {
  const page = builder.objectRef('DeploymentList').implement({
    fields: (t) => ({ nodes: t.field({ type: ['Deployment'], resolve: ({ nodes }) => nodes }) }),
  });
  const runtimePage = builder.objectRef('RuntimeConnection').implement({
    fields: (t) => ({ nodes: t.field({ type: ['Runtime'], resolve: ({ nodes }) => nodes }) }),
  });
  const list =
    (model, where) =>
    async (_root, { first }, context, info) => ({
      nodes: await model.findMany({
        ...queryFromInfo({ context, info, path: ['nodes'] }),
        ...load,
        where,
        orderBy: ORDER,
        take: first,
      }),
    });
  builder.queryType({
    fields: (t) => ({
      deployments: t.field({
        type: page,
        args: { first: t.arg.int({ required: true }) },
        resolve: list(prisma.deployment, LIVE),
      }),
      runtimes: t.field({
        type: runtimePage,
        args: { first: t.arg.int({ required: true }) },
        resolve: list(prisma.runtime, LIVE),
      }),
      deployment: t.prismaField({
        type: 'Deployment',
        nullable: true,
        args: { id: t.arg.id({ required: true }) },
        resolve: (query, _root, { id }) => prisma.deployment.findUnique({ ...query, ...load, where: { id } }),
      }),
    }),
  });
}

function addPatch(builder, prisma) {
  const conditionInput = builder.inputType('ConditionInput', {
    fields: (t) => ({
      type: t.string({ required: true }),
      status: t.string({ required: true }),
      reason: t.string({ required: true }),
      message: t.string(),
    }),
  });
  const errorInput = builder.inputType('DeploymentErrorInput', {
    fields: (t) => ({ code: t.string({ required: true }), message: t.string({ required: true }) }),
  });
  const input = builder.inputType('PatchDeploymentStatusInput', {
    fields: (t) => ({
      id: t.id({ required: true }),
      expectedVersion: t.int({ required: true }),
      observedGeneration: t.int(),
      phase: t.string({ required: true }),
      conditions: t.field({ type: [conditionInput], required: true }),
      error: t.field({ type: errorInput }),
    }),
  });
  const payload = builder.objectRef('PatchDeploymentStatusPayload').implement({
    fields: (t) => ({ deployment: t.field({ type: 'Deployment', resolve: ({ deployment }) => deployment }) }),
  });
  const failure = builder.objectRef('Failure').implement({
    fields: (t) => ({ code: t.exposeString('code'), message: t.exposeString('message') }),
  });
  const result = builder.unionType('PatchDeploymentStatusResult', {
    types: [payload, failure],
    resolveType: (value) => (value.deployment ? payload : failure),
  });
  builder.mutationType({
    fields: (t) => ({
      patchDeploymentStatus: t.field({
        type: result,
        args: { input: t.arg({ type: input, required: true }) },
        resolve: (_root, { input }) => patch(prisma, input),
      }),
    }),
  });
}

/** One statement; the guards of the database want a fresh token and somebody's name. */
async function patch(prisma, { id, expectedVersion, observedGeneration, phase, conditions, error }) {
  const [deployment] = await prisma.deployment.updateManyAndReturn({
    where: { id, version: expectedVersion },
    data: {
      version: { increment: 1 },
      phase,
      conditions,
      observedGeneration,
      error: error ?? undefined,
      changedBy: 'local',
      changeReason: 'Reported',
      changeToken: randomUUID(),
    },
  });
  return deployment
    ? { deployment }
    : { code: 'VERSION_CONFLICT', message: `\`${id}\` is not at version ${expectedVersion}` };
}
