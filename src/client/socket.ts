import {
  GRAPHQL_TRANSPORT_WS_PROTOCOL,
  MessageType,
  parseMessage,
  stringifyMessage,
} from 'graphql-ws/client';
import type { ClientClock, Timing } from './timing.js';
import type { GraphResult, StreamEnd } from './transport.js';

/** What the client uses of the WebSocket of browsers, of Node 22 and of the package `ws`. */
export interface WebSocketLike {
  readonly readyState: number;
  // `never`: each implementation has event classes of its own; what is read of them is said where they are handled.
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  send(data: string): void;
  close(code?: number, reason?: string): void;
  /** Of the package `ws`: without it a close waits for an answer that a dead peer never gives. */
  terminate?(): void;
}
export type WebSocketConstructor = new (url: string, protocol: string) => WebSocketLike;

/** The server takes 20 messages a second after a burst of 50; staying below leaves room for pings. */
export const MESSAGE_BURST = 40;
export const MESSAGES_PER_SECOND = 15;

const OPEN = 1;
/** graphql-ws' word for a peer that does not answer. */
const TERMINATED = 4_499;

export interface SocketListener {
  accepted(): void;
  next(result: GraphResult): void;
  ended(end: StreamEnd): void;
}

export interface SocketOptions {
  readonly url: string;
  readonly webSocketImpl: WebSocketConstructor;
  readonly token: string | undefined;
  readonly clock: ClientClock;
  readonly timing: Timing;
  /** Called once, when nothing more can be started on it; its operations are told afterwards. */
  readonly onClosed: () => void;
}

interface Operation {
  readonly payload: {
    readonly query: string;
    readonly operationName: string | undefined;
    readonly variables: Readonly<Record<string, unknown>>;
  };
  readonly listener: SocketListener;
}

/**
 * One WebSocket for its whole life, speaking graphql-transport-ws for any number of operations. It never reconnects:
 * whoever holds operations decides that. A server that stops answering is found by pings; a socket that never opens,
 * by a limit on the time until the acknowledgement.
 */
export class Socket {
  readonly #options: SocketOptions;
  readonly #socket: WebSocketLike;
  readonly #operations = new Map<string, Operation>();
  /** Waiting for their turn; `sent` runs when it came. */
  readonly #outbox: { readonly text: string; readonly sent: (() => void) | undefined }[] = [];
  #tokens = MESSAGE_BURST;
  #refilledAtMs: number;
  #acknowledged = false;
  #closed = false;
  #ids = 0;
  #cancelWatchdog: () => void = () => undefined;
  #cancelSend: (() => void) | null = null;

  constructor(options: SocketOptions) {
    this.#options = options;
    this.#refilledAtMs = options.clock.monotonicMs();
    this.#socket = new options.webSocketImpl(options.url, GRAPHQL_TRANSPORT_WS_PROTOCOL);
    const socket = this.#socket;
    socket.onopen = () => {
      const { token } = options;
      // A browser can send no header with a handshake.
      const payload = token === undefined ? undefined : { authorization: `Bearer ${token}` };
      socket.send(stringifyMessage({ type: MessageType.ConnectionInit, ...(payload && { payload }) }));
    };
    socket.onmessage = ({ data }: { readonly data: unknown }) => this.#receive(data);
    // A close follows each error, with all that browsers tell.
    socket.onerror = () => undefined;
    socket.onclose = ({ code, reason }: { readonly code: number; readonly reason: string }) =>
      this.#over({ type: 'closed', code, reason });
    this.#watch(options.timing.connectMs);
  }

  get size(): number {
    return this.#operations.size;
  }

