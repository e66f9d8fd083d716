import { once } from 'node:events';
import { connect } from 'node:net';

import { afterEach, describe, expect, it } from 'vitest';

import { openEventStream } from '../../support/event-stream.js';
import { openAcknowledged, openSocket, subscribe } from '../../support/raw-socket.js';
import { startTestTransport, type TestTransport } from '../../support/transport-server.js';
import { waitFor } from '../../support/wait-for.js';

const OPEN = 'subscription { deploymentPhaseChanged { value text cursor } }';

describe('a drain', () => {
  let server: TestTransport;
  const start = async (drain: { noticeMs: number; spreadMs: number; finishMs: number }) => {
    server = await startTestTransport({ settings: { drain } });
  };
  afterEach(() => server.close());

  it('is not ready at once, and still serves until its notice is over', async () => {
    await start({ noticeMs: 60_000, spreadMs: 50, finishMs: 500 });
    const socket = await openAcknowledged(server.wsUrl);
    socket.send(subscribe('s', OPEN));
    await waitFor(() => server.topics.a.streams.size === 1, 'it is open');
    const drained = server.transport.drain();
    const ready = await fetch(`${server.transport.url}/readyz`);
    expect([ready.status, await ready.text()]).toEqual([503, 'not ready: draining\n']);
    expect((await fetch(`${server.transport.url}/livez`)).status).toBe(200);
    const { status, headers } = await server.post({ query: '{ head }' });
    expect([status, headers.get('connection')]).toEqual([200, 'close']);
    await expect(openSocket(server.wsUrl)).rejects.toThrow('503');
    server.topics.a.publish(1);
    await socket.next('next');
    await server.close();
    await drained;
    await expect(fetch(server.url)).rejects.toThrow();
  });

  it('closes sockets and event streams spread over its time, each with a last bookmark', async () => {
    await start({ noticeMs: 10, spreadMs: 400, finishMs: 500 });
    const sockets = await Promise.all(Array.from({ length: 8 }, () => openAcknowledged(server.wsUrl)));
    for (const socket of sockets) socket.send(subscribe('s', OPEN));
    const stream = await openEventStream(server.url, { query: OPEN });
    await waitFor(() => server.topics.a.streams.size === 9, 'all are open');
    server.topics.a.publish(7);
    await waitFor(() => sockets.every(({ messages }) => messages.length === 2), 'all have the event');
    const closedAt: number[] = [];
    const closes = sockets.map(async (socket) => {
      const { code } = await socket.closed;
      closedAt.push(performance.now());
      return code;
    });
    await server.transport.drain();
    expect(new Set(await Promise.all(closes))).toEqual(new Set([1012]));
    expect(Math.max(...closedAt) - Math.min(...closedAt)).toBeGreaterThan(150);
    for (const { messages } of sockets) {
      expect(messages.at(-1)).toMatchObject({
        type: 'next',
        payload: { data: { deploymentPhaseChanged: { text: 'bookmark', cursor: 'c7' } } },
      });
    }
    expect(await stream.next()).toMatchObject({ id: 'c7' });
    expect(await stream.next()).toMatchObject({
      id: 'c7',
      data: { data: { deploymentPhaseChanged: { text: 'bookmark' } } },
    });
    expect(await stream.next()).toBeUndefined();
  });

  it('finishes the mutation that runs', async () => {
    await start({ noticeMs: 10, spreadMs: 10, finishMs: 5_000 });
    server.mutations.hold = true;
    const answer = server.post({ query: 'mutation { createRelease(name: "late") }' });
    await waitFor(() => server.mutations.calls === 1, 'it runs');
    const drained = server.transport.drain();
    await expect
      .poll(() =>
        fetch(server.url).then(
          () => 'served',
          () => 'refused',
        ),
      )
      .toBe('refused');
    server.mutations.release();
    expect((await answer).body).toEqual({ data: { createRelease: 'late' } });
    await drained;
  });

  it('cuts what does not end in its time', async () => {
    await start({ noticeMs: 10, spreadMs: 10, finishMs: 100 });
    server.mutations.hold = true;
    const answer = server.post({ query: 'mutation { createRelease(name: "never") }' }).then(
      () => 'answered',
      () => 'cut',
    );
    await waitFor(() => server.mutations.calls === 1, 'it runs');
    await server.transport.drain();
    expect(await answer).toBe('cut');
    expect(server.logged).toContainEqual(
      expect.objectContaining({ level: 'warn', message: 'drain cut operations that did not end' }),
    );
    server.mutations.release();
  });

  it('does not wait for a request that never arrives in full, and calls it no operation', async () => {
    await start({ noticeMs: 10, spreadMs: 10, finishMs: 600_000 });
    const { port } = new URL(server.url);
    const socket = connect(Number(port), '127.0.0.1');
    const gone = once(socket, 'close');
    socket.on('error', () => undefined); // a reset is an end too
    socket.write(
      `POST /graphql HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"query":`,
    );
    await waitFor(() => server.transport.open.arriving === 1, 'its head has arrived');
    expect(server.transport.open.inFlight).toBe(0);
    await server.transport.drain();
    await gone;
    const levels = server.logged.filter(({ message }) => message.startsWith('drain cut'));
    expect(levels).toEqual([
      expect.objectContaining({ level: 'info', message: 'drain cut requests that never arrived in full' }),
    ]);
  });

  it('still answers a request whose body arrives during the drain', async () => {
    await start({ noticeMs: 10, spreadMs: 10, finishMs: 600_000 });
    server.mutations.hold = true;
    const { port } = new URL(server.url);
    const socket = connect(Number(port), '127.0.0.1');
    let answer = '';
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString()));
    const body = JSON.stringify({ query: 'mutation { createRelease(name: "late") }' });
    socket.write(
      `POST /graphql HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`,
    );
    await waitFor(() => server.transport.open.arriving === 1, 'its head has arrived');
    const drained = server.transport.drain();
    await expect
      .poll(() =>
        fetch(server.url).then(
          () => 'served',
          () => 'refused',
        ),
      )
      .toBe('refused');
    socket.write(body);
    await waitFor(() => server.mutations.calls === 1, 'it runs');
    // That nothing happens takes a time to see: longer than the tail in which last answers leave (100 ms).
    const tail = new Promise((resolve) => {
      setTimeout(resolve, 300, 'waits');
    });
    expect(await Promise.race([drained.then(() => 'cut'), tail])).toBe('waits');
    server.mutations.release();
    await drained;
    expect(answer).toContain('{"data":{"createRelease":"late"}}');
  });

  it('ends at once when it is told to hurry', async () => {
    await start({ noticeMs: 60_000, spreadMs: 60_000, finishMs: 60_000 });
    const socket = await openAcknowledged(server.wsUrl);
    const drained = server.transport.drain();
    await server.transport.close();
    await drained;
    expect((await socket.closed).code).toBe(1012);
  });
});
