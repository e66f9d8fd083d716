import { createConnection } from 'node:net';
import { once } from 'node:events';

import { auditServer } from 'graphql-http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { Actor } from '../../../src/access/actor.js';
import { AuthFailure } from '../../../src/access/errors.js';
import {
  actor,
  SECRET,
  startTestTransport,
  type GraphQLBody,
  type TestTransport,
} from '../../support/transport-server.js';

describe('GraphQL over HTTP', () => {
  let server: TestTransport;
  beforeAll(async () => {
    server = await startTestTransport({ allowedOrigins: ['https://app.example'] });
  });
  afterAll(() => server.close());

  it('passes every audit of the specification', async () => {
    const results = await auditServer({ url: server.url });
    const failed = results
      .filter(({ status }) => status !== 'ok')
      .map((result) => `${result.id} ${result.name}: ${'reason' in result ? result.reason : ''}`);
    expect(failed).toEqual([]);
    expect(results).toHaveLength(61);
  });

  it('answers a query by POST and by GET alike', async () => {
    const byPost = await server.post({ query: '{ head }' });
    const byGet = await fetch(`${server.url}?query=${encodeURIComponent('{ head }')}`);
    expect(byPost.body).toEqual({ data: { head: 'here' } });
    expect(await byGet.json()).toEqual(byPost.body);
  });

  it('runs mutations by POST and never by GET', async () => {
    const mutation = 'mutation { createRelease(name: "x") }';
    const { calls } = server.mutations;
    expect((await server.post({ query: mutation })).body).toEqual({ data: { createRelease: 'x' } });
    const byGet = await fetch(`${server.url}?query=${encodeURIComponent(mutation)}`);
    expect(byGet.status).toBe(405);
    expect(server.mutations.calls).toBe(calls + 1);
  });

  it('says the request id that it was sent, and makes one otherwise', async () => {
    expect(
      (await server.post({ query: '{ head }' }, { 'x-request-id': 'build-4711.a' })).headers.get(
        'x-request-id',
      ),
    ).toBe('build-4711.a');
    const made = (
      await server.post({ query: '{ head }' }, { 'x-request-id': 'no spaces allowed' })
    ).headers.get('x-request-id');
    expect(made).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('masks what a resolver throws, and logs it once under the request id', async () => {
    const { body } = await server.post(
      { query: '{ node(id: "1") { broken leaking } }' },
      { 'x-request-id': 'masked-one' },
    );
    expect(body.errors).toHaveLength(2);
    for (const error of body.errors ?? []) {
      expect(error.extensions).toEqual({ code: 'INTERNAL', requestId: 'masked-one' });
    }
    expect(JSON.stringify(body)).not.toContain('hunter2');
    const lines = server.logged.filter(
      ({ level, fields }) => level === 'error' && fields['requestId'] === 'masked-one',
    );
    expect(lines).toHaveLength(2);
    expect(String((lines[0]?.fields['err'] as Error).message)).toContain(SECRET); // the operator needs the cause
  });

  it.each([
    ['text/plain', '{"query":"{ head }"}'],
    ['application/x-www-form-urlencoded', 'query=%7Bhead%7D'],
    ['multipart/form-data; boundary=x', '--x--'],
    ['application/graphql', '{ head }'],
    ['application/json; charset=utf-16', '{}'],
  ])('refuses a body of type %s with 415', async (type, body) => {
    const response = await fetch(server.url, { method: 'POST', headers: { 'content-type': type }, body });
    expect(response.status).toBe(415);
    expect(((await response.json()) as GraphQLBody).errors).toHaveLength(1); // refusals are GraphQL errors
  });

  it('refuses a packed body with 415', async () => {
    expect((await server.post({ query: '{ head }' }, { 'content-encoding': 'gzip' })).status).toBe(415);
  });

  it('refuses a body of 65 KiB with 413, whether its length is told or not', async () => {
    const body = JSON.stringify({ query: `{ head } #${'x'.repeat(65 * 1024)}` });
    const told = await server.post(body);
    expect(told.status).toBe(413);
    expect(told.body.errors).toMatchObject([{ extensions: { code: 'TOO_COMPLEX' } }]);
    expect(JSON.stringify(told.body)).not.toMatch(/\d/);
    const untold = await fetch(server.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: new Blob([body]).stream(),
      duplex: 'half',
    } as RequestInit); // `duplex` is missing in the types
    expect(untold.status).toBe(413);
  });

  it('refuses a list of operations', async () => {
    const { status, body } = await server.post([{ query: '{ head }' }, { query: '{ head }' }]);
    expect(status).toBe(400);
    expect(body.data).toBeUndefined();
  });

  it.each([
    ['a request', '/graphql?query=%7Bhead%7D', ''],
    ['a probe', '/livez', ''],
    [
      'a WebSocket handshake',
      '/graphql',
      'connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-protocol: graphql-transport-ws\r\n',
    ],
  ])('refuses %s with two Host headers with 400', async (_what, path, more) => {
    const { host, hostname, port } = new URL(server.url);
    const socket = createConnection(Number(port), hostname);
    socket.write(`GET ${path} HTTP/1.1\r\nhost: ${host}\r\nHost: evil.example\r\n${more}\r\n`);
    const [answer] = (await once(socket, 'data')) as [Buffer]; // no encoding is set
    socket.destroy();
    expect(answer.toString()).toMatch(/^HTTP\/1.1 400 /);
  });

  it('refuses a foreign Host and a foreign Origin with 403', async () => {
    expect((await server.post({ query: '{ head }' }, { origin: 'https://evil.example' })).status).toBe(403);
    const socket = createConnection(server.transport.port, '127.0.0.1');
    socket.write('GET /graphql?query={head} HTTP/1.1\r\nhost: evil.example\r\n\r\n');
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(String(answer)).toMatch(/^HTTP\/1.1 403 /);
    socket.destroy();
  });

  it('lets a listed origin read answers, and no other', async () => {
    const preflight = await fetch(server.url, {
      method: 'OPTIONS',
      headers: { origin: 'https://app.example', 'access-control-request-method': 'POST' },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-origin')).toBe('https://app.example');
    expect(preflight.headers.get('access-control-allow-headers')).toContain('authorization');
    expect(
      (await server.post({ query: '{ head }' }, { origin: 'https://app.example' })).headers.get(
        'access-control-allow-origin',
      ),
    ).toBe('https://app.example');
    expect(
      (await server.post({ query: '{ head }' }, { origin: server.transport.url })).headers.get(
        'access-control-allow-origin',
      ),
    ).toBeNull();
  });

  it('serves GraphiQL to browsers, whole and packed', async () => {
    const response = await fetch(server.url, {
      headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' },
    });
    expect(response.headers.get('content-encoding')).toBe('gzip');
    const page = await response.text();
    expect(page).toContain('subscriptionsProtocol":"WS"');
    expect(page.match(/"query":"# /g)).toHaveLength(3);
    expect(page).not.toMatch(/<(script|link)[^>]+(src|href)="https?:/);
    const again = await fetch(server.url, {
      headers: { accept: 'text/html', 'if-none-match': response.headers.get('etag') ?? '' },
    });
    expect(again.status).toBe(304);
  });

  it('says where GraphQL is to whoever comes elsewhere', async () => {
    expect((await fetch(`${server.transport.url}/elsewhere`)).status).toBe(404);
    expect((await fetch(server.transport.url, { redirect: 'manual' })).headers.get('location')).toBe(
      '/graphql',
    );
  });

  it('is alive, ready and measured', async () => {
    expect((await fetch(`${server.transport.url}/livez`)).status).toBe(200);
    expect((await fetch(`${server.transport.url}/readyz`)).status).toBe(200);
    const metrics = await (await fetch(`${server.transport.url}/metrics`)).text();
    expect(metrics).toMatch(/slipway_operations_total\{transport="http",kind="query",outcome="ok"\} \d+/);
    expect(metrics).toContain('slipway_subscriptions 0');
  });
});

describe('a server with tokens', () => {
  let server: TestTransport;
  beforeAll(async () => {
    server = await startTestTransport({
      tokens: new Map<string, Actor | AuthFailure>([
        ['viewer', actor('v')],
        ['admin', actor('a', ['ADMIN'])],
        ['old', new AuthFailure('expired')],
      ]),
    });
  });
  afterAll(() => server.close());
  const as = (token: string) => ({ authorization: `Bearer ${token}` });

  it.each([[{}], [as('nobody')], [as('old')], [{ authorization: 'Basic eDp5' }]])(
    'answers 401 to %j',
    async (headers) => {
      const { status, body, headers: answered } = await server.post({ query: '{ head }' }, headers);
      expect(status).toBe(401);
      expect(answered.get('www-authenticate')).toBe('Bearer');
      expect(body.errors).toMatchObject([{ extensions: { code: 'UNAUTHENTICATED' } }]);
    },
  );

  it('refuses what the roles do not allow before anything runs', async () => {
    const mutation = { query: 'mutation { ok: createRelease(name: "x") createToken(name: "y") }' };
    const { body } = await server.post(mutation, as('viewer'));
    expect(body).toMatchObject({ errors: [{ extensions: { code: 'FORBIDDEN' } }] });
    expect(body.data).toBeUndefined();
    expect(server.mutations.calls).toBe(0);
    expect((await server.post(mutation, as('admin'))).body.data).toEqual({ ok: 'x', createToken: 'made' });
  });

  it('finds a forbidden field behind fragments and directives', async () => {
    const query =
      'query ($no: Boolean = false) { ...F } fragment F on Query { ... @include(if: $no) { tokens } }';
    const { body } = await server.post({ query }, as('viewer'));
    expect(body.errors).toMatchObject([{ extensions: { code: 'FORBIDDEN' } }]);
  });

  it('shows its metrics to those who may use it', async () => {
    expect((await fetch(`${server.transport.url}/metrics`)).status).toBe(401);
    expect((await fetch(`${server.transport.url}/metrics`, { headers: as('viewer') })).status).toBe(200);
    expect((await fetch(`${server.transport.url}/livez`)).status).toBe(200);
  });
});

describe('readiness', () => {
  it('names what is not well', async () => {
    const server = await startTestTransport({
      readiness: [
        { name: 'database', well: () => Promise.reject(new Error(SECRET)) },
        { name: 'feed', well: () => true },
        { name: 'migrations', well: () => false },
      ],
    });
    const response = await fetch(`${server.transport.url}/readyz`);
    expect(response.status).toBe(503);
    expect(await response.text()).toBe('not ready: database, migrations\n');
    expect((await fetch(`${server.transport.url}/livez`)).status).toBe(200);
    await server.close();
  });
});
