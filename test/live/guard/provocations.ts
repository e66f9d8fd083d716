/** Every kind of failure and error of the API, provoked on a live server, for a scan of what they say. */
import type { GraphQLSchema } from 'graphql';
import { expect } from 'vitest';

import { decodeCursor, encodeCursor } from '../../../src/kernel/cursor.js';
import { newId } from '../../../src/kernel/ids.js';
import type { Database } from '../../../src/store/database.js';
import {
  everyOperation,
  MARKER,
  moveObjects,
  mutationInputs,
  type Sentinels,
} from '../../support/sentinel.js';
import type { Transcript } from '../../support/transcript.js';
import { waitFor } from '../../support/wait-for.js';

export interface Provoking {
  readonly transcript: Transcript;
  readonly schema: GraphQLSchema;
  readonly database: Database;
  readonly planted: Sentinels;
  /** An ADMIN's. */
  readonly token: string;
}

/** The names of all failures of the schema. */
export const FAILURES = [
  'AgentConflict',
  'AlreadyExists',
  'IdempotencyKeyReused',
  'IncompatibleProtocol',
  'InvalidInput',
  'InvalidTransition',
  'LockHeld',
  'NotFound',
  'Terminating',
  'VersionConflict',
] as const;

/** Whatever makes a runtime named `broken` fails in the database, with markers in all that a driver may repeat. */
export async function breakOnPurpose(database: Database): Promise<void> {
  const says = `'${MARKER}-of-the-driver'`;
  await database.pool.query(`
    CREATE FUNCTION fail_on_purpose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF NEW.name = 'broken' THEN
        RAISE EXCEPTION 'on purpose' USING DETAIL = ${says}, HINT = ${says}, COLUMN = ${says}, CONSTRAINT = ${says};
      END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER fail BEFORE INSERT ON runtime FOR EACH ROW EXECUTE FUNCTION fail_on_purpose()`);
}

/** Failures as data, each with everything that it says. Gives the codes that came. */
export async function provokeFailures(provoking: Provoking): Promise<string[]> {
  const { transcript, schema, database, planted, token } = provoking;
  const codes = new Set<string>();
  const inputs = mutationInputs(planted);
  const ask = async (field: string, input: object): Promise<void> => {
    const operations = everyOperation(schema, 'mutation', { ...inputs, [field]: { input } }, 3);
    const document = operations.find(({ name }) => name === `mutation ${field}`)?.document;
    const body = await transcript.post(`refused ${field}`, { query: document, variables: { input } }, token);
    expect(body).not.toContain('"errors"');
    for (const [, code = ''] of body.matchAll(/"\w+_code":"(\w+)"/g)) codes.add(code);
  };
  const { deployment, runtime, release } = planted.ids;
  const { rows } = await database.pool.query<{ version: number }>(
    'SELECT version FROM deployment WHERE id = $1',
    [deployment],
  );
  const current = { id: deployment, expectedVersion: rows[0]?.version };
  await ask('undeployDeployment', { id: deployment, expectedVersion: 999 });
  await ask('undeployDeployment', { id: newId('DEPLOYMENT') });
  await ask('patchDeploymentStatus', { ...current, phase: 'DELETED' });
  await ask('beginRollout', { id: deployment });
  await ask('createRuntime', { name: 'place', type: 'external' });
  await ask('createRuntime', { name: 'Not a name!', type: 'none' });
  const agent = { name: 'third', serviceTypes: [], protocolVersion: 1 };
  await ask('registerAgent', { ...agent, topic: 'worker' });
  await ask('registerAgent', { ...agent, protocolVersion: 99 });
  for (const label of ['one', 'two']) {
    const resources = [{ name: 'web', serviceType: 'process' }];
    await ask('createRelease', { app: 'shop', label, resources, idempotencyKey: 'the same' });
  }
  const doomed = { name: 'doomed', runtime: { id: runtime }, release: { id: release } };
  await ask('applyDeployment', doomed);
  const made = await database.pool.query<{ id: string }>(`SELECT id FROM deployment WHERE name = 'doomed'`);
  await ask('deleteDeployment', { id: made.rows[0]?.id });
  await ask('applyDeployment', { ...doomed, labels: { a: 'b' } });
  return [...codes].sort();
}

type Case = readonly [code: string, query: string, variables?: object, as?: string];

