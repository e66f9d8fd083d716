import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import {
  createSlipwayClient,
  type SlipwayClient,
  type SlipwayClientOptions,
  type SlipwayStreamError,
} from '../../../src/client/index.js';
import { MESSAGE_BURST, MESSAGES_PER_SECOND } from '../../../src/client/socket.js';
import { BUFFER_MAX_EVENTS, SNAPSHOT_BUFFER_MAX_EVENTS } from '../../../src/client/stream.js';
import { ACCESS_CHANGED } from '../../../src/client/verdict.js';
import { startScriptedServer, type ScriptedServer } from '../../support/scripted-server.js';
import { waitFor } from '../../support/wait-for.js';

const TICKED = 'subscription Ticked($after: ChangeCursor) { ticked(after: $after) { cursor number } }';
const WATCH =
  'subscription Watch($after: ChangeCursor) { watchTicks(after: $after) { __typename cursor tick { id version } } }';
const PLAIN = 'subscription { ticked { cursor number } }';

interface Ticked {
  readonly ticked: { readonly number: number };
}

let server: ScriptedServer;
const clients: SlipwayClient[] = [];

function connect(options: Partial<SlipwayClientOptions> = {}): SlipwayClient {
  const client = createSlipwayClient({
    url: server.url,
    transport: 'websocket',
    webSocketImpl: WebSocket,
    timing: {
      retryBaseMs: 5,
      retryCapMs: 20,
      pingMs: 100,
      pongMs: 50,
      connectMs: 200,
      lingerMs: 20,
      idleMs: 300,
    },
    ...options,
  });
  clients.push(client);
  return client;
}

/** Reads in the background. */
function collect<T>(stream: AsyncIterable<T>): { readonly got: T[]; readonly done: Promise<unknown> } {
  const got: T[] = [];
  const done = (async () => {
    for await (const item of stream) got.push(item);
  })().then(
    () => 'ended',
    (error: unknown) => error,
  );
  return { got, done };
}
const numbers = (got: readonly unknown[]): number[] => got.map((data) => (data as Ticked).ticked.number);
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

beforeEach(async () => {
  server = await startScriptedServer();
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await server.close();
});

