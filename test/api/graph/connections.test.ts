import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { DeploymentRow } from '../../../src/store/rows.js';
import { startTestGraph, type TestGraph } from '../../support/graph.js';
import { advanceDeployment, seedDeployment, seedRuntime } from '../../support/seed.js';

let graph: TestGraph;
let rows: DeploymentRow[];
const ROWS = 7;
beforeAll(async () => {
  graph = await startTestGraph();
  const runtime = await seedRuntime(graph.database);
  rows = [];
  // Names run against the order of creation.
  for (let index = 0; index < ROWS; index += 1) {
    rows.push(await seedDeployment(graph.database, { name: `d${9 - index}`, runtimeId: runtime.id }));
  }
});
afterAll(() => graph.close());

const PAGE = `query Page($first: Int, $after: String, $last: Int, $before: String, $orderBy: OrderBy, $filter: DeploymentFilter) {
  deployments(first: $first, after: $after, last: $last, before: $before, orderBy: $orderBy, filter: $filter) {
    nodes { name } edges { cursor }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}`;

async function page(variables: Record<string, unknown>) {
  const { data, errors } = await graph.run(PAGE, variables);
  expect(errors).toEqual([]);
  const { nodes, pageInfo, edges } = data.deployments;
  return { names: nodes.map((node: { name: string }) => node.name), pageInfo, edges };
}

const NOON = '2026-11-30T12:00:00.000Z';
const BY_NAME = { orderBy: { field: 'NAME', direction: 'ASC' } };
const packed = (...parts: readonly string[]): string =>
  Buffer.from(JSON.stringify([1, ...parts])).toString('base64url');

