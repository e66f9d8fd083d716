import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { DOCUMENT_ATTACKS, type AttackAnswer } from '../../support/attacks.js';
import { openEventStream } from '../../support/event-stream.js';
import { openAcknowledged, openSocket, subscribe, type RawSocket } from '../../support/raw-socket.js';
import { startStockServer, type StockServer } from '../../support/stock-server.js';
import { localContext, startTestTransport, type TestTransport } from '../../support/transport-server.js';
import { waitFor } from '../../support/wait-for.js';

/**
 * The same attacks by HTTP, event stream and WebSocket (which carries every operation here, so that the documents are
 * not refused for their kind alone). None may succeed, none may end a sibling, and no answer may tell a limit.
 */
const hardened = { introspection: false, graphiql: false, getQueries: false, socketMutations: true };
const OPEN = 'subscription { deploymentPhaseChanged { value } }';

async function bySocket(socket: RawSocket, query: string): Promise<AttackAnswer> {
  socket.send(subscribe('attack', query));
  const { type, payload } = await socket.next();
  if (type === 'error') return { errors: payload as AttackAnswer['errors'] & object }; // as the protocol has it
  await socket.next('complete');
  return payload as AttackAnswer; // as the protocol has it
}

describe('attacks', () => {
  let server: TestTransport;
  let open: TestTransport;
  let socket: RawSocket;
  const transports: Record<string, (query: string) => Promise<AttackAnswer>> = {
    http: async (query) => (await server.post({ query })).body,
    sse: async (query) => (await (await openEventStream(server.url, { query })).next())?.data ?? {},
    ws: (query) => bySocket(socket, query),
  };
  beforeAll(async () => {
    const limits = { messagesBurst: 10_000 };
    server = await startTestTransport({ settings: hardened, limits });
    open = await startTestTransport({ settings: { socketMutations: true }, limits });
    socket = await openAcknowledged(server.wsUrl);
  });
  afterAll(async () => {
    await server.close();
    await open.close();
  });

  describe.each(Object.keys(transports))('by %s', (transport) => {
    it.each(DOCUMENT_ATTACKS)('refuses $name', async (attack) => {
      const sibling = await openAcknowledged(server.wsUrl);
      sibling.send(subscribe('s', OPEN));
      await waitFor(() => server.topics.a.streams.size > 0, 'the sibling is open');
      const answer = (await transports[transport]?.(attack.query)) ?? {};
      expect(attack.succeeded(answer)).toBe(false);
      for (const { message } of answer.errors ?? []) {
        expect(message).not.toMatch(/\b(limit|max(imum)?)\b.*\d/i);
      }
      server.topics.a.publish(1);
      expect(await sibling.next()).toMatchObject({ id: 's', type: 'next' });
      sibling.close();
      await sibling.closed;
    });
  });

  it('keeps a socket open on which every attack was tried', async () => {
    const victim = await openAcknowledged(server.wsUrl);
    victim.send(subscribe('sibling', OPEN));
    await waitFor(() => server.topics.a.streams.size > 0, 'the sibling is open');
    for (const { query } of DOCUMENT_ATTACKS) await bySocket(victim, query);
    server.topics.a.publish(2);
    expect(await victim.next()).toMatchObject({ id: 'sibling', type: 'next' });
    victim.close();
  });

  describe('that need a method, a body or a header', () => {
    const query = 'query cop { __typename }';
    it('refuses a batch', async () => {
      const { body } = await server.post(Array.from({ length: 10 }, () => ({ query })));
      expect(body.data).toBeUndefined();
    });

    it('refuses queries by GET where they are switched off, and mutations by GET always', async () => {
      for (const [target, text] of [
        [server, query],
        [server, 'mutation { __typename }'],
        [open, 'mutation { __typename }'],
      ] as const) {
        const response = await fetch(`${target.url}?query=${encodeURIComponent(text)}`);
        expect(response.status).toBe(405);
        expect(await response.json()).not.toHaveProperty('data');
      }
    });

    it.each(['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data; boundary=b'])(
      'refuses a form of type %s',
      async (type) => {
        for (const accept of ['application/json', 'text/event-stream']) {
          const response = await fetch(server.url, {
            method: 'POST',
            headers: { 'content-type': type, accept },
            body:
              type === 'text/plain' ? JSON.stringify({ query }) : new URLSearchParams({ query }).toString(),
          });
          expect(response.status).toBe(415);
        }
      },
    );

    it('shows no page of a query editor where it is switched off', async () => {
      const response = await fetch(server.url, { headers: { accept: 'text/html' } });
      expect(response.headers.get('content-type')).not.toContain('html');
    });

    it.each(['https://evil.example', 'null'])('refuses the origin %s by every transport', async (origin) => {
      expect((await server.post({ query }, { origin })).status).toBe(403);
      expect(
        (await openEventStream(server.url, { query: OPEN }, { headers: { origin } })).response.status,
      ).toBe(403);
      await expect(openSocket(server.wsUrl, { origin })).rejects.toThrow('403');
    });

    it('refuses 65 KiB by every transport', async () => {
      const large = `{ head } # ${'x'.repeat(65 * 1024)}`;
      expect((await server.post({ query: large })).status).toBe(413);
      expect((await openEventStream(server.url, { query: large })).response.status).toBe(413);
      const flooder = await openAcknowledged(server.wsUrl);
      flooder.send(subscribe('1', large));
      expect((await flooder.closed).code).toBe(1009);
    });

    it('carries nothing but subscriptions by WebSocket unless told to', async () => {
      const usual = await startTestTransport();
      const client = await openAcknowledged(usual.wsUrl);
      for (const text of ['{ head }', 'mutation { createRelease(name: "x") }']) {
        client.send(subscribe('1', text));
        await client.next('error');
      }
      expect(usual.mutations.calls).toBe(0);
      await usual.close();
    });
  });

  it('lets through what introspection offers on purpose, and nothing more', async () => {
    const successes: string[] = [];
    for (const attack of DOCUMENT_ATTACKS) {
      if (attack.succeeded((await open.post({ query: attack.query })).body)) successes.push(attack.name);
    }
    expect(successes).toEqual(
      DOCUMENT_ATTACKS.filter(({ byIntrospection }) => byIntrospection).map(({ name }) => name),
    );
  });
});