describe('a subscription over WebSocket', () => {
  it.each([1000, 1001, 1011, 1012, 1013, 4440, 4441, 4500])(
    'goes on where it was after the socket was closed with %i',
    async (code) => {
      const stream = connect().subscribe(TICKED);
      const { got } = collect(stream);
      await stream.opened;
      server.tick(3);
      await waitFor(() => got.length === 3, 'three ticks');
      server.closeSockets(code);
      server.tick(2);
      await waitFor(() => got.length >= 5, 'two more');
      server.closeSockets(code);
      await waitFor(() => server.subscribes.length === 3, 'a third attempt');
      server.tick();
      await waitFor(() => got.length >= 6, 'one more');
      expect(numbers(got)).toEqual(upTo(6));
      expect(server.subscribes.map(({ variables }) => variables['after'])).toEqual(['c0', 'c3', 'c5']);
      expect(stream.cursor).toBe('c6');
    },
  );

  it.each([1008, 4400, 4401, 4403, 4442])(
    'fails for good when the socket was closed with %i',
    async (closeCode) => {
      const client = connect();
      const stream = client.subscribe(TICKED);
      const { got, done } = collect(stream);
      await stream.opened;
      server.tick(2);
      await waitFor(() => got.length === 2, 'two ticks');
      server.closeSockets(closeCode);
      expect(await done).toMatchObject({ name: 'SlipwayStreamError', closeCode, cursor: 'c2' });
      expect(server.subscribes).toHaveLength(1);
      await waitFor(() => server.openSockets === 0, 'no socket');
    },
  );

  it('asks for a token before each attempt', async () => {
    let asked = 0;
    const stream = connect({ token: async () => `token-${(asked += 1)}` }).subscribe(
      PLAIN,
      {},
      { onGap: () => undefined },
    );
    await stream.opened;
    server.closeSockets(4440, 'Credentials expired');
    await waitFor(() => server.inits.length === 2, 'a second connection');
    expect(server.inits).toEqual([{ authorization: 'Bearer token-1' }, { authorization: 'Bearer token-2' }]);
  });

  it('tries again when the token cannot be had at first', async () => {
    let asked = 0;
    const token = (): string => {
      asked += 1;
      if (asked < 3) throw new Error('the keyring is locked');
      return 'token';
    };
    await connect({ token }).subscribe(PLAIN).opened;
    expect(asked).toBe(3);
  });

  it('takes a new snapshot when rights changed', async () => {
    const resyncs: string[] = [];
    server.tick(2);
    const stream = connect().subscribe(WATCH, {}, { onResync: (reason) => resyncs.push(reason) });
    const { got } = collect(stream);
    await waitFor(() => got.length === 3, 'the snapshot');
    server.closeSockets(4440, ACCESS_CHANGED);
    await waitFor(() => got.length === 6, 'the second snapshot');
    expect(resyncs).toEqual(['ACCESS_CHANGED']);
    expect(server.subscribes.map(({ variables }) => variables['after'])).toEqual([null, null]);
    expect(stream.cursor).toBe('c2');
  });

  it('resumes by itself when only its operation was ended as too slow', async () => {
    const { got } = collect(connect().subscribe(TICKED));
    await waitFor(() => server.openOperations === 1, 'the operation');
    server.tick(2);
    server.failOperations('SLOW_CONSUMER', { cursor: 'c2' });
    await waitFor(() => server.openOperations === 1, 'the next attempt');
    server.tick(2);
    await waitFor(() => got.length === 4, 'all four');
    expect(numbers(got)).toEqual(upTo(4));
    expect(server.inits).toHaveLength(1);
  });

  it('ends with the error when its cursor expired', async () => {
    const { done } = collect(connect().subscribe(TICKED, { after: 'c0' }));
    await waitFor(() => server.openOperations === 1, 'the operation');
    server.failOperations('CURSOR_EXPIRED');
    expect(await done).toMatchObject({ code: 'CURSOR_EXPIRED', cursor: 'c0' });
  });

  it('goes on from now when its cursor expired, if the caller takes gaps', async () => {
    const gaps: string[] = [];
    const { got } = collect(
      connect().subscribe(TICKED, { after: 'c0' }, { onGap: (reason) => gaps.push(reason) }),
    );
    await waitFor(() => server.openOperations === 1, 'the operation');
    server.tick(5);
    await waitFor(() => got.length === 5, 'five');
    server.failOperations('CURSOR_EXPIRED');
    await waitFor(() => server.openOperations === 1, 'the next attempt');
    server.tick();
    await waitFor(() => got.length === 6, 'the sixth');
    expect(gaps).toEqual(['CURSOR_EXPIRED']);
    expect(server.subscribes.at(-1)?.variables['after']).toBe('c5');
  });

  it('calls a lost connection a gap when its document cannot be resumed', async () => {
    const stream = connect().subscribe(PLAIN);
    const { done } = collect(stream);
    await stream.opened;
    server.closeSockets(1012);
    expect(await done).toMatchObject({ code: 'GAP', closeCode: 1012 });
  });

  it('finds a server that does not answer any more', async () => {
    const stream = connect().subscribe(TICKED);
    const { got } = collect(stream);
    await stream.opened;
    server.mode = 'silent';
    await waitFor(() => server.messages.some((text) => text.includes('ping')), 'a ping');
    server.mode = 'normal';
    server.tick();
    await waitFor(() => got.length === 1, 'the tick');
  });

  it('comes back from a server that did not answer a ping', async () => {
    const stream = connect().subscribe(TICKED);
    const { got } = collect(stream);
    await stream.opened;
    server.mode = 'silent';
    server.tick(2);
    await waitFor(() => server.inits.length > 1, 'another connection');
    server.mode = 'normal';
    await waitFor(() => got.length === 2, 'both ticks');
    expect(numbers(got)).toEqual([1, 2]);
  });

  it('comes back from a server that never acknowledged', async () => {
    server.mode = 'no-ack';
    const stream = connect().subscribe(TICKED);
    await waitFor(() => server.inits.length > 1, 'another connection');
    server.mode = 'normal';
    await stream.opened;
  });

  it('sends no more messages at once than the server takes, however many subscriptions come back', async () => {
    const client = connect({ timing: { retryBaseMs: 5, lingerMs: 20 } });
    for (let index = 0; index < 100; index += 1) client.subscribe(PLAIN, {}, { onGap: () => undefined });
    await waitFor(() => server.subscribes.length >= MESSAGE_BURST - 1, 'the first ones');
    expect(server.subscribes.length).toBeLessThan(50);
    const startedAt = performance.now();
    await waitFor(() => server.subscribes.length === 100, 'all of them');
    const perSecond = (100 - MESSAGE_BURST) / ((performance.now() - startedAt) / 1_000);
    expect(perSecond).toBeLessThan(MESSAGES_PER_SECOND * 1.3);
  });

  it('ends quietly by its signal, its return and its client, and leaves nothing open', async () => {
    const client = connect();
    const controller = new AbortController();
    const bySignal = collect(client.subscribe(TICKED, {}, { signal: controller.signal }));
    const byReturn = client.subscribe(TICKED);
    const byClient = collect(client.subscribe(TICKED));
    await waitFor(() => server.openOperations === 3, 'three operations');
    controller.abort();
    await byReturn.return();
    await waitFor(() => server.openOperations === 1, 'one operation');
    client.close();
    expect([await bySignal.done, await byClient.done, await byReturn.next()]).toEqual([
      'ended',
      'ended',
      { done: true, value: undefined },
    ]);
    await waitFor(() => server.openSockets === 0, 'no socket');
  });

  it('closes its socket a moment after the last subscription, and opens one for the next', async () => {
    const client = connect();
    const first = client.subscribe(TICKED);
    await first.opened;
    await first.return();
    await waitFor(() => server.openSockets === 0, 'no socket');
    await client.subscribe(TICKED).opened;
    expect(server.inits).toHaveLength(2);
  });

  it('gives its place up while the reader is behind, and misses nothing', async () => {
    const stream = connect().subscribe(TICKED);
    const count = 2.5 * BUFFER_MAX_EVENTS;
    await waitFor(() => server.openOperations === 1, 'the operation');
    server.tick(count);
    await waitFor(() => server.openOperations === 0, 'the pause');
    const got: number[] = [];
    for await (const { ticked } of stream as AsyncIterable<Ticked>) {
      got.push(ticked.number);
      if (got.length === count) break;
    }
    expect(got).toEqual(upTo(count));
    expect(server.subscribes.length).toBeGreaterThan(1);
  });

  it('fails when nobody reads a snapshot beyond all measure', { timeout: 60_000 }, async () => {
    server.tick(SNAPSHOT_BUFFER_MAX_EVENTS + 1);
    const stream = connect({ timing: { lingerMs: 20 } }).subscribe(WATCH);
    await waitFor(() => server.subscribes.length === 1 && server.openOperations === 0, 'the end', 30_000);
    const { done } = collect(stream);
    expect(await done).toMatchObject({ code: 'OVERFLOW' });
  });

  it('says how it is doing', async () => {
    const said: string[] = [];
    const client = connect({ onStatus: ({ condition }) => said.push(condition) });
    const stream = client.subscribe(WATCH);
    const { got } = collect(stream);
    await stream.opened;
    server.closeSockets(1012);
    await waitFor(() => server.subscribes.length === 2, 'another attempt');
    await waitFor(() => said.at(-1) === 'connected', 'connected again');
    server.say({ __typename: 'Reset', cursor: 'c0', reason: 'SLOW_CONSUMER' });
    await waitFor(() => said.at(-1) === 'resyncing', 'resyncing');
    server.say({ __typename: 'SnapshotEnd', cursor: 'c0' });
    await waitFor(() => said.at(-1) === 'connected', 'connected at last');
    client.close();
    expect(said.filter((condition, index) => condition !== said[index - 1])).toEqual([
      'connecting',
      'connected',
      'reconnecting',
      'connected',
      'resyncing',
      'connected',
      'idle',
    ]);
    expect(got.length).toBeGreaterThan(2);
  });
});

