import { readFileSync } from 'node:fs';
import { getIntrospectionQuery, type GraphQLSchema } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { hashOf } from '../../../src/access/secret.js';
import { createLogger } from '../../../src/cli/serve/logger.js';
import { buildGraph } from '../../../src/graph/assemble.js';
import { ERROR_CODES } from '../../../src/graph/errors.js';
import type { Slipway } from '../../../src/main.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { startTestGraph } from '../../support/graph.js';
import {
  everyOperation,
  findSentinels,
  MARKER,
  moveObjects,
  mutationInputs,
  plantSentinels,
  queryArguments,
  type Sentinels,
} from '../../support/sentinel.js';
import { startTestServer } from '../../support/server.js';
import { Transcript, type LiveStream } from '../../support/transcript.js';
import { waitFor } from '../../support/wait-for.js';
import { breakOnPurpose, FAILURES, provokeErrors, provokeFailures } from './provocations.js';

/** The token that the test itself comes with: a marker too, so that it is looked for in whatever leaves the server. */
const TOKEN = `slp_${MARKER}${'x'.repeat(32)}`;
/** Documents that select everything are larger than any client's. */
const ROOMY = {
  SLIPWAY_MAX_ALIASES: '10000',
  SLIPWAY_MAX_TOKENS: '1000000',
  SLIPWAY_MAX_COMPLEXITY: '1000000',
  SLIPWAY_MAX_BODY_BYTES: '4194304',
  SLIPWAY_MAX_DEPTH: '30',
};

/** Errors of load and of outages, which repeat nothing: each is one sentence of ours. */
const FIXED_SENTENCES = ['SLOW_CONSUMER', 'SNAPSHOT_TOO_LARGE', 'RATE_LIMITED', 'UNAVAILABLE'];

let test: TestDatabase;
let server: Slipway;
let schema: GraphQLSchema;
let planted: Sentinels;
let transcript: Transcript;
const logged: string[] = [];
/** Secrets of tokens that were made: each may stand in the one answer that shows it. */
const shown = new Map<string, string>();

beforeAll(async () => {
  const graph = await startTestGraph();
  schema = buildGraph(graph.deps);
  await graph.close();
  test = await createDatabase();
  server = await startTestServer({
    databaseUrl: test.url,
    env: { ...ROOMY, SLIPWAY_AUTH: 'tokens', SLIPWAY_BOOTSTRAP_TOKEN: TOKEN },
    log: createLogger({ level: 'trace', format: 'json', write: (line) => void logged.push(line) }),
  });
  const markers = await plantSentinels(server.store.database);
  planted = { ...markers, forbidden: [...markers.forbidden, hashOf(TOKEN)] };
  transcript = new Transcript(server.url);
  await breakOnPurpose(server.store.database);
});
afterAll(async () => {
  await server.close();
  await test.drop();
});

const post = (what: string, query: unknown, variables: object = {}, token: string | undefined = TOKEN) =>
  transcript.post(what, { query, variables }, token);

const inHeard = (by?: string): string[] =>
  transcript.heard
    .filter((one) => by === undefined || one.by === by)
    .flatMap(({ what, text }) => findSentinels(text, planted).map((found) => `${what}: ${found}`));

async function inChangeRows(): Promise<string[]> {
  const { rows } = await server.store.database.pool.query(
    'SELECT to_jsonb(c)::text AS row, p.after::text, p.before::text FROM change c LEFT JOIN change_payload p USING (seq)',
  );
  expect(rows.length).toBeGreaterThan(10);
  return findSentinels(JSON.stringify(rows), planted);
}

/** All subscriptions, each by both transports, with everything selected; `opened` when they hear what happens. */
async function openStreams(): Promise<Map<string, LiveStream>> {
  const operations = everyOperation(schema, 'subscription', {});
  const streams = new Map<string, LiveStream>();
  for (const { name, document } of operations) {
    streams.set(`${name} by websocket`, await transcript.websocket(name, { query: document }, TOKEN));
    streams.set(`${name} by sse`, await transcript.sse(name, { query: document }, TOKEN));
  }
  await waitFor(() => server.feed.stats.attached === streams.size, 'all streams are attached');
  const watching = [...streams].filter(([name]) => name.includes('watch'));
  await waitFor(() => watching.every(([, { text }]) => text.includes('SnapshotEnd')), 'the snapshots came');
  return streams;
}

async function moved(streams: Map<string, LiveStream>, why: string): Promise<void> {
  const lengths = new Map([...streams].map(([name, { text }]) => [name, text.length]));
  await moveObjects(server.store.database, planted, why);
  server.feed.wake();
  const { deployment, agent } = planted.ids;
  for (const [name, stream] of streams) {
    const wanted = /agent/i.test(name) ? agent : deployment;
    await waitFor(() => stream.text.slice(lengths.get(name)).includes(wanted), `${name} told of the change`);
  }
}

