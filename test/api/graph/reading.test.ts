import {
  getNamedType,
  isLeafType,
  isNonNullType,
  isObjectType,
  type GraphQLField,
  type GraphQLObjectType,
} from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { local } from '../../support/callers.js';
import { byBoth } from '../../support/executors.js';
import { startTestGraph, type TestGraph } from '../../support/graph.js';
import { everyOperation, plantSentinels, queryArguments, type Sentinels } from '../../support/sentinel.js';
import { advanceDeployment, seedDeployment, seedRelease, seedRuntime } from '../../support/seed.js';

let graph: TestGraph;
let planted: Sentinels;
beforeAll(async () => {
  graph = await startTestGraph();
  planted = await plantSentinels(graph.database);
  const runtime = await seedRuntime(graph.database, { labels: { tier: 'one' } });
  const release = await seedRelease(graph.database);
  for (const name of ['a', 'b', 'c']) {
    const row = await seedDeployment(graph.database, {
      name,
      runtimeId: runtime.id,
      currentReleaseId: release.id,
      labels: { name },
    });
    await advanceDeployment(graph.database, row, { phase: 'INITIAL_SETUP' });
  }
  // With a value in every column, so that one that was not read cannot pass for one that is empty.
  await graph.database.pool.query(
    `UPDATE deployment SET version = version + 1, deletion_requested_at = now(), error = '{"code":"Broken","message":"it broke","retryable":true}',
       conditions = '[{"type":"Ready","status":"FALSE","reason":"Broken","message":"broken","lastTransitionAt":"2026-01-01T00:00:00.000Z","observedGeneration":1}]',
       observed_runtime = '{"id":"w-1"}', environment_info = '{"os":"linux"}', env = '[{"name":"A","value":"x"}]', runtime_config = '{"a":1}',
       retry_requested = true, current_release_id = target_release_id, observed_generation = 1 WHERE id = $1`,
    [planted.ids.deployment],
  );
  await graph.database.pool.query(
    `UPDATE runtime SET version = version + 1, environment = 'prod', config = '{"a":1}', labels = '{"a":"b"}', deletion_requested_at = now(),
       conditions = '[{"type":"Ready","status":"TRUE","reason":"Fine","message":"","lastTransitionAt":"2026-01-01T00:00:00.000Z","observedGeneration":1}]' WHERE id = $1`,
    [planted.ids.runtime],
  );
});
afterAll(() => graph.close());

async function read(text: string, variables: Record<string, unknown> = {}, caller = local) {
  let answer: Awaited<ReturnType<TestGraph['run']>> | undefined;
  const statements = await graph.readStatements(async () => {
    answer = await graph.run(text, variables, caller);
  });
  return { data: answer?.data, errors: answer?.errors, statements };
}

const DEEP = `
  fragment R on Runtime { name status { conditions { type } } deployments(first: 2) { nodes { ...D } totalCount asOf } }
  fragment D on Deployment { name currentRelease { label } ... on Node { id } changes(first: 1) { nodes { version cursor } hasMore } }`;