describe('a subscription over SSE', () => {
  it('goes on where it was after its stream was cut, and says where by Last-Event-ID too', async () => {
    const stream = connect({ transport: 'sse', token: 'secret' }).subscribe(TICKED);
    const { got } = collect(stream);
    await stream.opened;
    server.tick(2);
    await waitFor(() => got.length === 2, 'two ticks');
    server.cutStreams();
    server.tick();
    await waitFor(() => got.length === 3, 'the third');
    expect(numbers(got)).toEqual(upTo(3));
    expect(
      server.subscribes.map(({ variables, headers }) => [
        variables['after'],
        headers['last-event-id'],
        headers.authorization,
      ]),
    ).toEqual([
      ['c0', 'c0', 'Bearer secret'],
      ['c2', 'c2', 'Bearer secret'],
    ]);
  });

  it('counts a silent stream as lost', async () => {
    const stream = connect({ transport: 'sse' }).subscribe(TICKED);
    await stream.opened;
    await waitFor(() => server.subscribes.length === 2, 'another attempt');
  });

  it('ends with the error that the stream ended with', async () => {
    const { done } = collect(connect({ transport: 'sse' }).subscribe(TICKED, { after: 'c0' }));
    await waitFor(() => server.openOperations === 1, 'the operation');
    server.failOperations('FORBIDDEN');
    const error = (await done) as SlipwayStreamError;
    expect(error).toMatchObject({ code: 'FORBIDDEN', closeCode: null });
    expect(server.openOperations).toBe(0);
  });
});

