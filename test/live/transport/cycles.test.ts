import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { openEventStream } from '../../support/event-stream.js';
import { openAcknowledged, openSocket, sendTogether, subscribe } from '../../support/raw-socket.js';
import { startTestTransport, type TestTransport } from '../../support/transport-server.js';
import { waitFor } from '../../support/wait-for.js';

/**
 * Opening and closing in every way leaves nothing: no stream, no place in a cap, no timer, no socket, no memory.
 * `SLIPWAY_TEST_CYCLES=50000` makes the long form of it.
 */
const OPEN = 'subscription { deploymentPhaseChanged { value } }';
const CYCLES = Number(process.env['SLIPWAY_TEST_CYCLES'] ?? 200);
const DEADLINE_MS = 30_000 + CYCLES * 20;
const HEAP_CYCLES = Math.max(5_000, CYCLES);
/** The collector's own noise, and less than anything of a cycle would take. 5 MiB for fifty thousand. */
const HEAP_DRIFT_MAX_BYTES = 2 ** 20 + HEAP_CYCLES * 80;
/** Without what is garbage. */
function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void; // the flag above makes it
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

const NOTHING = {
  connections: 0,
  subscriptions: 0,
  groups: 0,
  principals: 0,
  inFlight: 0,
  arriving: 0,
  unsentBytes: 0,
};

describe('opening and closing', { timeout: DEADLINE_MS }, () => {
  let server: TestTransport;
  let timersBefore = 0;
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
  beforeAll(async () => {
    server = await startTestTransport({ limits: { messagesPerSecond: 100_000, messagesBurst: 100_000 } });
    await server.post({ query: '{ head }' }); // whatever is made once is made now
    timersBefore = timers();
  });
  afterAll(() => server.close());

  const nothingIsLeft = () =>
    waitFor(
      () => {
        const { open } = server.transport;
        return server.topics.a.streams.size === 0 && JSON.stringify(open) === JSON.stringify(NOTHING);
      },
      `nothing is left: ${JSON.stringify(server.transport.open)}`,
    );

  it('by complete', async () => {
    const socket = await openAcknowledged(server.wsUrl);
    for (let n = 0; n < CYCLES; n++) {
      socket.send(subscribe(`s${n}`, OPEN));
      if (n % 2 === 0) server.topics.a.publish(n);
      socket.send({ id: `s${n}`, type: 'complete' });
    }
    socket.send({ type: 'ping' });
    await waitFor(() => socket.messages.at(-1)?.type === 'pong', 'all was read');
    expect(server.transport.open.subscriptions).toBe(0);
    socket.close();
    await nothingIsLeft();
  });

  it('by complete in the packet of the subscribe', async () => {
    const socket = await openAcknowledged(server.wsUrl);
    sendTogether(
      socket,
      Array.from({ length: CYCLES }, (_, n) => [
        subscribe(`s${n}`, OPEN),
        { id: `s${n}`, type: 'complete' },
      ]).flat(),
    );
    socket.send({ type: 'ping' });
    await socket.next('pong');
    socket.close();
    await nothingIsLeft();
  });

  it('by ids that come again while their first use is pending', async () => {
    const socket = await openAcknowledged(server.wsUrl);
    sendTogether(
      socket,
      Array.from({ length: CYCLES }, () => [subscribe('s', OPEN), { id: 's', type: 'complete' }]).flat(),
    );
    socket.send({ type: 'ping' });
    await waitFor(() => socket.messages.at(-1)?.type === 'pong', 'all was read');
    socket.close();
    await nothingIsLeft();
  });

  it('by sockets that close, break, or leave while they subscribe', async () => {
    for (let n = 0; n < CYCLES; n += 10) {
      await Promise.all(
        Array.from({ length: 10 }, async (_, m) => {
          const socket = await openAcknowledged(server.wsUrl);
          socket.send(subscribe('a', OPEN));
          socket.send(subscribe('b', OPEN));
          if (m % 3 === 0) await waitFor(() => server.topics.a.streams.size > 0, 'one is open');
          if (m % 2 === 0) socket.ws.terminate();
          else socket.close();
        }),
      );
    }
    await nothingIsLeft();
  });

  it('by sockets that never say who they are', async () => {
    const sockets = await Promise.all(Array.from({ length: 50 }, () => openSocket(server.wsUrl)));
    for (const socket of sockets) socket.ws.terminate();
    await nothingIsLeft();
  });

  it('by event streams that are dropped', async () => {
    for (let n = 0; n < CYCLES; n += 10) {
      const streams = await Promise.all(
        Array.from({ length: 10 }, () => openEventStream(server.url, { query: OPEN })),
      );
      server.topics.a.publish(n);
      for (const stream of streams) stream.close();
    }
    await nothingIsLeft();
  });

  it('by sources that end or fail', async () => {
    const socket = await openAcknowledged(server.wsUrl);
    for (let n = 0; n < CYCLES; n += 10) {
      for (let m = 0; m < 10; m++) socket.send(subscribe(`${n + m}`, OPEN));
      await waitFor(() => server.topics.a.streams.size === 10, 'ten are open');
      server.topics.a.end();
      await waitFor(() => server.transport.open.subscriptions === 0, 'all have ended');
    }
    socket.close();
    await nothingIsLeft();
  });

  it('leaves no memory', async () => {
    const cycle = async (count: number) => {
      for (let done = 0; done < count; done += 51) {
        const socket = await openAcknowledged(server.wsUrl);
        const ids = Array.from({ length: 50 }, (_, n) => `s${n}`);
        for (const id of ids) socket.send(subscribe(id, OPEN));
        const stream = await openEventStream(server.url, { query: OPEN });
        await waitFor(() => server.topics.a.streams.size === 51, 'all are open');
        server.topics.a.publish(done);
        for (const id of ids) socket.send({ id, type: 'complete' });
        await waitFor(() => server.topics.a.streams.size === 1, 'all but one are closed');
        socket.close();
        stream.close();
        await waitFor(() => server.topics.a.streams.size === 0, 'all are closed');
      }
      await nothingIsLeft();
    };
    await cycle(HEAP_CYCLES / 2); // whatever is made once is made now
    const before = heapBytes();
    await cycle(HEAP_CYCLES);
    const drift = heapBytes() - before;
    if (CYCLES >= HEAP_CYCLES) {
      process.stdout.write(`heap drift of ${CYCLES} cycles: ${Math.round(drift / 1_024)} KiB\n`);
    }
    expect(drift).toBeLessThan(HEAP_DRIFT_MAX_BYTES);
  });

  it('leaves no timer', async () => {
    await nothingIsLeft();
    await waitFor(() => timers() <= timersBefore + 1, 'timers are as they were'); // one is this very wait
  });
});
