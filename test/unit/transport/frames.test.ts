import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';

import { nextHead, Payload, sseEvent, textMessage } from '../../../src/transport/frames.js';

let server: WebSocketServer;
let client: WebSocket;
let raw: IncomingMessage['socket'];
beforeAll(async () => {
  server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // a TCP server has no other
  const connected = once(server, 'connection');
  client = new WebSocket(`ws://127.0.0.1:${port}`);
  raw = ((await connected) as [WebSocket, IncomingMessage])[1].socket;
  await once(client, 'open');
});
afterAll(() => {
  client.terminate();
  server.close();
});

/** Read by a client of the library, from the bytes alone. */
async function read(frame: Buffer): Promise<string> {
  const message = once(client, 'message');
  raw.write(frame);
  const [data, isBinary] = (await message) as [Buffer, boolean];
  expect(isBinary).toBe(false);
  return data.toString();
}

describe('WebSocket frames', () => {
  // Both sides of each change of the length's own form.
  it.each([0, 1, 125, 126, 127, 65_535, 65_536, 70_000])('carry a text of %d bytes', async (length) => {
    const text = 'x'.repeat(length);
    expect(await read(textMessage(text))).toBe(text);
  });

  it.each(['1', 'with "quotes" and \\', '🚢', '\n'])('name their operation: %j', async (id) => {
    const payload = { data: { text: 'é🚢' } };
    const frame = new Payload(payload).next(id, nextHead(id));
    expect(JSON.parse(await read(frame))).toEqual({ id, type: 'next', payload });
  });
});

describe('a payload', () => {
  it('is one and the same frame for operations of one name in a row, and the right one for each other', () => {
    const payload = new Payload({ data: 1 });
    const frame = (id: string) => payload.next(id, nextHead(id));
    const first = frame('a');
    expect(frame('a')).toBe(first);
    expect(frame('b').subarray(2).toString()).toBe('{"id":"b","type":"next","payload":{"data":1}}');
    expect(frame('a')).toEqual(first);
  });

  it('is one and the same event for streams that stand at one cursor', () => {
    const payload = new Payload({ data: 1 });
    expect(payload.event('c1')).toBe(payload.event('c1'));
    expect(payload.event('c2').toString()).toBe('id: c2\nevent: next\ndata: {"data":1}\n\n');
  });
});

describe('event stream events', () => {
  it('carry the cursor as id', () => {
    expect(sseEvent('c1', Buffer.from('{"é":1}')).toString()).toBe('id: c1\nevent: next\ndata: {"é":1}\n\n');
    expect(sseEvent(null, Buffer.from('{}')).toString()).toBe('event: next\ndata: {}\n\n');
  });
});
