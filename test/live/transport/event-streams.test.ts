import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { openEventStream } from '../../support/event-stream.js';
import { startTestTransport, type TestTransport } from '../../support/transport-server.js';
import { waitFor } from '../../support/wait-for.js';

const EVENTS = 'subscription ($after: String) { deploymentPhaseChanged(after: $after) { value cursor } }';

describe('event streams', () => {
  let server: TestTransport;
  beforeAll(async () => {
    server = await startTestTransport({ limits: { pingEveryMs: 60, pongWithinMs: 50 } });
  });
  afterAll(() => server.close());

  it.each(['POST', 'GET'] as const)(
    'carries a subscription by %s, each event with its cursor as id',
    async (method) => {
      const stream = await openEventStream(server.url, { query: EVENTS }, { method });
      await waitFor(() => server.topics.a.streams.size === 1, 'the stream is open');
      server.topics.a.publish(1);
      server.topics.a.publish(2);
      expect(await stream.next()).toEqual({
        id: 'c1',
        event: 'next',
        data: { data: { deploymentPhaseChanged: { value: 1, cursor: 'c1' } } },
      });
      expect(await stream.next()).toMatchObject({ id: 'c2', event: 'next' });
      expect(stream.response.headers.get('connection')).toBe('close');
      stream.close();
      await waitFor(() => server.topics.a.streams.size === 0, 'the stream is closed');
      await waitFor(() => server.transport.open.connections === 0, 'nothing is left');
    },
  );

  it('goes on after `Last-Event-ID`, which wins over the argument', async () => {
    const stream = await openEventStream(
      server.url,
      { query: EVENTS, variables: { after: 'c1' } },
      { headers: { 'last-event-id': 'c7' } },
    );
    await waitFor(() => server.topics.a.streams.size === 1, 'the stream is open');
    expect([...server.topics.a.streams].map(({ after }) => after)).toEqual(['c7']);
    stream.close();
    await waitFor(() => server.topics.a.streams.size === 0, 'the stream is closed');
  });

  it('moves the id of a stream on which nothing happens, without an event', async () => {
    const stream = await openEventStream(server.url, { query: EVENTS });
    await waitFor(() => server.topics.a.streams.size === 1, 'the stream is open');
    server.topics.a.move('c8');
    await waitFor(() => stream.lastEventId === 'c8', 'the id moved');
    server.topics.a.publish(9);
    expect(await stream.next()).toMatchObject({ id: 'c9', event: 'next' });
    stream.close();
    await waitFor(() => server.topics.a.streams.size === 0, 'the stream is closed');
  });

  it('says complete when the source ends', async () => {
    const stream = await openEventStream(server.url, { query: EVENTS });
    await waitFor(() => server.topics.a.streams.size === 1, 'the stream is open');
    server.topics.a.end();
    expect(await stream.next()).toEqual({ event: 'complete' });
    expect(await stream.next()).toBeUndefined();
  });

  it('answers a query with next and complete', async () => {
    const stream = await openEventStream(server.url, { query: '{ head }' });
    expect(await stream.next()).toEqual({ event: 'next', data: { data: { head: 'here' } } });
    expect(await stream.next()).toEqual({ event: 'complete' });
    expect(await stream.next()).toBeUndefined();
  });

  it.each([
    ['an unknown field', { query: 'subscription { nothing }' }, 'GRAPHQL_VALIDATION_FAILED'],
    ['an expired cursor', { query: EVENTS, variables: { after: 'expired' } }, 'CURSOR_EXPIRED'],
    ['a bug', { query: EVENTS, variables: { after: 'bug' } }, 'INTERNAL'],
  ])('reports %s as an event', async (_name, request, code) => {
    const stream = await openEventStream(server.url, request);
    expect(await stream.next()).toMatchObject({
      event: 'next',
      data: { errors: [{ extensions: { code } }] },
    });
    expect(await stream.next()).toEqual({ event: 'complete' });
  });

  it('answers a query as JSON where both are accepted', async () => {
    const response = await fetch(server.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ query: '{ head }' }),
    });
    expect(await response.json()).toEqual({ data: { head: 'here' } });
  });

  it('keeps a silent stream alive with comments', async () => {
    const stream = await openEventStream(server.url, { query: EVENTS });
    await waitFor(() => stream.comments >= 3, 'comments come');
    stream.close();
  });

  it('runs no mutation by GET', async () => {
    const { calls } = server.mutations;
    const stream = await openEventStream(
      server.url,
      { query: 'mutation { createRelease(name: "x") }' },
      { method: 'GET' },
    );
    expect(await stream.next()).toMatchObject({ data: { errors: [{}] } });
    expect(server.mutations.calls).toBe(calls);
  });
});
