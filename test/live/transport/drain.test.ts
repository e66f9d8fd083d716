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
      expect(messages.at(-1)).toMatchObject({ type: 'next', payload: { data: { deploymentPhaseChanged: { text: 'bookmark', cursor: 'c7' } } } });
    }
    expect(await stream.next()).toMatchObject({ id: 'c7' });
    expect(await stream.next()).toMatchObject({ id: 'c7', data: { data: { deploymentPhaseChanged: { text: 'bookmark' } } } });
    expect(await stream.next()).toBeUndefined();
  });

  it('finishes the mutation that runs', async () => {
    await start({ noticeMs: 10, spreadMs: 10, finishMs: 5_000 });
    server.mutations.hold = true;
    const answer = server.post({ query: 'mutation { createRelease(name: "late") }' });
    await waitFor(() => server.mutations.calls === 1, 'it runs');
    const drained = server.transport.drain();
    await expect.poll(() => fetch(server.url).then(() => 'served', () => 'refused')).toBe('refused');
    server.mutations.release();
    expect((await answer).body).toEqual({ data: { createRelease: 'late' } });
    await drained;
  });

  it('cuts what does not end in its time', async () => {
    await start({ noticeMs: 10, spreadMs: 10, finishMs: 100 });
    server.mutations.hold = true;
    const answer = server.post({ query: 'mutation { createRelease(name: "never") }' }).then(() => 'answered', () => 'cut');
    await waitFor(() => server.mutations.calls === 1, 'it runs');
    await server.transport.drain();
    expect(await answer).toBe('cut');
    expect(server.logged).toContainEqual(expect.objectContaining({ level: 'warn', message: 'drain cut operations that did not end' }));
    server.mutations.release();
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
