import { once } from 'node:events';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';

import {
  openAcknowledged,
  openSocket,
  sendTogether,
  subscribe,
  type RawSocket,
} from '../../support/raw-socket.js';
import { startTestTransport, type TestTransport } from '../../support/transport-server.js';
import { waitFor } from '../../support/wait-for.js';

/** The text of the `graphql-transport-ws` protocol, sentence by sentence, over real sockets. */
const EVENTS = 'subscription { deploymentPhaseChanged { value cursor } }';

describe('the graphql-transport-ws protocol', () => {
  let server: TestTransport;
  const sockets: RawSocket[] = [];
  const track = <T extends RawSocket>(socket: T): T => {
    sockets.push(socket);
    return socket;
  };
  const open = async (...args: Parameters<typeof openSocket>) => track(await openSocket(...args));
  const ready = async (url = server.wsUrl) => track(await openAcknowledged(url));
  let all: TestTransport;

  beforeAll(async () => {
    const limits = { initTimeoutMs: 150, messagesPerSecond: 10_000, messagesBurst: 10_000 };
    server = await startTestTransport({ limits });
    all = await startTestTransport({ limits, settings: { socketMutations: true } });
  });
  afterAll(async () => {
    for (const socket of sockets) socket.ws.terminate();
    await server.close();
    await all.close();
  });

  describe('opening', () => {
    it('selects the sub-protocol that the client offers', async () => {
      const socket = await open(server.wsUrl);
      expect(socket.ws.protocol).toBe('graphql-transport-ws');
    });

    it('selects it among others', async () => {
      const ws = new WebSocket(server.wsUrl, ['graphql-ws', 'graphql-transport-ws']);
      await once(ws, 'open');
      expect(ws.protocol).toBe('graphql-transport-ws');
      ws.terminate();
    });

    it.each(['graphql-ws', ''])('closes with 4406 without it (%j)', async (protocol) => {
      const ws = protocol === '' ? new WebSocket(server.wsUrl) : new WebSocket(server.wsUrl, protocol);
      // A client library refuses a server that selects nothing; what it was sent is a close all the same.
      const code = await new Promise((resolve) => {
        ws.once('close', resolve);
        ws.once('error', () => resolve('refused by the client'));
      });
      expect([4406, 'refused by the client']).toContain(code);
    });

    it('refuses another path with 404', async () => {
      await expect(openSocket(server.wsUrl.replace('/graphql', '/other'))).rejects.toThrow('404');
    });

    it('acknowledges an initialisation', async () => {
      const socket = await open(server.wsUrl);
      socket.send({ type: 'connection_init' });
      expect(await socket.next()).toEqual({ type: 'connection_ack' });
    });

    it('acknowledges one with a payload', async () => {
      const socket = await open(server.wsUrl);
      socket.send({ type: 'connection_init', payload: { any: 'thing' } });
      expect(await socket.next()).toEqual({ type: 'connection_ack' });
    });

    it('closes with 4408 when no initialisation comes in time', async () => {
      const socket = await open(server.wsUrl);
      expect(await socket.closed).toEqual({ code: 4408, reason: 'Connection initialisation timeout' });
    });

    it('closes with 4429 on a second initialisation', async () => {
      const socket = await ready();
      socket.send({ type: 'connection_init' });
      expect(await socket.closed).toEqual({ code: 4429, reason: 'Too many initialisation requests' });
    });

    it('closes with 4429 on a second one before the first is acknowledged', async () => {
      const socket = await open(server.wsUrl);
      socket.send({ type: 'connection_init' });
      socket.send({ type: 'connection_init' });
      expect((await socket.closed).code).toBe(4429);
    });

    it('closes with 4401 on an operation before the acknowledgement', async () => {
      const socket = await open(server.wsUrl);
      socket.send(subscribe('1', EVENTS));
      expect(await socket.closed).toEqual({ code: 4401, reason: 'Unauthorized' });
    });
  });

  describe('ping and pong', () => {
    it('answers a ping with a pong, also before the initialisation', async () => {
      const socket = await open(server.wsUrl);
      socket.send({ type: 'ping' });
      expect(await socket.next()).toEqual({ type: 'pong' });
    });

    it('answers with the payload of the ping', async () => {
      const socket = await ready();
      socket.send({ type: 'ping', payload: { n: 1 } });
      expect(await socket.next()).toEqual({ type: 'pong', payload: { n: 1 } });
    });

    it('takes an unasked pong in silence', async () => {
      const socket = await ready();
      socket.send({ type: 'pong' });
      socket.send({ type: 'ping' });
      expect(await socket.next()).toEqual({ type: 'pong' });
    });

    it('answers a ping frame of the WebSocket itself', async () => {
      const socket = await ready();
      const pong = once(socket.ws, 'pong');
      socket.ws.ping('x');
      expect(String((await pong)[0])).toBe('x');
    });
  });

  describe('invalid messages', () => {
    it.each([
      ['no JSON', '{'],
      ['empty text', ''],
      ['a list', '[]'],
      ['null', 'null'],
      ['no type', '{}'],
      ['an unknown type', '{"type":"start"}'],
      ['a type that is no text', '{"type":1}'],
      ['a type of the server', '{"type":"connection_ack"}'],
      ['a result', '{"type":"next","id":"1","payload":{}}'],
      ['an error', '{"type":"error","id":"1","payload":[{"message":"x"}]}'],
      ['a subscribe without id', '{"type":"subscribe","payload":{"query":"{a}"}}'],
      ['a subscribe with an empty id', '{"type":"subscribe","id":"","payload":{"query":"{a}"}}'],
      ['a subscribe without payload', '{"type":"subscribe","id":"1"}'],
      ['a query that is no text', '{"type":"subscribe","id":"1","payload":{"query":1}}'],
      [
        'variables that are no object',
        '{"type":"subscribe","id":"1","payload":{"query":"{a}","variables":[]}}',
      ],
      [
        'an operation name that is no text',
        '{"type":"subscribe","id":"1","payload":{"query":"{a}","operationName":1}}',
      ],
      [
        'extensions that are no object',
        '{"type":"subscribe","id":"1","payload":{"query":"{a}","extensions":1}}',
      ],
      ['a complete without id', '{"type":"complete"}'],
      ['a ping whose payload is no object', '{"type":"ping","payload":1}'],
    ])('closes with 4400 on %s', async (_name, text) => {
      const socket = await ready();
      socket.sendText(text);
      expect(await socket.closed).toEqual({ code: 4400, reason: 'Invalid message received' });
    });

    it('closes with 4400 on a binary message', async () => {
      const socket = await ready();
      socket.ws.send(Buffer.from('{"type":"ping"}'), { binary: true });
      expect((await socket.closed).code).toBe(4400);
    });
  });

  describe('single results', () => {
    it('sends next, then complete, for a query', async () => {
      const socket = await ready(all.wsUrl);
      socket.send(subscribe('q', '{ head }'));
      expect(await socket.next()).toEqual({ id: 'q', type: 'next', payload: { data: { head: 'here' } } });
      expect(await socket.next()).toEqual({ id: 'q', type: 'complete' });
    });

    it('sends next, then complete, for a mutation', async () => {
      const socket = await ready(all.wsUrl);
      socket.send(subscribe('m', 'mutation ($n: String!) { createRelease(name: $n) }', { n: 'one' }));
      expect(await socket.next()).toEqual({
        id: 'm',
        type: 'next',
        payload: { data: { createRelease: 'one' } },
      });
      expect(await socket.next()).toEqual({ id: 'm', type: 'complete' });
    });

    it('sends errors of the execution within next', async () => {
      const socket = await ready(all.wsUrl);
      socket.send(subscribe('q', '{ node(id: "1") { id broken } }'));
      expect(await socket.next()).toMatchObject({
        type: 'next',
        payload: {
          data: { node: { id: '1', broken: null } },
          errors: [{ path: ['node', 'broken'], extensions: { code: 'INTERNAL' } }],
        },
      });
      await socket.next('complete');
    });

    it('sends no result of a query that was completed meanwhile', async () => {
      const socket = await ready(all.wsUrl);
      all.mutations.hold = true;
      socket.send(subscribe('m', 'mutation { createRelease(name: "held") }'));
      await waitFor(() => all.transport.open.inFlight > 0, 'the mutation runs');
      socket.send({ type: 'complete', id: 'm' });
      socket.send({ type: 'ping' });
      await socket.next('pong');
      all.mutations.hold = false;
      all.mutations.release();
      await waitFor(() => all.transport.open.inFlight === 0, 'the mutation ended');
      socket.send({ type: 'ping' });
      expect(await socket.next()).toEqual({ type: 'pong' });
    });

    it('takes an id again after its operation completed', async () => {
      const socket = await ready(all.wsUrl);
      for (let round = 0; round < 3; round++) {
        socket.send(subscribe('same', '{ head }'));
        await socket.next('next');
        await socket.next('complete');
      }
    });
  });

  describe('errors before the execution', () => {
    it.each([
      ['a document that does not parse', 'subscription {', 'GRAPHQL_PARSE_FAILED'],
      ['an unknown field', 'subscription { nothing }', 'GRAPHQL_VALIDATION_FAILED'],
      [
        'two root fields',
        'subscription { a: deploymentPhaseChanged { value } b: watchDeployments { value } }',
        'GRAPHQL_VALIDATION_FAILED',
      ],
      ['a query where only subscriptions are carried', '{ head }', 'GRAPHQL_PARSE_FAILED'],
      [
        'a cursor that is refused',
        'subscription { watchDeployments(after: "expired") { value } }',
        'CURSOR_EXPIRED',
      ],
    ])('sends error and no complete for %s', async (_name, query, code) => {
      const socket = await ready();
      socket.send(subscribe('1', query));
      expect(await socket.next()).toMatchObject({
        id: '1',
        type: 'error',
        payload: [{ message: expect.any(String) as string, extensions: { code } }],
      });
      socket.send({ type: 'ping' });
      expect(await socket.next()).toEqual({ type: 'pong' });
    });

    it('leaves the siblings of a refused operation alone', async () => {
      const socket = await ready();
      socket.send(subscribe('good', EVENTS));
      await waitFor(() => server.topics.a.streams.size > 0, 'the stream is open');
      socket.send(subscribe('bad', 'subscription { nothing }'));
      await socket.next('error');
      server.topics.a.publish(7);
      expect(await socket.next()).toMatchObject({
        id: 'good',
        type: 'next',
        payload: { data: { deploymentPhaseChanged: { value: 7 } } },
      });
    });
  });

  describe('streams', () => {
    it('sends each event as next, in order', async () => {
      const socket = await ready();
      socket.send(subscribe('s', 'subscription { deploymentPhaseChanged(topic: "b") { value } }'));
      await waitFor(() => server.topics.b.streams.size === 1, 'the stream is open');
      for (let n = 0; n < 50; n++) server.topics.b.publish(n);
      for (let n = 0; n < 50; n++) {
        expect(await socket.next()).toEqual({
          id: 's',
          type: 'next',
          payload: { data: { deploymentPhaseChanged: { value: n } } },
        });
      }
      socket.close();
      await waitFor(() => server.topics.b.streams.size === 0, 'the stream is closed with its socket');
    });

    it('says complete when the source ends', async () => {
      const socket = await ready();
      socket.send(subscribe('s', 'subscription { watchDeployments(topic: "b") { value } }'));
      await waitFor(() => server.topics.b.streams.size === 1, 'the stream is open');
      server.topics.b.publish(1);
      server.topics.b.end();
      await socket.next('next');
      expect(await socket.next()).toEqual({ id: 's', type: 'complete' });
    });

    it('stops the source when the client says complete, and says nothing more of it', async () => {
      const socket = await ready();
      socket.send(subscribe('s', 'subscription { watchDeployments(topic: "b") { value } }'));
      await waitFor(() => server.topics.b.streams.size === 1, 'the stream is open');
      socket.send({ id: 's', type: 'complete' });
      await waitFor(() => server.topics.b.streams.size === 0, 'the stream is closed');
      server.topics.b.publish(1);
      socket.send({ type: 'ping' });
      expect(await socket.next()).toEqual({ type: 'pong' });
    });

    it('takes a complete of an unknown id in silence', async () => {
      const socket = await ready();
      socket.send({ id: 'never', type: 'complete' });
      socket.send({ type: 'ping' });
      expect(await socket.next()).toEqual({ type: 'pong' });
    });

    it('closes with 4409 when an id is used twice', async () => {
      const socket = await ready();
      socket.send(subscribe('s', EVENTS));
      socket.send(subscribe('s', EVENTS));
      expect(await socket.closed).toEqual({ code: 4409, reason: 'Subscriber for s already exists' });
    });

    it('refuses an id whose first use was completed while it was pending, and keeps neither', async () => {
      const socket = await ready();
      const query = 'subscription { watchDeployments(topic: "b") { value } }';
      const opened = server.topics.b.opened;
      // In one packet: the server takes all three before anything asynchronous of the first has happened.
      sendTogether(socket, [
        subscribe('s', query),
        { id: 's', type: 'complete' },
        subscribe('s', query),
        { type: 'ping' },
      ]);
      const answers = [await socket.next(), await socket.next()];
      expect(answers).toContainEqual(expect.objectContaining({ id: 's', type: 'error' }));
      expect(answers).toContainEqual({ type: 'pong' });
      expect(server.topics.b.opened).toBe(opened);
      // Once nothing is pending, the id is free.
      socket.send(subscribe('s', query));
      await waitFor(() => server.topics.b.streams.size === 1, 'the stream is open');
      socket.close();
      await waitFor(() => server.topics.b.streams.size === 0, 'it is closed');
    });

    it("takes the protocol's words for ids", async () => {
      const socket = await ready();
      for (const id of ['__proto__', 'constructor', '"\\', '🚢']) socket.send(subscribe(id, EVENTS));
      await waitFor(() => server.topics.a.streams.size >= 4, 'the streams are open');
      server.topics.a.publish(1);
      const ids = [
        await socket.next('next'),
        await socket.next('next'),
        await socket.next('next'),
        await socket.next('next'),
      ];
      expect(ids.map(({ id }) => id)).toEqual(['__proto__', 'constructor', '"\\', '🚢']);
    });

    it('chooses the operation by name', async () => {
      const socket = await ready();
      const query =
        'subscription A { deploymentPhaseChanged(topic: "b") { value } } subscription B { watchDeployments(topic: "b") { text } }';
      socket.send({ id: 's', type: 'subscribe', payload: { query, operationName: 'B' } });
      await waitFor(() => server.topics.b.streams.size === 1, 'the stream is open');
      server.topics.b.publish(1, 'hello');
      expect((await socket.next()).payload).toEqual({ data: { watchDeployments: { text: 'hello' } } });
    });

    it('frees every stream when the socket breaks without a close', async () => {
      const socket = await ready();
      const before = server.topics.a.streams.size;
      for (let n = 0; n < 5; n++) socket.send(subscribe(String(n), EVENTS));
      await waitFor(() => server.topics.a.streams.size === before + 5, 'the streams are open');
      socket.ws.terminate();
      await waitFor(() => server.topics.a.streams.size === before, 'the streams are closed');
    });
  });
});
