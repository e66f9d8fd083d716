import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { someone } from '../../support/callers.js';
import { startTestGraph, type Answer, type TestGraph } from '../../support/graph.js';
import { seedDeployment, seedRelease, seedRuntime } from '../../support/seed.js';

let graph: TestGraph;
let deployment: { readonly id: string };
let release: { readonly id: string };
beforeAll(async () => {
  graph = await startTestGraph();
  const runtime = await seedRuntime(graph.database, { name: 'lab' });
  release = await seedRelease(graph.database, {});
  deployment = await seedDeployment(graph.database, {
    name: 'shop',
    runtimeId: runtime.id,
    phase: 'RUNNING',
    currentReleaseId: release.id,
  });
});
afterAll(() => graph.close());

const STANDING =
  'canCancel canRetry canRollback canDelete blockedBy lock { rolloutId startedBy acquiredAt expiresAt }';
const standing = async () =>
  (await graph.run(`query ($id: ID!) { deployment(id: $id) { ${STANDING} } }`, { id: deployment.id })).data
    .deployment;
const mutate = async (field: string, input: object, selection: string): Promise<Answer['data']> => {
  const type = `${field.slice(0, 1).toUpperCase()}${field.slice(1)}`;
  const document = `mutation ($input: ${type}Input!) { answer: ${field}(input: $input) { __typename ${selection} ... on Failure { code message } } }`;
  const { data, errors } = await graph.run(document, { input });
  expect(errors).toEqual([]);
  return data.answer;
};
const begin = async (): Promise<string> =>
  (await mutate('beginRollout', { id: deployment.id }, '... on BeginRolloutPayload { rollout { id } }'))
    .rollout.id;

describe('rollouts in the graph', () => {
  it('say of their deployment what may be done about it', async () => {
    expect(await standing()).toEqual({
      canCancel: false,
      canRetry: false,
      canRollback: false,
      canDelete: true,
      blockedBy: null,
      lock: null,
    });
    const id = await begin();
    expect(await standing()).toEqual({
      canCancel: true,
      canRetry: false,
      canRollback: false,
      canDelete: true,
      blockedBy: `The rollout ${id}, started by local, is under way.`,
      lock: {
        rolloutId: id,
        startedBy: 'local',
        acquiredAt: expect.any(String),
        expiresAt: expect.any(String),
      },
    });
    const held = await mutate(
      'deployRelease',
      { id: deployment.id, release: { id: release.id }, reason: 'Again' },
      '... on LockHeld { phase lock { rolloutId } } ... on DeployReleasePayload { rollout { id } }',
    );
    // What runs already needs no rollout, so no lock either.
    expect(held).toMatchObject({ __typename: 'DeployReleasePayload', rollout: null });
    const refused = await mutate(
      'applyDeployment',
      { name: 'shop', runtimeConfig: { a: 1 } },
      '... on LockHeld { phase lock { rolloutId } }',
    );
    expect(refused).toMatchObject({ code: 'LockHeld', phase: 'PREPARING', lock: { rolloutId: id } });
    await mutate('cancelRollout', { id, message: 'not today' }, '');
    expect(await standing()).toMatchObject({ canCancel: false, blockedBy: null, lock: null });
  });

  it('are listed, filtered and found, by themselves and from their deployment', async () => {
    const id = await begin();
    const { data } = await graph.run(
      `query ($id: ID!, $deployment: ID!) {
        rollout(id: $id) { id phase outcome deployment { name } fromRelease { id } toRelease { id } parentRollout { id } changes { nodes { to reason } } }
        node(id: $id) { ... on Rollout { operation startedBy } }
        cancelled: rollouts(filter: { outcome: { equals: CANCELLED } }) { totalCount nodes { message outcome error { code } } }
        unfinished: rollouts(filter: { not: { outcome: { in: [SUCCEEDED, FAILED, CANCELLED, INTERRUPTED] } }, phase: { equals: PREPARING } }) { nodes { id } }
        deployment(id: $deployment) { rollouts(orderBy: { direction: DESC }, first: 1) { totalCount nodes { id } pageInfo { hasNextPage } } }
      }`,
      { id, deployment: deployment.id },
    );
    expect(data).toEqual({
      rollout: {
        id,
        phase: 'PREPARING',
        outcome: null,
        deployment: { name: 'shop' },
        fromRelease: { id: release.id },
        toRelease: null,
        parentRollout: null,
        changes: { nodes: [{ to: 'PREPARING', reason: 'RolloutStarted' }] },
      },
      node: { operation: 'UPDATE', startedBy: 'local' },
      cancelled: { totalCount: 1, nodes: [{ message: 'not today', outcome: 'CANCELLED', error: null }] },
      unfinished: { nodes: [{ id }] },
      deployment: { rollouts: { totalCount: 2, nodes: [{ id }], pageInfo: { hasNextPage: true } } },
    });
    await mutate('failRollout', { id, message: 'no' }, '');
  });

  it('are watched: a snapshot of the filter first, then what changes', async () => {
    const id = await begin();
    const stream = await graph.stream(
      `subscription ($id: ID!) { watchRollouts(filter: { deploymentId: { equals: $id }, not: { outcome: { in: [SUCCEEDED, FAILED, CANCELLED] } } }) {
        __typename ... on RolloutAdded { rollout { id phase } } ... on RolloutChanged { rollout { id phase } } ... on RolloutRemoved { id reason } } }`,
      { id: deployment.id },
    );
    const next = async () => (await stream.next()).data.watchRollouts as unknown;
    expect(await next()).toEqual({ __typename: 'RolloutAdded', rollout: { id, phase: 'PREPARING' } });
    expect(await next()).toEqual({ __typename: 'SnapshotEnd' });
    await mutate('setRolloutPhase', { id, phase: 'PUSHING' }, '');
    expect(await next()).toEqual({ __typename: 'RolloutChanged', rollout: { id, phase: 'PUSHING' } });
    await mutate('cancelRollout', { id }, '');
    expect(await next()).toEqual({ __typename: 'RolloutRemoved', id, reason: 'LEFT_FILTER' });
    await stream.close();
  });

  it('are not there for who may not see their namespace', async () => {
    const id = await begin();
    const elsewhere = someone({ roles: ['DEPLOYER'], namespaces: ['other'] });
    const { data } = await graph.run(
      `query ($id: ID!) { rollout(id: $id) { id } node(id: $id) { id } rollouts { totalCount nodes { id } } }`,
      { id },
      elsewhere,
    );
    expect(data).toEqual({ rollout: null, node: null, rollouts: { totalCount: 0, nodes: [] } });
  });
});