describe('a read', () => {
  it.each([
    [
      'a page with relations',
      '{ deployments { nodes { name runtime { name } currentRelease { label } targetRelease { id } } } }',
    ],
    ['three levels', `{ runtimes { nodes { ...R } } } ${DEEP}`],
    [
      'a page in a page in a page',
      '{ runtimes { nodes { deployments { nodes { runtime { deployments(last: 1) { edges { cursor node { runtime { id } } } pageInfo { hasPreviousPage endCursor } } } } } } } }',
    ],
    [
      'one by id',
      'query ($deployment: ID!) { deployment(id: $deployment) { status { phase } runtime { deployments { totalCount } } changes { cursor nodes { at } } } }',
    ],
    ['one by name', '{ deployment(name: "a") { runtime { name } } }'],
    [
      'aliases with other arguments',
      '{ runtimes { nodes { a: deployments(first: 1) { nodes { name } } b: deployments(first: 2, orderBy: { field: NAME, direction: DESC }) { nodes { name } } a2: deployments(first: 1) { nodes { id } } } } }',
    ],
    [
      'a node',
      `query ($runtime: ID!) { node(id: $runtime) { id ... on Runtime { ...R } ... on Release { label } } } ${DEEP}`,
    ],
    [
      'nodes of all kinds',
      `query ($ids: [ID!]!) { nodes(ids: $ids) { __typename id ...R ...D ... on Agent { consumerLag lastHeartbeatAt changes { nodes { op } } } ... on Token { lastUsedAt } } } ${DEEP}`,
    ],
    [
      'agents with what stands beside them',
      '{ agents { nodes { name consumerLag lastHeartbeatAt changes(first: 2) { hasMore } } totalCount asOf } }',
    ],
    ['tokens', '{ tokens { nodes { name lastUsedAt roles } } }'],
    ['only numbers', '{ deployments { totalCount asOf } }'],
  ])('of %s is one statement', async (_what, text) => {
    const { ids } = planted;
    const all = { ...ids, ids: Object.values(ids) };
    const variables = Object.fromEntries(Object.entries(all).filter(([name]) => text.includes(`$${name}:`)));
    const { statements, errors, data } = await read(text, variables);
    expect(errors).toEqual([]);
    expect(statements).toHaveLength(1);
    expect(JSON.stringify(data)).not.toMatch(/^\{"\w+":(null|\{"nodes":\[\]\})/);
  });

  it('of several root fields is one statement each, and of nothing none', async () => {
    const both = await read(
      '{ runtimes { totalCount } a: deployments { nodes { id } } b: deployments(last: 1) { asOf } }',
    );
    expect(both.statements).toHaveLength(3);
    const none = await read(
      '{ deployments { __typename } nodes(ids: ["x"]) { id } deployment(id: "rt_1") { id } }',
    );
    expect(none).toMatchObject({ errors: [], statements: [] });
  });

  it('tells aliases with other arguments apart, and shares what is asked twice', async () => {
    const { data } =
      await read(`{ runtimes(first: 1, filter: { labels: [{ key: "tier", operator: EXISTS }] }) { nodes {
      one: deployments(first: 1) { nodes { name } }
      last: deployments(last: 1) { nodes { name } pageInfo { hasPreviousPage } }
      named: deployments(filter: { name: { in: ["b"] } }) { totalCount edges { node { name } } }
      same: deployments(first: 1) { nodes { version } edges { node { x: currentRelease { label } } } }
    } } }`);
    expect(data.runtimes.nodes).toEqual([
      {
        one: { nodes: [{ name: 'a' }] },
        last: { nodes: [{ name: 'c' }], pageInfo: { hasPreviousPage: true } },
        named: { totalCount: 1, edges: [{ node: { name: 'b' } }] },
        same: { nodes: [{ version: 2 }], edges: [{ node: { x: { label: expect.any(String) } } }] },
      },
    ]);
  });

  it('reads what @skip and @include leave, for each value of their variables', async () => {
    const text = `query ($with: Boolean!) { deployments(first: 1) { nodes { name @skip(if: $with) runtime @include(if: $with) { name } } } }`;
    const lean = await read(text, { with: false });
    const full = await read(text, { with: true });
    expect([
      lean.statements[0]?.includes('FROM runtime'),
      full.statements[0]?.includes('FROM runtime'),
    ]).toEqual([false, true]);
    expect(full.data.deployments.nodes[0].runtime.name).toEqual(expect.any(String));
  });

  it('fails in its own place below another field, and leaves the others', async () => {
    const { data, errors } = await read(
      '{ runtimes { nodes { name bad: deployments(after: "nonsense") { totalCount } } } deployments { totalCount } }',
    );
    expect(data).toBeNull();
    expect(errors?.[0]).toMatchObject({
      path: ['runtimes', 'nodes', 0, 'bad'],
      extensions: { code: 'BAD_PAGE_CURSOR' },
    });
    const sized = await read('{ runtimes { nodes { deployments(first: 0) { totalCount } } } }');
    expect(sized.errors?.[0]).toMatchObject({
      path: ['runtimes', 'nodes', 0, 'deployments'],
      extensions: { code: 'BAD_USER_INPUT' },
    });
    const timeline = await read('{ deployments { nodes { changes(first: 101) { hasMore } } } }');
    expect(timeline.errors?.[0]).toMatchObject({ extensions: { code: 'BAD_USER_INPUT' } });
  });

  it('is the same by both executors, for everything that can be selected', async () => {
    for (const { name, document, variables } of everyOperation(
      graph.schema,
      'query',
      queryArguments(planted),
      5,
    )) {
      if (/serverInfo|head/.test(name)) continue; // they tell the time
      const { stock, compiled } = await byBoth({
        schema: graph.schema,
        text: document,
        variables,
        contextOf: () => graph.contextOf(),
      });
      expect(compiled, name).toEqual(stock);
    }
  });
});

/** Fields of a row that need no argument, with a selection for what they give. */
function selectable(
  type: GraphQLObjectType,
): { readonly field: GraphQLField<unknown, unknown>; readonly text: string }[] {
  return Object.values(type.getFields()).flatMap((field) => {
    if (
      field.args.some(({ type: given, defaultValue }) => isNonNullType(given) && defaultValue === undefined)
    ) {
      return [];
    }
    const text = textOf(field, 3);
    return text === undefined ? [] : [{ field, text }];
  });
}

function textOf(field: GraphQLField<unknown, unknown>, depth: number): string | undefined {
  const inner = getNamedType(field.type);
  if (isLeafType(inner)) return field.name;
  if (!isObjectType(inner) || depth === 0) return undefined;
  const below = Object.values(inner.getFields()).flatMap((one) => textOf(one, depth - 1) ?? []);
  return below.length === 0 ? undefined : `${field.name} { ${below.join(' ')} }`;
}

describe('a field', () => {
  it.each(['Deployment', 'Runtime', 'Release', 'Agent', 'Token'])(
    'of %s declares every column that it reads: alone it is what it is in the whole',
    async (name) => {
      const type = graph.schema.getType(name);
      if (!isObjectType(type)) throw new Error(`no type ${name}`);
      const id = planted.ids[name.toLowerCase() as keyof Sentinels['ids']];
      const of = (fields: string) => `query ($id: ID!) { node(id: $id) { ... on ${name} { ${fields} } } }`;
      const fields = selectable(type).flatMap(({ field, text }) => partsOf(field, text));
      expect(fields.length).toBeGreaterThan(8);
      const whole = await graph.run(of(fields.join(' ')), { id });
      expect(whole.errors).toEqual([]);
      const alone: Record<string, unknown> = {};
      for (const text of fields) {
        const { data, errors } = await graph.run(of(text), { id });
        expect(errors, text).toEqual([]);
        merge(alone, data.node);
      }
      expect(alone).toEqual(whole.data.node);
    },
  );
});

/** `status` shows its row: each field of it stands alone, too. */
function partsOf(field: GraphQLField<unknown, unknown>, text: string): string[] {
  const inner = getNamedType(field.type);
  const read = field.extensions['read'] as { kind?: string } | undefined; // what `sameRow` says
  if (read?.kind !== 'sameRow' || !isObjectType(inner)) return [text];
  return selectable(inner).map((one) => `${field.name} { ${one.text} }`);
}

function merge(into: Record<string, unknown>, from: Record<string, unknown>): void {
  for (const [key, value] of Object.entries(from)) {
    const known = into[key];
    if (isRecord(known) && isRecord(value)) merge(known, value);
    else into[key] = value;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
