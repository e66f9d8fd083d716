import type { Socket } from 'node:net';

import { WebSocket, type ClientOptions } from 'ws';

/**
 * A client of the `graphql-transport-ws` protocol without a library: says exactly what a test tells it to, and keeps
 * every message and the close in order.
 */
export interface Message {
  readonly type: string;
  readonly id?: string;
  readonly payload?: unknown;
}

export interface Closed {
  readonly code: number;
  readonly reason: string;
}

export interface RawSocket {
  readonly ws: WebSocket;
  /** All so far. */
  readonly messages: readonly Message[];
  send(message: unknown): void;
  sendText(text: string): void;
  /** The next message that no `next` gave before; rejects when the socket closes first. */
  next(type?: string): Promise<Message>;
  readonly closed: Promise<Closed>;
  close(): void;
}

export interface SocketOptions extends ClientOptions {
  readonly protocol?: string;
}

/** Resolves when the handshake is done; rejects with its status (`403`) when it was refused. */
export async function openSocket(
  url: string,
  { protocol = 'graphql-transport-ws', ...options }: SocketOptions = {},
): Promise<RawSocket> {
  const ws = new WebSocket(url, protocol === '' ? [] : protocol, { perMessageDeflate: false, ...options });
  const messages: Message[] = [];
  let read = 0;
  let wake = () => undefined as void;
  const closed = new Promise<Closed>((resolve) => {
    ws.once('close', (code, reason) => resolve({ code, reason: String(reason) }));
  });
  ws.on('message', (data) => {
    messages.push(JSON.parse((data as Buffer).toString()) as Message); // ws gives one Buffer; the server sends JSON objects
    wake();
  });
  await new Promise<void>((resolve, reject) => {
    ws.once('open', resolve);
    ws.once('error', reject);
    ws.once('unexpected-response', (_request, response) => reject(new Error(String(response.statusCode))));
  });
  ws.on('error', () => undefined); // the close tells

  const take = async (): Promise<Message> => {
    for (;;) {
      const message = messages[read];
      if (message) {
        read += 1;
        return message;
      }
      const more = new Promise<undefined>((resolve) => {
        wake = () => resolve(undefined);
      });
      const end = await Promise.race([more, closed]);
      if (end && messages.length === read) throw new Error(`closed: ${end.code} ${end.reason}`);
    }
  };
  return {
    ws,
    messages,
    closed,
    send: (message) => ws.send(JSON.stringify(message)),
    sendText: (text) => ws.send(text),
    async next(type) {
      const message = await take();
      if (type !== undefined && message.type !== type) {
        throw new Error(`expected ${type}, got ${JSON.stringify(message)}`);
      }
      return message;
    },
    close: () => ws.close(),
  };
}

/** Open, initialised and acknowledged. */
export async function openAcknowledged(
  url: string,
  token?: string,
  options?: SocketOptions,
): Promise<RawSocket> {
  const socket = await openSocket(url, options);
  socket.send({
    type: 'connection_init',
    ...(token === undefined ? {} : { payload: { authorization: `Bearer ${token}` } }),
  });
  await socket.next('connection_ack');
  return socket;
}

export function subscribe(id: string, query: string, variables?: Record<string, unknown>): object {
  return { id, type: 'subscribe', payload: { query, ...(variables ? { variables } : {}) } };
}

/** All in one packet, so that the server finds them together. */
export function sendTogether({ ws }: RawSocket, messages: readonly unknown[]): void {
  const { _socket: socket } = ws as unknown as { _socket: Socket }; // ws has no public way to cork
  socket.cork();
  for (const message of messages) ws.send(JSON.stringify(message));
  socket.uncork();
}