describe('the same on a stock WebSocket server', () => {
  let stock: StockServer;
  let schemaOf: TestTransport;
  beforeAll(async () => {
    schemaOf = await startTestTransport();
    stock = await startStockServer(schemaOf.schema, localContext());
  });
  afterAll(async () => {
    await stock.close();
    await schemaOf.close();
  });

  it('takes a foreign origin', async () => {
    const socket = await openAcknowledged(stock.wsUrl, undefined, { origin: 'https://evil.example' });
    socket.close();
  });

  it('runs a mutation that nobody offered there', async () => {
    const socket = await openAcknowledged(stock.wsUrl);
    expect(await bySocket(socket, 'mutation { createRelease(name: "x") }')).toEqual({
      data: { createRelease: 'x' },
    });
    socket.close();
  });

  it('answers most of the attacks', async () => {
    const successes: string[] = [];
    for (const attack of DOCUMENT_ATTACKS.filter(({ name }) => !name.includes('double'))) {
      const socket = await openAcknowledged(stock.wsUrl);
      const answer = await bySocket(socket, attack.query).catch((): AttackAnswer => ({}));
      if (attack.succeeded(answer)) successes.push(attack.name);
      socket.ws.terminate();
    }
    expect(successes).toEqual(
      expect.arrayContaining([
        'alias overloading',
        'field duplication',
        'directive overloading',
        'introspection',
        'field suggestions',
        'a deep document',
        'many tokens',
        'a masked fault',
      ]),
    );
  });

  it('closes the whole socket when a document does not parse', async () => {
    const socket = await openAcknowledged(stock.wsUrl);
    socket.send(subscribe('1', 'qwerty cop { abc }'));
    expect((await socket.closed).code).toBe(4500);
  });

  it('takes a thousand operations on one socket', async () => {
    const socket = await openAcknowledged(stock.wsUrl);
    for (let n = 0; n < 1_000; n++) socket.send(subscribe(String(n), OPEN));
    await waitFor(() => schemaOf.topics.a.streams.size === 1_000, 'all are open');
    socket.ws.terminate();
  });
});
