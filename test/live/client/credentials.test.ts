import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import {
  createSlipwayClient,
  DeploymentPhaseChangedDocument,
  DeploymentsDocument,
  WatchDeploymentsDocument,
  watchObjects,
  type SlipwayClient,
  type SlipwayClientOptions,
  type SlipwayDocument,
} from '../../../src/client/index.js';
import type { Slipway } from '../../../src/main.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { makeDeployment, patch } from '../../support/rig.js';
import { startTestServer } from '../../support/server.js';
import { waitFor } from '../../support/wait-for.js';

const ADMIN = `slp_${'a'.repeat(40)}`;

/** A document of one's own: its types are said where it is written. */
const CREATE_TOKEN: SlipwayDocument<
  { createToken: { secret: string; token: { id: string } } },
  { input: Readonly<Record<string, unknown>> }
> = `mutation ($input: CreateTokenInput!) {
  createToken(input: $input) { ... on CreateTokenPayload { secret token { id } } ... on Failure { message } }
}`;

let database: TestDatabase;
let server: Slipway;
let admin: SlipwayClient;
const clients: SlipwayClient[] = [];

beforeAll(async () => {
  database = await createDatabase();
  server = await startTestServer({
    databaseUrl: database.url,
    env: { SLIPWAY_AUTH: 'tokens', SLIPWAY_BOOTSTRAP_TOKEN: ADMIN },
  });
  admin = connect({ token: ADMIN, transport: 'sse' });
  clients.length = 0;
});
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
});
afterAll(async () => {
  admin.close();
  await server.close();
  await database.drop();
});

function connect(options: Partial<SlipwayClientOptions>): SlipwayClient {
  const timing = { retryBaseMs: 20, retryCapMs: 200 };
  const client = createSlipwayClient({
    url: `${server.url}/graphql`,
    webSocketImpl: WebSocket,
    timing,
    ...options,
  });
  clients.push(client);
  return client;
}

async function makeToken(facts: {
  namespaces?: string[];
  expiresAt?: string;
}): Promise<{ id: string; secret: string }> {
  const input = { name: 'reader', roles: ['VIEWER'], ...facts };
  const { createToken } = await admin.mutate(CREATE_TOKEN, { input });
  return { id: createToken.token.id, secret: createToken.secret };
}

const narrow = (id: string, namespaces: string[]) =>
  admin.mutate('mutation ($input: UpdateTokenInput!) { updateToken(input: $input) { __typename } }', {
    input: { id, namespaces },
  });
const revoke = (id: string) =>
  admin.mutate('mutation ($input: RevokeTokenInput!) { revokeToken(input: $input) { __typename } }', {
    input: { id },
  });

let made = 0;
const unique = (name: string): string => `${name}-${(made += 1)}`;

describe.each(['websocket', 'sse'] as const)('a subscription over %s', (transport) => {
  it('holds what its token may see after its namespaces were changed', async () => {
    const [left, right] = [unique('left'), unique('right')];
    await makeDeployment(admin, unique('app'), left);
    const inRight = await makeDeployment(admin, unique('app'), right);
    const { id, secret } = await makeToken({ namespaces: [left] });
    const watch = watchObjects(connect({ token: secret, transport }), WatchDeploymentsDocument, {});
    await watch.ready;
    expect([...watch.objects.values()].map(({ namespace }) => namespace)).toEqual([left]);
    await narrow(id, [right]);
    await waitFor(() => watch.objects.has(inRight.id), 'the other namespace');
    expect([...watch.objects.keys()]).toEqual([inRight.id]);
  });

  it('ends for good when its token is revoked', async () => {
    const { id, secret } = await makeToken({});
    const watch = watchObjects(connect({ token: secret, transport }), WatchDeploymentsDocument, {});
    await watch.ready;
    await revoke(id);
    await expect(watch.closed).rejects.toMatchObject({ name: 'SlipwayStreamError', code: 'UNAUTHENTICATED' });
  });

  it('goes on with a fresh token when its own expired, and misses nothing', async () => {
    const name = unique('expiry');
    const pending = await makeDeployment(admin, name);
    const short = await makeToken({ expiresAt: new Date(Date.now() + 1_500).toISOString() });
    const long = await makeToken({});
    const asked: string[] = [];
    const token = (): string => {
      const { secret } = asked.length < 2 ? short : long;
      asked.push(secret);
      return secret;
    };
    const stream = connect({ token, transport }).subscribe(DeploymentPhaseChangedDocument, {
      filter: { name: { equals: name } },
    });
    await stream.opened;
    expect(asked).toHaveLength(2); // one for `head`, one for the subscription
    await waitFor(() => asked.length > 2, 'another token');
    await patch(admin, pending, { phase: 'INITIAL_SETUP' });
    const { value } = await stream.next();
    expect(value?.deploymentPhaseChanged.to).toBe('INITIAL_SETUP');
  });
});

describe('a request', () => {
  it('says by its code why it was not answered', async () => {
    await expect(connect({}).query(DeploymentsDocument)).rejects.toMatchObject({
      name: 'SlipwayRequestError',
      code: 'UNAUTHENTICATED',
      status: 401,
    });
    const { secret } = await makeToken({});
    const viewer = connect({ token: secret });
    const input = { name: 'no', type: 'external' };
    const document = 'mutation ($input: CreateRuntimeInput!) { createRuntime(input: $input) { __typename } }';
    await expect(viewer.mutate(document, { input })).rejects.toMatchObject({ code: 'FORBIDDEN' });
    await expect(viewer.query('{ nothing }')).rejects.toMatchObject({ code: 'GRAPHQL_VALIDATION_FAILED' });
    const aborted = viewer.query(DeploymentsDocument, {}, { signal: AbortSignal.abort() });
    await expect(aborted).rejects.toMatchObject({ code: 'ABORTED', status: null });
    await expect(viewer.query(DeploymentsDocument, {}, { timeoutMs: 0 })).rejects.toMatchObject({
      code: 'TIMEOUT',
    });
  });

  it('says that nobody answered', async () => {
    await expect(
      connect({ url: 'http://127.0.0.1:9/graphql' }).query(DeploymentsDocument),
    ).rejects.toMatchObject({ code: 'NETWORK', status: null, requestId: null });
  });
});