describe('deployments', () => {
  it('pages forward without meeting an object twice or missing one', async () => {
    const seen: string[] = [];
    let after: string | null = null;
    for (let turn = 0; turn < 4; turn += 1) {
      const { names, pageInfo } = await page({ first: 2, after });
      seen.push(...names);
      expect(pageInfo).toMatchObject({ hasNextPage: turn < 3, hasPreviousPage: turn > 0 });
      after = pageInfo.endCursor;
    }
    expect(seen).toEqual(rows.map((row) => row.name));
  });

  it('pages backward from the end, in the asked order', async () => {
    const end = await page({ last: 3, orderBy: { field: 'NAME', direction: 'DESC' } });
    expect(end.names).toEqual(['d5', 'd4', 'd3']);
    expect(end.pageInfo).toMatchObject({ hasPreviousPage: true, hasNextPage: false });
    const before = await page({
      last: 10,
      before: end.pageInfo.startCursor,
      orderBy: { field: 'NAME', direction: 'DESC' },
    });
    expect(before.names).toEqual(['d9', 'd8', 'd7', 'd6']);
    expect(before.pageInfo).toMatchObject({ hasPreviousPage: false, hasNextPage: true });
  });

  it('turns the page when the row of its cursor is gone', async () => {
    const gone = await seedDeployment(graph.database, { name: 'gone' });
    const all = await page({});
    const cursor = all.edges.at(-1).cursor;
    await graph.database.pool.query('DELETE FROM deployment WHERE id = $1', [gone.id]);
    const later = await seedDeployment(graph.database, { name: 'later' });
    expect((await page({ after: cursor })).names).toEqual(['later']);
    await graph.database.pool.query('DELETE FROM deployment WHERE id = $1', [later.id]);
  });

  it('takes a cursor that was put together as ours are', async () => {
    const after = packed('deployment', 'createdAt', 'asc', '2020-01-01T00:00:00.000Z', 'dep_x');
    expect((await page({ after })).names).toHaveLength(ROWS);
  });

  it.each([
    ['of another order', { after: packed('deployment', 'name', 'asc', 'd1', 'dep_x') }],
    ['of another direction', { after: packed('deployment', 'createdAt', 'desc', NOON, 'dep_x') }],
    ['of another list', { after: packed('release', 'createdAt', 'asc', NOON, 'dep_x') }],
    ['of another format', { after: Buffer.from(`[1,"createdAt","${NOON}","dep_x"]`).toString('base64url') }],
    ['with NUL in its id', { after: packed('deployment', 'createdAt', 'asc', NOON, '\0') }],
    ['with half a character in its id', { after: packed('deployment', 'createdAt', 'asc', NOON, '\ud800') }],
    [
      'before all time',
      { after: packed('deployment', 'createdAt', 'asc', '-271821-04-20T00:00:00.000Z', 'dep_1') },
    ],
    [
      'before our era',
      { before: packed('deployment', 'createdAt', 'asc', '-004713-01-01T00:00:00.000Z', 'dep_1') },
    ],
    ['with NUL in its name', { ...BY_NAME, after: packed('deployment', 'name', 'asc', '\0', 'dep_1') }],
    ['with NUL behind its name', { ...BY_NAME, after: packed('deployment', 'name', 'asc', 'a', '\0') }],
    ['that was made up', { after: 'bm9wZQ' }],
    ['that is no base64', { before: '€' }],
  ])('refuses a cursor %s with BAD_PAGE_CURSOR', async (_what, variables) => {
    const { errors } = await graph.run(PAGE, variables);
    expect(errors).toMatchObject([{ extensions: { code: 'BAD_PAGE_CURSOR' } }]);
  });

  it.each([
    [{ first: 101 }, /`first`.*must be between 1 and 100/],
    [{ first: 0 }, /`first`.*must be between 1 and 100/],
    [{ last: -1 }, /`last`.*must be between 1 and 100/],
    [{ first: 1, last: 1 }, /not be given together/],
    [{ filter: { and: [] } }, /filter\.and/],
    [{ filter: { labels: [{ key: 'a', operator: 'IN' }] } }, /filter\.labels\.0\.values/],
  ])('refuses %j as bad input', async (variables, message) => {
    const { data, errors } = await graph.run(PAGE, variables);
    expect(data).toBeNull();
    expect(errors).toMatchObject([
      { message: expect.stringMatching(message), extensions: { code: 'BAD_USER_INPUT' } },
    ]);
  });

  it('filters with and, or, not and labels', async () => {
    const labelled = await seedDeployment(graph.database, {
      name: 'labelled',
      labels: { team: 'web', tier: 'gold' },
    });
    const filter = {
      or: [
        { name: { startsWith: 'd9' } },
        { labels: [{ key: 'team', operator: 'IN', values: ['web', 'api'] }] },
      ],
      not: { name: { equals: 'd8' }, phase: { in: ['RUNNING'] } },
    };
    expect((await page({ filter })).names).toEqual(['d9', 'labelled']);
    await graph.database.pool.query('DELETE FROM deployment WHERE id = $1', [labelled.id]);
  });

  it('counts only when the total is selected, and reads no rows for it alone', async () => {
    const without = await graph.readStatements(() => graph.run('{ deployments(first: 2) { nodes { id } } }'));
    expect(without.filter((text) => /count\(/i.test(text))).toEqual([]);
    expect(without).toHaveLength(1);
    let answer;
    const only = await graph.readStatements(async () => {
      answer = await graph.run('{ deployments { totalCount } runtimes { t: totalCount } }');
    });
    expect(answer).toMatchObject({
      data: { deployments: { totalCount: ROWS }, runtimes: { t: expect.any(Number) } },
    });
    expect(only).toHaveLength(2);
  });

  it('reads `asOf` with the rows in one statement, and a watch after it misses nothing', async () => {
    const statements: string[] = await graph.readStatements(() =>
      graph.run('{ deployments { asOf nodes { id } } }'),
    );
    expect(statements).toEqual([expect.stringMatching(/FROM deployment .*slipway_log_position\(\)/s)]);

    const listed = await graph.run(
      `{ deployments { ...on DeploymentConnection { asOf nodes { id version } } } }`,
    );
    const { asOf } = listed.data.deployments;
    const [first] = rows;
    if (!first) throw new Error('no rows');
    await advanceDeployment(graph.database, first, { phase: 'INITIAL_SETUP' });
    const stream = await graph.stream(
      'subscription ($after: ChangeCursor) { watchDeployments(after: $after) { __typename ... on DeploymentChanged { deployment { id version } } } }',
      { after: asOf },
    );
    expect(await stream.next()).toMatchObject({
      data: {
        watchDeployments: { __typename: 'DeploymentChanged', deployment: { id: first.id, version: 2 } },
      },
    });
    await stream.close();
  });

  it('lists the deployments of a runtime', async () => {
    const { data } = await graph.run(
      '{ runtimes(first: 1) { nodes { deployments(first: 2, orderBy: { field: NAME }) { totalCount nodes { name } } } } }',
    );
    expect(data.runtimes.nodes[0].deployments).toEqual({
      totalCount: ROWS,
      nodes: [{ name: 'd3' }, { name: 'd4' }],
    });
  });
});

describe('text that no stored text can be', () => {
  const NUL = 'a\0';
  it.each([
    ['query ($x: ID) { changes(objectId: $x) { nodes { objectId } } }', { changes: { nodes: [] } }],
    ['query ($x: ID) { deployment(id: $x) { id } }', { deployment: null }],
    ['query ($x: String) { deployment(name: $x) { id } }', { deployment: null }],
    ['query ($x: String) { deployment(namespace: $x, name: "a") { id } }', { deployment: null }],
    ['query ($x: String) { runtime(name: $x) { id } }', { runtime: null }],
    ['query ($x: String) { agent(name: $x) { id } }', { agent: null }],
    ['query ($x: ID!) { node(id: $x) { id } }', { node: null }],
  ])('%s finds nothing, or is bad input', async (query, nothing) => {
    for (const x of [NUL, '\ud800', 'dep_1', '']) {
      const { data, errors } = await graph.run(query, { x });
      if (errors.length === 0) expect(data).toEqual(nothing);
      else expect(errors, JSON.stringify(x)).toMatchObject([{ extensions: { code: 'BAD_USER_INPUT' } }]);
    }
  });

  it.each([
    { name: { equals: NUL } },
    { name: { startsWith: NUL } },
    { name: { in: [NUL] } },
    { namespace: { notIn: [NUL] } },
    { labels: [{ key: NUL, operator: 'EXISTS' }] },
    { labels: [{ key: 'a', operator: 'IN', values: [NUL] }] },
  ])('the filter %j finds nothing, or is bad input', async (filter) => {
    const { errors } = await graph.run(PAGE, { filter });
    for (const error of errors) expect(error).toMatchObject({ extensions: { code: 'BAD_USER_INPUT' } });
  });
});