describe('the sentinel over a live server', () => {
  it('is in no answer of any query that selects everything', async () => {
    for (const { name, document, variables } of everyOperation(schema, 'query', queryArguments(planted))) {
      expect(await post(name, document, variables)).not.toContain('"errors"');
    }
    await post('introspection', getIntrospectionQuery());
    for (const path of ['/metrics', '/livez', '/readyz', '/', '/nowhere', '/graphql']) {
      await transcript.http(path, path, {
        headers: { accept: 'text/html', authorization: `Bearer ${TOKEN}` },
      });
    }
    const all = transcript.heard.map(({ text }) => text).join('\n');
    // Nothing was found because nothing was shown would prove nothing.
    for (const id of Object.values(planted.ids)) expect(all).toContain(id);
    expect(inHeard()).toEqual([]);
  });

  it('is in no answer of any mutation, done or refused', async () => {
    for (const { name, document, variables } of everyOperation(
      schema,
      'mutation',
      mutationInputs(planted),
      3,
    )) {
      const body = await post(name, document, variables);
      expect(body).not.toContain('"errors"');
      const secret = /slp_[\w-]{20,}/.exec(body)?.[0];
      if (secret !== undefined) shown.set(secret, name);
    }
    expect([...shown.values()]).toEqual(['mutation createToken']);
    expect(inHeard()).toEqual([]);
  });

  it('is in no event of any stream, by WebSocket and by server-sent events', async () => {
    const streams = await openStreams();
    expect(streams.size).toBe(10);
    for (const why of ['first', 'second']) await moved(streams, why);
    for (const stream of streams.values()) stream.close();
    await waitFor(() => server.feed.stats.streams === 0, 'the streams are closed');
    expect(inHeard('websocket')).toEqual([]);
    expect(inHeard('sse')).toEqual([]);
  });

  it('is in no error of any kind, by any transport', async () => {
    const { database } = server.store;
    const provoking = { transcript, schema, database, planted, token: TOKEN };
    expect(await provokeFailures(provoking)).toEqual([...FAILURES].sort());
    const codes = await provokeErrors(provoking);
    expect(ERROR_CODES.filter((code) => !codes.has(code))).toEqual(FIXED_SENTENCES);
    expect(inHeard()).toEqual([]);
    for (const by of ['http', 'websocket', 'sse'] as const) {
      const faults = transcript.heard.filter((one) => one.by === by && one.text.includes('"INTERNAL"'));
      expect(faults.length, by).toBeGreaterThan(0);
    }
    expect(logged.filter((line) => line.includes('operation failed')).length).toBeGreaterThan(2);
  });

  it('is in no log line, no change row, nor the printed schema', async () => {
    expect(logged.length).toBeGreaterThan(50);
    expect(logged.flatMap((line) => findSentinels(line, planted))).toEqual([]);
    expect(await inChangeRows()).toEqual([]);
    const printed = readFileSync(new URL('../../../schema.graphql', import.meta.url), 'utf8');
    expect(findSentinels(printed, planted)).toEqual([]);
  });

  it('nor is a new token, but in the one answer that shows it', async () => {
    const { rows } = await server.store.database.pool.query(
      'SELECT to_jsonb(c)::text, to_jsonb(p)::text FROM change c JOIN change_payload p USING (seq)',
    );
    for (const [secret, where] of shown) {
      const forbidden = [secret, hashOf(secret)];
      const elsewhere = transcript.heard.filter(({ what }) => what !== where).map(({ text }) => text);
      const everything = [...elsewhere, ...logged, JSON.stringify(rows)].join('\n');
      expect(findSentinels(everything, { forbidden })).toEqual([]);
    }
  });
});

// Last, since what it plants stays.
describe('the same scan', () => {
  it('finds a marker wherever one leaves the server', async () => {
    const before = transcript.heard.length;
    await server.store.database.pool.query(
      `UPDATE deployment SET version = version + 1, labels = $2 WHERE id = $1`,
      [planted.ids.deployment, { leak: planted.marked('leak') }],
    );
    await server.store.database.pool.query(
      `UPDATE agent SET version = version + 1, labels = $2 WHERE id = $1`,
      [planted.ids.agent, { leak: planted.marked('leak') }],
    );
    await post('a query', '{ deployments { nodes { labels } } }');
    const streams = await openStreams();
    await moved(streams, 'leak');
    for (const stream of streams.values()) stream.close();
    for (const name of streams.keys()) {
      const [what = '', by = ''] = name.split(' by ');
      const leaking = transcript.heard.slice(before).filter((one) => one.what === what && one.by === by);
      expect(leaking.flatMap(({ text }) => findSentinels(text, planted)).length, name).toBeGreaterThan(0);
    }
    expect(inHeard('http')).toEqual([expect.stringMatching(/^a query: /)]);
    expect(await inChangeRows()).not.toEqual([]);
    // A message of an error is logged; the driver's other texts are not.
    await server.store.database.pool.query(
      `CREATE OR REPLACE FUNCTION fail_on_purpose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '${MARKER}'; END $$`,
    );
    await post(
      'a mutation',
      'mutation { createRuntime(input: { name: "x", type: "external" }) { __typename } }',
    );
    expect(logged.flatMap((line) => findSentinels(line, planted)).length).toBeGreaterThan(0);
    expect(inHeard('http')).toHaveLength(1);
    const raw = await server.store.database.pool.query('SELECT * FROM deployment_internal');
    expect(findSentinels(JSON.stringify(raw.rows), planted)).toHaveLength(1);
  });
});
