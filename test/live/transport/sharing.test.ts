import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { openEventStream } from '../../support/event-stream.js';
import { openAcknowledged, subscribe, type RawSocket } from '../../support/raw-socket.js';
import { actor, startTestTransport, type TestTransport } from '../../support/transport-server.js';
import { waitFor } from '../../support/wait-for.js';

describe('one execution for many subscribers', () => {
  let server: TestTransport;
  beforeEach(async () => {
    server = await startTestTransport({
      tokens: new Map([
        ['one', actor('one', ['VIEWER'], 'viewers of blue')],
        ['two', actor('two', ['VIEWER'], 'viewers of blue')],
        ['red', actor('red', ['VIEWER'], 'viewers of red')],
      ]),
    });
  });
  afterEach(() => server.close());

  const clients = (...tokens: string[]) =>
    Promise.all(tokens.map((token) => openAcknowledged(server.wsUrl, token)));
  const opened = (count: number) =>
    waitFor(() => server.topics.a.streams.size === count, `${count} are open`);
  const event = async (socket: RawSocket) =>
    (await socket.next('next')).payload as { data: { deploymentPhaseChanged: Record<string, unknown> } }; // the documents below

  it('serves equal subscribers of one class by all transports', async () => {
    const sockets = await clients('one', 'two');
    const query =
      'subscription ($filter: String, $after: String) { deploymentPhaseChanged(filter: $filter, after: $after) { value classKey } }';
    sockets.forEach((socket, n) =>
      socket.send(subscribe(`id-${n}`, query, { after: `c${n}`, filter: `f${n}`, unknown: n })),
    );
    const stream = await openEventStream(server.url, { query }, { headers: { authorization: 'Bearer two' } });
    await opened(3);
    expect(server.transport.open.groups).toBe(1);
    server.topics.a.publish(1);
    const data = { data: { deploymentPhaseChanged: { value: 1, classKey: 'viewers of blue' } } };
    for (const socket of sockets) expect(await event(socket)).toEqual(data);
    expect(await stream.next()).toMatchObject({ id: 'c1', data });
    expect(server.executions.count).toBe(1);
    server.topics.a.publish(2);
    for (const socket of sockets) await event(socket);
    expect(server.executions.count).toBe(2);
  });

  it.each([
    ['the class', 'one', 'red', '{ value classKey }', '{ value classKey }'],
    ['the document', 'one', 'two', '{ value }', '{ value text }'],
    [
      'a variable of the selection',
      'one',
      'two',
      '{ value @include(if: $flag) text }',
      '{ value @include(if: $flag) text }',
    ],
  ])('keeps apart what differs in %s', async (_name, first, second, ofFirst, ofSecond) => {
    const sockets = await clients(first, second);
    [ofFirst, ofSecond].forEach((selection, n) => {
      const [head, variables] = selection.includes('$flag')
        ? ['subscription ($flag: Boolean!)', { flag: n === 0 }]
        : ['subscription', {}];
      sockets[n]?.send(subscribe('s', `${head} { deploymentPhaseChanged ${selection} }`, variables));
    });
    await opened(2);
    server.topics.a.publish(1);
    const events = await Promise.all(sockets.map(event));
    expect(events[0]).not.toEqual(events[1]);
    expect(server.executions.count).toBe(2);
  });

  it('tells an absent variable, which has its default, from null', async () => {
    const sockets = await clients('one', 'two');
    const query = 'subscription ($of: String = "default") { deploymentPhaseChanged { echo(of: $of) } }';
    sockets.forEach((socket, n) => socket.send(subscribe('s', query, n === 0 ? {} : { of: null })));
    await opened(2);
    server.topics.a.publish(1);
    const [absent, isNull] = await Promise.all(sockets.map((socket) => socket.next('next')));
    expect(absent?.payload).toEqual({ data: { deploymentPhaseChanged: { echo: 'default' } } });
    expect(isNull?.payload).toEqual({ data: { deploymentPhaseChanged: { echo: null } } });
  });

  it('never shares what is personal', async () => {
    const sockets = await clients('one', 'two');
    for (const socket of sockets) {
      socket.send(subscribe('s', 'subscription { deploymentPhaseChanged { value who } }'));
    }
    await opened(2);
    server.topics.a.publish(1);
    const who = await Promise.all(
      sockets.map(async (socket) => (await event(socket)).data.deploymentPhaseChanged['who']),
    );
    expect(who).toEqual(['token:one', 'token:two']);
  });
});