describe('a client that chooses its transport', () => {
  it('takes SSE when no WebSocket ever opened', async () => {
    server.mode = 'refuse-websocket';
    const stream = connect({ transport: 'auto' }).subscribe(TICKED);
    const { got } = collect(stream);
    await stream.opened;
    server.tick();
    await waitFor(() => got.length === 1, 'a tick');
    expect(server.subscribes.map(({ via }) => via)).toEqual(['sse']);
    server.mode = 'normal';
    server.cutStreams();
    await waitFor(() => server.subscribes.length === 2, 'another attempt');
    expect(server.subscribes.at(-1)?.via).toBe('sse');
  });

  it('stays with WebSocket once one has opened', async () => {
    const client = connect({ transport: 'auto' });
    const stream = client.subscribe(TICKED);
    await stream.opened;
    server.mode = 'refuse-websocket';
    server.closeSockets(1012);
    const conditions: (number | null)[] = [];
    await waitFor(() => server.openSockets === 0 && conditions.push(0) > 10, 'some time');
    server.mode = 'normal';
    await waitFor(() => server.subscribes.length === 2, 'another attempt');
    expect(server.subscribes.map(({ via }) => via)).toEqual(['websocket', 'websocket']);
  });

  it('takes SSE where the platform has no WebSocket', async () => {
    // Node 20 has none; on newer ones this is what `transport: 'sse'` does.
    const client = connect(
      'WebSocket' in globalThis ? { transport: 'sse' } : { transport: 'auto', webSocketImpl: undefined },
    );
    await client.subscribe(TICKED).opened;
    expect(server.subscribes[0]?.via).toBe('sse');
  });
});
