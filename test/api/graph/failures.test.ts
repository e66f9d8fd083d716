import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { someone } from '../../support/callers.js';
import { startTestGraph, type TestGraph } from '../../support/graph.js';
import { seedDeployment } from '../../support/seed.js';

let graph: TestGraph;
beforeAll(async () => {
  graph = await startTestGraph();
});
afterAll(() => graph.close());

const PATCH = `mutation Patch($input: PatchDeploymentStatusInput!) {
  patchDeploymentStatus(input: $input) {
    __typename
    ... on PatchDeploymentStatusPayload { deployment { id version status { phase } runtime { name } } }
    ... on Failure { code message }
    ... on VersionConflict { currentVersion current { id } }
    ... on DeploymentVersionConflict { current { version status { phase } } }
    ... on InvalidInput { issues { path message } }
    ... on InvalidTransition { from to allowed }
  }
}`;

async function patch(input: object) {
  const { data, errors } = await graph.run(PATCH, { input });
  expect(errors).toEqual([]);
  return data.patchDeploymentStatus;
}

describe('a result union', () => {
  it('gives the object as it is after the write, and reads only the relations that were selected', async () => {
    const row = await seedDeployment(graph.database);
    let answer;
    const statements = await graph.readStatements(async () => {
      answer = await patch({ id: row.id, expectedVersion: 1, phase: 'INITIAL_SETUP' });
    });
    expect(answer).toMatchObject({
      deployment: { version: 2, status: { phase: 'INITIAL_SETUP' }, runtime: {} },
    });
    expect(statements).toHaveLength(1);
  });

  it('lets exactly one of racing patches win, and gives each loser the fresh object without a read of its own', async () => {
    const row = await seedDeployment(graph.database);
    const racers = Array.from({ length: 20 }, () =>
      patch({ id: row.id, expectedVersion: 1, phase: 'INITIAL_SETUP' }),
    );
    const results = await Promise.all(racers);
    const winners = results.filter((result) => result.__typename === 'PatchDeploymentStatusPayload');
    expect(winners).toHaveLength(1);
    for (const loser of results.filter((result) => result !== winners[0])) {
      expect(loser).toMatchObject({
        __typename: 'DeploymentVersionConflict',
        code: 'VersionConflict',
        currentVersion: 2,
        current: { id: row.id, version: 2, status: { phase: 'INITIAL_SETUP' } },
      });
    }
    const statements = await graph.readStatements(() =>
      patch({ id: row.id, expectedVersion: 1, phase: 'INITIAL_SETUP' }),
    );
    expect(statements).toEqual([]);
  });

  it('names an illegal move with what would be allowed', async () => {
    const row = await seedDeployment(graph.database);
    expect(await patch({ id: row.id, expectedVersion: 1, phase: 'RUNNING' })).toMatchObject({
      __typename: 'InvalidTransition',
      from: 'PENDING',
      to: 'RUNNING',
      allowed: expect.arrayContaining(['INITIAL_SETUP']),
    });
  });

  it('names everything that is wrong with an input', async () => {
    const row = await seedDeployment(graph.database);
    const conditions = [{ type: 'not ok', status: 'TRUE', reason: '' }];
    const failure = await patch({ id: row.id, expectedVersion: 0, conditions });
    expect(failure.__typename).toBe('InvalidInput');
    expect(failure.issues.map((issue: { path: string[] }) => issue.path.join('.'))).toEqual([
      'input.expectedVersion',
      'input.conditions.0.type',
      'input.conditions.0.reason',
    ]);
  });

  it('says AlreadyExists, AgentConflict and IncompatibleProtocol where they are meant', async () => {
    const { data } = await graph.run(`mutation {
      one: createRuntime(input: { name: "taken", type: "external" }) { __typename ... on CreateRuntimePayload { runtime { id } } }
      two: createRuntime(input: { name: "taken", type: "external" }) { __typename ... on AlreadyExists { existingId } }
      three: createRuntime(input: { name: "other", type: "kubernetes" }) { __typename ... on InvalidInput { message } }
      a: registerAgent(input: { name: "a", topic: "t", serviceTypes: ["process"], protocolVersion: 1 }) { __typename ... on RegisterAgentPayload { session agent { id health consumerLag } } }
      b: registerAgent(input: { name: "b", topic: "t", serviceTypes: [], protocolVersion: 1 }) { __typename }
      c: registerAgent(input: { name: "c", serviceTypes: [], protocolVersion: 99 }) { __typename ... on IncompatibleProtocol { found minimum current } }
    }`);
    expect(data.two).toEqual({ __typename: 'AlreadyExists', existingId: data.one.runtime.id });
    expect(data.three).toEqual({ __typename: 'InvalidInput', message: expect.stringContaining('external') });
    expect(data.a).toMatchObject({
      __typename: 'RegisterAgentPayload',
      agent: { health: 'READY', consumerLag: 0 },
    });
    expect(data.b.__typename).toBe('AgentConflict');
    expect(data.c).toEqual({ __typename: 'IncompatibleProtocol', found: 99, minimum: 1, current: 1 });
  });

  it('is an operation error where the caller’s roles do not reach', async () => {
    const deployer = someone({ roles: ['DEPLOYER'] });
    const row = await seedDeployment(graph.database);
    const { errors } = await graph.run(
      'mutation ($id: ID!) { deleteDeployment(input: { id: $id, mode: FORGET }) { __typename } }',
      { id: row.id },
      deployer,
    );
    expect(errors).toMatchObject([{ extensions: { code: 'FORBIDDEN' } }]);
  });

  it('masks a bug, and gives nothing but the request id', async () => {
    const broken = await startTestGraph(({ commands }) => ({
      commands: {
        ...commands,
        deployments: {
          ...commands.deployments,
          patchDeploymentStatus: () =>
            Promise.reject(new Error('relation "deployment_internal" does not exist')),
        },
      },
    }));
    const { data, errors } = await broken.run(PATCH, { input: { id: 'dep_x', expectedVersion: 1 } });
    await broken.close();
    expect(data).toBeNull();
    expect(errors).toMatchObject([{ extensions: { code: 'INTERNAL', requestId: 'test' } }]);
    expect(JSON.stringify(errors)).not.toContain('deployment_internal');
  });
});