/** Errors of whole operations, by all transports. Gives the codes that came; each case must give its own. */
export async function provokeErrors(provoking: Provoking): Promise<ReadonlySet<string>> {
  const { transcript, token } = provoking;
  const wrong = `slp_${MARKER}${'y'.repeat(40)}`;
  const viewer = await tokenOf(provoking, { name: 'viewer', roles: ['VIEWER'] });
  const agent = await tokenOf(provoking, { name: 'agent', roles: ['AGENT'], agentName: 'worker' });
  const expired = await expiredCursor(provoking);
  const operations: readonly Case[] = [
    ['GRAPHQL_PARSE_FAILED', '{'],
    ['GRAPHQL_VALIDATION_FAILED', '{ nothing deployment { token } }'],
    ['BAD_USER_INPUT', 'query ($n: Int) { deployments(first: $n) { totalCount } }', { n: 'many' }],
    ['BAD_USER_INPUT', '{ deployment(name: "shop", id: "dep_x") { id } }'],
    ['BAD_PAGE_CURSOR', '{ deployments(after: "made-up") { totalCount } }'],
    ['CURSOR_INVALID', '{ changes(after: "made-up") { cursor } }'],
    ['CURSOR_EXPIRED', `{ changes(after: "${expired}") { cursor } }`],
    ['TOO_COMPLEX', `{ ${'head @skip(if: false) '.repeat(25)} }`],
    ['UNAUTHENTICATED', '{ viewer { id } }', {}, wrong],
    ['FORBIDDEN', '{ tokens { totalCount } }', {}, viewer],
    ['INTERNAL', 'mutation { createRuntime(input: { name: "broken", type: "external" }) { __typename } }'],
  ];
  const streams: readonly Case[] = [
    ['GRAPHQL_PARSE_FAILED', 'subscription {'],
    ['GRAPHQL_VALIDATION_FAILED', 'subscription { watchTokens { hash } }'],
    [
      'BAD_USER_INPUT',
      'subscription ($f: AgentFilter) { watchAgents(filter: $f) { __typename } }',
      { f: { name: 1 } },
    ],
    ['CURSOR_INVALID', 'subscription { watchAgents(after: "made-up") { __typename } }'],
    ['CURSOR_EXPIRED', `subscription { deploymentPhaseChanged(after: "${expired}") { cursor } }`],
    ['FORBIDDEN', 'subscription { watchDeployments { __typename } }', {}, agent],
  ];
  for (const [code, query, variables, as = token] of operations) {
    expect(await transcript.post(code, { query, variables: variables ?? {} }, as)).toContain(
      `"code":"${code}"`,
    );
  }
  for (const [code, query, variables, as = token] of streams) {
    for (const by of ['sse', 'websocket'] as const) {
      const stream = await transcript[by](code, { query, variables: variables ?? {} }, as);
      await waitFor(() => stream.text.includes(`"code":"${code}"`), `${code} by ${by}`);
      stream.close();
    }
  }
  const refused = await transcript.websocket('a wrong token', undefined, wrong);
  await waitFor(() => refused.text.includes('closed 4'), 'the socket was closed');
  await provokeBadRequests(provoking);
  await provokeFaultsOfReads(provoking);
  return new Set([...operations, ...streams].map(([code]) => code));
}

async function provokeBadRequests({ transcript, token }: Provoking): Promise<void> {
  const headers = { authorization: `Bearer ${token}` };
  const json = { ...headers, 'content-type': 'application/json' };
  const requests: readonly (readonly [path: string, RequestInit])[] = [
    ['/graphql', { method: 'POST', headers: json, body: '{' }],
    ['/graphql', { method: 'POST', headers: json, body: '[]' }],
    ['/graphql', { method: 'POST', headers: json, body: JSON.stringify({ query: 'x'.repeat(5_000_000) }) }],
    ['/graphql', { method: 'POST', headers: { ...headers, 'content-type': 'text/plain' }, body: '{}' }],
    [
      '/graphql',
      { method: 'POST', headers: { ...json, origin: 'https://foreign.example' }, body: '{"query":"{head}"}' },
    ],
    ['/graphql', { method: 'PUT', headers: json, body: '{}' }],
    [`/graphql?query=${encodeURIComponent('mutation { __typename }')}`, { headers }],
    [`/graphql/${MARKER}?${MARKER}`, { headers }],
  ];
  for (const [path, request] of requests) {
    const before = transcript.heard.length;
    // A body that is too large may be answered by a cut.
    await transcript.http('a bad request', path, request).catch(() => '');
    const [answer] = transcript.heard.slice(before);
    if (answer) expect(answer.text).toMatch(/^4\d\d /);
  }
}

/** The read role loses a table under a running server: queries and the relations of events fail. */
async function provokeFaultsOfReads({ transcript, database, planted, token }: Provoking): Promise<void> {
  await database.pool.query('REVOKE ALL ON runtime FROM slipway_read');
  expect(await transcript.post('reads', { query: '{ runtimes { nodes { id } } }' }, token)).toContain(
    '"INTERNAL"',
  );
  const query = 'subscription { deploymentPhaseChanged { cursor deployment { runtime { name } } } }';
  const streams = [
    await transcript.websocket('reads', { query }, token),
    await transcript.sse('reads', { query }, token),
  ];
  await waitFor(async () => {
    // Again and again, since nothing tells when a stream that begins now has begun.
    await moveObjects(database, planted, 'fault');
    return streams.every(({ text }) => text.includes('"INTERNAL"'));
  }, 'the events failed');
  for (const stream of streams) stream.close();
  await database.pool.query('GRANT SELECT ON runtime TO slipway_read');
}

async function tokenOf({ transcript, token }: Provoking, input: object): Promise<string> {
  const query = `mutation ($input: CreateTokenInput!) { createToken(input: $input) { ... on CreateTokenPayload { secret } } }`;
  const body = await transcript.post('mutation createToken', { query, variables: { input } }, token);
  return /slp_[\w-]+/.exec(body)?.[0] ?? '';
}

async function expiredCursor({ transcript, token }: Provoking): Promise<string> {
  const { data } = JSON.parse(await transcript.post('head', { query: '{ head }' }, token)) as {
    data: { head: string };
  };
  const cursor = decodeCursor(data.head);
  if (cursor?.form !== 'at') throw new Error('head is a plain cursor');
  return encodeCursor({ ...cursor, epoch: 'f'.repeat(32) });
}