  /** Starts an operation; it is sent once the server has acknowledged the connection. The function ends it. */
  run(payload: Operation['payload'], listener: SocketListener): () => void {
    this.#ids += 1;
    const id = String(this.#ids);
    const operation: Operation = { payload, listener };
    this.#operations.set(id, operation);
    if (this.#acknowledged) this.#subscribe(id, operation);
    return () => {
      if (!this.#operations.delete(id) || this.#closed || !this.#acknowledged) return;
      this.#send(stringifyMessage({ id, type: MessageType.Complete }));
    };
  }

  /** Closes it without telling its operations. */
  close(): void {
    this.#operations.clear();
    if (!this.#closed) this.#over({ type: 'closed', code: 1000, reason: '' }, 1000);
  }

  #subscribe(id: string, operation: Operation): void {
    const { query, variables, operationName } = operation.payload;
    this.#send(
      stringifyMessage({ id, type: MessageType.Subscribe, payload: { query, variables, operationName } }),
      () => {
        // Given up while it waited for its turn.
        if (this.#operations.get(id) === operation) operation.listener.accepted();
      },
    );
  }

  #receive(data: unknown): void {
    if (this.#closed) return;
    this.#watch(this.#options.timing.pingMs);
    let message;
    try {
      message = parseMessage(data);
    } catch (cause) {
      this.#over({ type: 'unreachable', cause }, 4_400);
      return;
    }
    switch (message.type) {
      case MessageType.ConnectionAck:
        this.#acknowledged = true;
        for (const [id, operation] of [...this.#operations]) this.#subscribe(id, operation);
        return;
      case MessageType.Ping:
        // Past the queue: the server counts the seconds.
        this.#socket.send(
          stringifyMessage({ type: MessageType.Pong, ...(message.payload && { payload: message.payload }) }),
        );
        return;
      case MessageType.Next:
        this.#operations.get(message.id)?.listener.next(message.payload);
        return;
      case MessageType.Error:
        this.#finish(message.id, { type: 'errors', errors: message.payload });
        return;
      case MessageType.Complete:
        this.#finish(message.id, { type: 'completed' });
        return;
      case MessageType.Pong:
      case MessageType.ConnectionInit:
      case MessageType.Subscribe:
        return;
    }
  }

  #finish(id: string, end: StreamEnd): void {
    const operation = this.#operations.get(id);
    if (!this.#operations.delete(id)) return;
    operation?.listener.ended(end);
  }

  /** Restarted by each message: first asks, then gives up. */
  #watch(ms: number): void {
    this.#cancelWatchdog();
    this.#cancelWatchdog = this.#options.clock.after(ms, () => {
      if (!this.#acknowledged) {
        this.#over({ type: 'closed', code: 1006, reason: 'not acknowledged in time' }, TERMINATED);
        return;
      }
      if (this.#socket.readyState === OPEN) this.#socket.send(stringifyMessage({ type: MessageType.Ping }));
      this.#cancelWatchdog = this.#options.clock.after(this.#options.timing.pongMs, () =>
        this.#over({ type: 'closed', code: TERMINATED, reason: 'no answer to a ping' }, TERMINATED),
      );
    });
  }

  #over(end: StreamEnd, closeCode?: number): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#cancelWatchdog();
    this.#cancelSend?.();
    const socket = this.#socket;
    socket.onopen = null;
    socket.onmessage = null;
    socket.onclose = null;
    // `onerror` stays: `ws` throws an error that nobody listens to, and closing a socket that never opened is one.
    if (closeCode === TERMINATED && socket.terminate) socket.terminate();
    else if (closeCode !== undefined) socket.close(closeCode);
    this.#options.onClosed();
    const operations = [...this.#operations.values()];
    this.#operations.clear();
    for (const { listener } of operations) listener.ended(end);
  }

  #send(text: string, sent?: () => void): void {
    this.#outbox.push({ text, sent });
    this.#flush();
  }

  #flush(): void {
    const now = this.#options.clock.monotonicMs();
    this.#tokens = Math.min(
      MESSAGE_BURST,
      this.#tokens + ((now - this.#refilledAtMs) / 1_000) * MESSAGES_PER_SECOND,
    );
    this.#refilledAtMs = now;
    while (this.#outbox.length > 0 && this.#tokens >= 1 && this.#socket.readyState === OPEN) {
      this.#tokens -= 1;
      const message = this.#outbox.shift();
      if (message === undefined) break;
      this.#socket.send(message.text);
      message.sent?.();
    }
    if (this.#outbox.length === 0 || this.#cancelSend || this.#closed) return;
    this.#cancelSend = this.#options.clock.after(1_000 / MESSAGES_PER_SECOND, () => {
      this.#cancelSend = null;
      this.#flush();
    });
  }
}
