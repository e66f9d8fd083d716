import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

import { afterEach, describe, expect, it } from 'vitest';

import { openEventStream } from '../../support/event-stream.js';
import { openAcknowledged, subscribe, type RawSocket } from '../../support/raw-socket.js';
import { startTestTransport, type TestTransport } from '../../support/transport-server.js';
import { waitFor } from '../../support/wait-for.js';

const OPEN = 'subscription { deploymentPhaseChanged { value text } }';
const KIB = 1024;
const nextTurn = () =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

/** Takes nothing more from the kernel: what a browser in a debugger, or a sleeping laptop, does. */
function stall({ ws }: RawSocket): void {
  ws.pause();
}

describe('slow readers', () => {
  let server: TestTransport;
  afterEach(() => server.close());

  it('neither slow nor end the others, hold at most their bound, and are ended', async () => {
    server = await startTestTransport({
      limits: { stalledMs: 500, pingEveryMs: 5_000, pongWithinMs: 1_000 },
    });
    const stalled = await Promise.all(Array.from({ length: 20 }, () => openAcknowledged(server.wsUrl)));
    const healthy = await Promise.all(Array.from({ length: 3 }, () => openAcknowledged(server.wsUrl)));
    for (const socket of [...stalled, ...healthy]) socket.send(subscribe('s', OPEN));
    await waitFor(() => server.topics.a.streams.size === 23, 'all are open');
    stalled.forEach(stall);

    const text = 'x'.repeat(64 * KIB);
    let published = 0;
    let mostUnsent = 0;
    // Until the kernel takes no more for any of the stalled ones and their own ends have come.
    while (server.transport.open.connections > healthy.length) {
      server.topics.a.publish(published++, text);
      mostUnsent = Math.max(mostUnsent, server.transport.open.unsentBytes);
      // The pace of the healthy ones: what they have not read yet is bounded too.
      await waitFor(
        () => healthy.every(({ messages }) => messages.length > published - 20),
        'the healthy ones keep up',
      );
      await nextTurn();
    }
    expect(mostUnsent).toBeGreaterThan(20 * 256 * KIB); // all of them did stall
    expect(mostUnsent).toBeLessThan(20 * 1_024 * KIB);
    await waitFor(
      () => healthy.every(({ messages }) => messages.length === published + 1),
      'the healthy ones have all',
    );
    for (const { messages } of healthy) {
      const values = messages
        .slice(1)
        .map(
          (message) =>
            (message.payload as { data: { deploymentPhaseChanged: { value: number } } }).data
              .deploymentPhaseChanged.value,
        ); // the document above
      expect(values).toEqual(Array.from({ length: published }, (_, n) => n));
    }
    const metrics = await (await fetch(`${server.transport.url}/metrics`)).text();
    expect(metrics).toContain('slipway_connection_closes_total{code="4441"} 20');
  });

  it('go on where they paused when they read again', async () => {
    server = await startTestTransport({ limits: { pauseAboveBytes: 256 * KIB, resumeBelowBytes: 32 * KIB } });
    const socket = await openAcknowledged(server.wsUrl);
    socket.send(subscribe('s', OPEN));
    await waitFor(() => server.topics.a.streams.size === 1, 'it is open');
    stall(socket);
    const text = 'x'.repeat(64 * KIB);
    let published = 0;
    while (server.transport.open.unsentBytes < 256 * KIB) {
      server.topics.a.publish(published++, text);
      await nextTurn();
    }
    for (let more = 0; more < 100; more++) server.topics.a.publish(published++, text);
    await nextTurn();
    expect(server.transport.open.unsentBytes).toBeLessThan(512 * KIB);
    socket.ws.resume();
    await waitFor(() => socket.messages.length === published + 1, 'all came');
  });

  it('of event streams are bounded and ended as well', async () => {
    server = await startTestTransport({ limits: { stalledMs: 300, pingEveryMs: 500, pongWithinMs: 500 } });
    const stream = await openEventStream(server.url, { query: OPEN }, { stalled: true });
    await waitFor(() => server.topics.a.streams.size === 1, 'it is open');
    const text = 'x'.repeat(64 * KIB);
    let mostUnsent = 0;
    for (let n = 0; server.transport.open.connections > 0; n++) {
      server.topics.a.publish(n, text);
      mostUnsent = Math.max(mostUnsent, server.transport.open.unsentBytes);
      await nextTurn();
    }
    expect(mostUnsent).toBeLessThan(1_024 * KIB);
    await waitFor(() => server.topics.a.streams.size === 0, 'nothing is left');
    stream.close();
  });

  it('whose mailbox overflowed get the reason, as an error of that operation', async () => {
    server = await startTestTransport();
    const socket = await openAcknowledged(server.wsUrl);
    socket.send(subscribe('s', OPEN));
    await waitFor(() => server.topics.a.streams.size === 1, 'it is open');
    // In one turn, more than the kernel and the connection take.
    const text = 'x'.repeat(16 * KIB);
    for (let n = 0; n < 2_000; n++) server.topics.a.publish(n, text);
    const error = await waitFor(
      () => socket.messages.find(({ type }) => type === 'error'),
      'the error comes',
    );
    expect(error).toMatchObject({ id: 's', payload: [{ extensions: { code: 'SLOW_CONSUMER' } }] });
    expect(socket.ws.readyState).toBe(socket.ws.OPEN);
  });

  it('end the whole process where a stock pubsub feeds a stock socket', async () => {
    server = await startTestTransport();
    const script = fileURLToPath(new URL('../../support/stock-pubsub.ts', import.meta.url));
    const child = spawn(process.execPath, ['--import', 'tsx', script], { stdio: ['ignore', 'pipe', 'pipe'] });
    const exited = once(child, 'exit');
    let output = '';
    child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const [url] = (await once(child.stdout, 'data')) as [Buffer];
    const socket = await openAcknowledged(url.toString().trim());
    socket.send(subscribe('s', 'subscription { events }'));
    await socket.next('next');
    stall(socket);
    expect(await exited).toEqual([1, null]);
    expect(output).toContain('RepeaterOverflowError');
  });
});
