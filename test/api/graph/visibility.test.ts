import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { DeploymentRow, RuntimeRow } from '../../../src/store/rows.js';
import { someone } from '../../support/callers.js';
import { startTestGraph, type TestGraph } from '../../support/graph.js';
import { seedDeployment, seedRelease, seedRuntime } from '../../support/seed.js';

let graph: TestGraph;
let mine: DeploymentRow;
let theirs: DeploymentRow;
let theirRuntime: RuntimeRow;
beforeAll(async () => {
  graph = await startTestGraph();
  theirRuntime = await seedRuntime(graph.database, { namespace: 'theirs', name: 'place' });
  const theirRelease = await seedRelease(graph.database, { namespace: 'theirs' });
  mine = await seedDeployment(graph.database, {
    namespace: 'mine',
    name: 'shop',
    runtimeId: theirRuntime.id,
    targetReleaseId: theirRelease.id,
  });
  theirs = await seedDeployment(graph.database, {
    namespace: 'theirs',
    name: 'shop',
    runtimeId: theirRuntime.id,
  });
});
afterAll(() => graph.close());

const viewer = someone({ roles: ['VIEWER'], namespaces: ['mine'] });
const agent = someone({ roles: ['AGENT'], agentName: 'worker' });

describe('what a caller may not see', () => {
  it('is null by id, by name and as a node, as if it were not there', async () => {
    const { data, errors } = await graph.run(
      `query ($theirs: ID!, $mine: ID!, $runtime: ID!) {
        byId: deployment(id: $theirs) { id }
        byName: deployment(namespace: "theirs", name: "shop") { id }
        own: deployment(namespace: "mine", name: "shop") { id }
        node(id: $theirs) { id }
        nodes(ids: [$mine, $theirs, $runtime, "dep_nonsense", "x"]) { __typename id ... on Deployment { name } }
        runtime(id: $runtime) { id }
      }`,
      { theirs: theirs.id, mine: mine.id, runtime: theirRuntime.id },
      viewer,
    );
    expect(errors).toEqual([]);
    expect(data).toEqual({
      byId: null,
      byName: null,
      own: { id: mine.id },
      node: null,
      nodes: [{ __typename: 'Deployment', id: mine.id, name: 'shop' }, null, null, null, null],
      runtime: null,
    });
  });

  it('is in no list, no total and no relation', async () => {
    const { data } = await graph.run(
      '{ deployments { totalCount nodes { id runtime { id } targetRelease { id } } } runtimes { totalCount } releases { totalCount } changes { nodes { objectId namespace } } }',
      {},
      viewer,
    );
    expect(data.deployments).toEqual({
      totalCount: 1,
      nodes: [{ id: mine.id, runtime: null, targetRelease: null }],
    });
    expect([data.runtimes.totalCount, data.releases.totalCount]).toEqual([0, 0]);
    expect(data.changes.nodes).toEqual([{ objectId: mine.id, namespace: 'mine' }]);
  });

  it('is NotFound to a mutation', async () => {
    const patcher = someone({ roles: ['CONTROLLER'], namespaces: ['mine'] });
    const { data } = await graph.run(
      `mutation ($id: ID!) { patchDeploymentStatus(input: { id: $id, expectedVersion: 1, phase: RUNNING }) { __typename ... on Failure { code } } }`,
      { id: theirs.id },
      patcher,
    );
    expect(data.patchDeploymentStatus).toEqual({ __typename: 'NotFound', code: 'NotFound' });
  });

  it('comes in no stream', async () => {
    const stream = await graph.stream(
      'subscription { watchDeployments { __typename ... on DeploymentAdded { deployment { id runtime { id } } } } }',
      {},
      viewer,
    );
    expect(await stream.next()).toMatchObject({
      data: { watchDeployments: { deployment: { id: mine.id, runtime: null } } },
    });
    expect(await stream.next()).toMatchObject({ data: { watchDeployments: { __typename: 'SnapshotEnd' } } });
    await stream.close();
  });

  it('is every object, for a role that reads nothing', async () => {
    const { data, errors } = await graph.run(
      'query ($id: ID!) { node(id: $id) { id } }',
      { id: mine.id },
      agent,
    );
    expect({ data, errors }).toEqual({ data: { node: null }, errors: [] });
    const listed = await graph.run('{ deployments { totalCount } }', {}, agent);
    expect(listed.errors).toMatchObject([{ extensions: { code: 'FORBIDDEN' } }]);
  });

  it('is a token, for anybody but an ADMIN', async () => {
    const created = await graph.run(
      'mutation { createToken(input: { name: "ci", roles: [DEPLOYER], namespaces: ["mine"] }) { ... on CreateTokenPayload { secret token { id lastUsedAt roles namespaces } } } }',
    );
    const { token, secret } = created.data.createToken;
    expect(secret).toMatch(/^slp_/);
    expect(token).toMatchObject({ roles: ['DEPLOYER'], namespaces: ['mine'], lastUsedAt: null });
    const operator = someone({ roles: ['OPERATOR'] });
    const asked = await graph.run('query ($id: ID!) { node(id: $id) { id } }', { id: token.id }, operator);
    expect(asked.data).toEqual({ node: null });
    const log = await graph.run('{ changes(kinds: [TOKEN]) { nodes { objectId } } }', {}, operator);
    expect(log.data.changes.nodes).toEqual([]);
    const admin = await graph.run(
      '{ tokens { nodes { name } } changes(kinds: [TOKEN]) { nodes { objectId } } }',
    );
    expect(admin.data).toMatchObject({
      tokens: { nodes: [{ name: 'ci' }] },
      changes: { nodes: [{ objectId: token.id }] },
    });
  });

  it('is told of oneself by viewer alone', async () => {
    const { data } = await graph.run(
      '{ viewer { id roles namespaces } serverInfo { version runtimeTypes } }',
      {},
      viewer,
    );
    expect(data).toEqual({
      viewer: { id: 'test:VIEWER', roles: ['VIEWER'], namespaces: ['mine'] },
      serverInfo: { version: '0.0.0-test', runtimeTypes: ['external'] },
    });
  });
});
