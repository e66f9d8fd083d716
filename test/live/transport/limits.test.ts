import { monitorEventLoopDelay } from 'node:perf_hooks';

import { afterEach, describe, expect, it } from 'vitest';

import { AuthFailure } from '../../../src/access/errors.js';
import type { Actor } from '../../../src/access/actor.js';
import { openEventStream } from '../../support/event-stream.js';
import { openAcknowledged, openSocket, sendTogether, subscribe } from '../../support/raw-socket.js';
import {
  actor,
  startTestTransport,
  type TestTransport,
  type TestTransportOptions,
} from '../../support/transport-server.js';
import { waitFor } from '../../support/wait-for.js';

const OPEN = 'subscription { deploymentPhaseChanged { value } }';

describe('limits of connections', () => {
  let server: TestTransport;
  const start = async (options: TestTransportOptions) => (server = await startTestTransport(options));
  afterEach(() => server.close());

  it('closes with 4442 above the rate of messages, and takes a burst below it', async () => {
    await start({ limits: { messagesPerSecond: 5, messagesBurst: 20 } });
    const polite = await openAcknowledged(server.wsUrl);
    for (let n = 0; n < 18; n++) polite.send({ type: 'ping' });
    for (let n = 0; n < 18; n++) await polite.next('pong');
    const flooder = await openAcknowledged(server.wsUrl);
    sendTogether(
      flooder,
      Array.from({ length: 200 }, () => ({ type: 'ping' })),
    );
    expect(await flooder.closed).toEqual({ code: 4442, reason: 'Too many messages' });
    expect(polite.ws.readyState).toBe(polite.ws.OPEN);
  });

  it('counts ping frames like messages', async () => {
    await start({ limits: { messagesBurst: 20 } });
    const flooder = await openAcknowledged(server.wsUrl);
    for (let n = 0; n < 100; n++) flooder.ws.ping();
    expect((await flooder.closed).code).toBe(4442);
  });

  it('refuses one operation too many on a socket, and no other', async () => {
    await start({ limits: { subscriptionsPerSocket: 3, messagesBurst: 1_000 } });
    const socket = await openAcknowledged(server.wsUrl);
    for (let n = 0; n < 5; n++) socket.send(subscribe(String(n), OPEN));
    for (const id of ['3', '4']) {
      expect(await socket.next('error')).toMatchObject({
        id,
        payload: [{ extensions: { code: 'RATE_LIMITED' } }],
      });
    }
    server.topics.a.publish(1);
    for (const id of ['0', '1', '2']) expect(await socket.next()).toMatchObject({ id, type: 'next' });
    // One that ends makes room.
    socket.send({ id: '0', type: 'complete' });
    await waitFor(() => server.transport.open.subscriptions === 2, 'one is closed');
    socket.send(subscribe('5', OPEN));
    await waitFor(() => server.transport.open.subscriptions === 3, 'another is open');
  });

  it('refuses one socket too many of a principal, others not, and takes the next when one is gone', async () => {
    const tokens = new Map<string, Actor | AuthFailure>([
      ['one', actor('one')],
      ['two', actor('two')],
    ]);
    await start({ limits: { socketsPerPrincipal: 2 }, tokens });
    const first = await openAcknowledged(server.wsUrl, 'one');
    await openAcknowledged(server.wsUrl, 'one');
    const third = await openSocket(server.wsUrl);
    third.send({ type: 'connection_init', payload: { authorization: 'Bearer one' } });
    expect((await third.closed).code).toBe(4442);
    const stream = await openEventStream(
      server.url,
      { query: OPEN },
      { headers: { authorization: 'Bearer one' } },
    );
    expect(await stream.next()).toMatchObject({
      data: { errors: [{ extensions: { code: 'RATE_LIMITED' } }] },
    });
    await openAcknowledged(server.wsUrl, 'two');
    first.close();
    await first.closed;
    await openAcknowledged(server.wsUrl, 'one');
  });

  it('refuses operations and sockets when the process is full', async () => {
    await start({ limits: { subscriptionsPerProcess: 2 } });
    const socket = await openAcknowledged(server.wsUrl);
    for (let n = 0; n < 3; n++) socket.send(subscribe(String(n), OPEN));
    expect(await socket.next('error')).toMatchObject({
      id: '2',
      payload: [{ extensions: { code: 'UNAVAILABLE' } }],
    });
    const late = await openSocket(server.wsUrl);
    late.send({ type: 'connection_init' });
    expect((await late.closed).code).toBe(1013);
    const stream = await openEventStream(server.url, { query: OPEN });
    expect(await stream.next()).toMatchObject({
      data: { errors: [{ extensions: { code: 'UNAVAILABLE' } }] },
    });
  });

  it.each([
    ['none', undefined, 4401],
    ['an unknown one', 'nobody', 4401],
    ['a revoked one', 'revoked', 4401],
    ['an expired one', 'expired', 4440],
  ])('closes an initialisation with %s of the tokens', async (_name, token, code) => {
    await start({
      tokens: new Map<string, AuthFailure>([
        ['revoked', new AuthFailure('revoked')],
        ['expired', new AuthFailure('expired')],
      ]),
    });
    const socket = await openSocket(server.wsUrl);
    socket.send({
      type: 'connection_init',
      ...(token === undefined ? {} : { payload: { authorization: `Bearer ${token}` } }),
    });
    expect((await socket.closed).code).toBe(code);
  });

  it('takes the token of the handshake too', async () => {
    await start({ tokens: new Map([['one', actor('one')]]) });
    const socket = await openSocket(server.wsUrl, { headers: { authorization: 'Bearer one' } });
    socket.send({ type: 'connection_init' });
    await socket.next('connection_ack');
  });

  it.each([
    ['expired', 4440],
    ['changed', 4440],
    ['revoked', 4401],
  ] as const)('sends nothing on credentials that are %s, and closes with %d', async (state, code) => {
    await start({
      tokens: new Map([
        ['one', actor('one')],
        ['two', actor('two')],
      ]),
      limits: { pingEveryMs: 60_000 },
    });
    const socket = await openAcknowledged(server.wsUrl, 'one');
    const other = await openAcknowledged(server.wsUrl, 'two');
    const stream = await openEventStream(
      server.url,
      { query: OPEN },
      { headers: { authorization: 'Bearer one' } },
    );
    for (const client of [socket, other]) client.send(subscribe('s', OPEN));
    await waitFor(() => server.topics.a.streams.size === 3, 'all are open');
    server.states.set('token:one', state);
    server.topics.a.publish(1);
    expect((await socket.closed).code).toBe(code);
    expect(socket.messages.filter(({ type }) => type === 'next')).toEqual([]);
    expect(await stream.next()).toMatchObject({
      data: { errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] },
    });
    expect(await other.next()).toMatchObject({ type: 'next' });
  });

  it('closes an idle socket whose credentials were revoked', async () => {
    await start({
      tokens: new Map([['one', actor('one')]]),
      limits: { pingEveryMs: 100, pongWithinMs: 100 },
    });
    const socket = await openAcknowledged(server.wsUrl, 'one');
    server.states.set('token:one', 'revoked');
    expect((await socket.closed).code).toBe(4401);
  });

  it('ends a socket that answers no ping, and none that does', async () => {
    await start({ limits: { pingEveryMs: 60, pongWithinMs: 60, messagesBurst: 10_000 } });
    const good = await openAcknowledged(server.wsUrl);
    const silent = await openAcknowledged(server.wsUrl, undefined, { autoPong: false });
    expect(await silent.closed).toMatchObject({ code: 4441 });
    let pings = 0;
    good.ws.on('ping', () => (pings += 1));
    await waitFor(() => pings >= 4, 'pings come');
    expect(good.ws.readyState).toBe(good.ws.OPEN);
  });

  it('asks old connections to come again, with a last bookmark', async () => {
    await start({ limits: { connectionAgeMs: 300, pingEveryMs: 100, pongWithinMs: 100 } });
    const socket = await openAcknowledged(server.wsUrl);
    socket.send(subscribe('s', 'subscription { deploymentPhaseChanged { value text cursor } }'));
    const stream = await openEventStream(server.url, { query: OPEN });
    await waitFor(() => server.topics.a.streams.size === 2, 'both are open');
    server.topics.a.publish(5);
    expect((await socket.closed).code).toBe(1012);
    expect(socket.messages.at(-1)).toMatchObject({
      id: 's',
      payload: { data: { deploymentPhaseChanged: { text: 'bookmark', cursor: 'c5' } } },
    });
    expect(await stream.next()).toMatchObject({ id: 'c5' });
    expect(await stream.next()).toMatchObject({
      id: 'c5',
      data: { data: { deploymentPhaseChanged: { value: -1 } } },
    });
    expect(await stream.next()).toBeUndefined(); // without `complete`, so that a browser comes back
  });

  it('stays quick while it is flooded from all sides', async () => {
    await start({
      limits: { socketsLoopback: 20, subscriptionsPerSocket: 10, subscriptionsPerProcess: 100 },
    });
    const delay = monitorEventLoopDelay({ resolution: 5 });
    delay.enable();
    const flood = Array.from({ length: 40 }, async () => {
      const socket = await openSocket(server.wsUrl);
      sendTogether(socket, [{ type: 'connection_init' }]);
      await socket.next().catch(() => undefined); // some are one too many
      sendTogether(
        socket,
        Array.from({ length: 500 }, (_, n) => subscribe(String(n), OPEN)),
      );
      return socket.closed;
    });
    const codes = (await Promise.all(flood)).map(({ code }) => code);
    delay.disable();
    expect(new Set(codes)).toEqual(new Set([4442]));
    // A figure of the bars is for a machine of its own; here only what no queue of work would pass.
    expect(delay.percentile(99) / 1e6).toBeLessThan(1_000);
    await waitFor(
      () => server.transport.open.subscriptions === 0 && server.transport.open.connections === 0,
      'nothing is left',
    );
    expect((await server.post({ query: '{ head }' })).status).toBe(200);
  });
});
