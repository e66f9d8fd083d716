import type { GraphQLFormattedError } from 'graphql';
import type { WebSocket } from 'ws';

import type { Actor } from '../access/actor.js';
import type { ActorState } from '../access/authenticator.js';
import type { Caller } from '../access/caller.js';
import { readTurns } from '../kernel/read-turns.js';
import { CLOSE, closeOf, type CloseCode, type Connections, type SweptConnection } from './connections.js';
import { nextHead, textMessage, type Payload } from './frames.js';
import type { Connection, Hub, Subscriber, Subscription } from './hub.js';
import { TokenBucket, type TransportLimits } from './limits.js';
import { Liveness, type Verdict } from './liveness.js';
import type { Outlet } from './outlet.js';
import type { Prepared } from './pipeline.js';

/**
 * One WebSocket: its operations, credentials, budget of messages, and its one way to end. The protocol itself is spoken
 * by graphql-ws; frames of events are written here.
 */

/** One operation, from its `subscribe` message until nothing of it is left. */
export class SocketOperation implements Subscriber {
  readonly session: SocketSession;
  readonly id: string;
  readonly caller: Caller;
  readonly #head: Buffer;
  /** What the client gets in place of graphql-ws' own errors. */
  errors: readonly GraphQLFormattedError[] | undefined;
  prepared: Prepared | undefined;
  subscription: Subscription | undefined;
  /** What is read to answer a query or a mutation. */
  readonly turns = readTurns();
  /** The client said `complete`, or the socket ended; maybe before the operation began. */
  cancelled = false;

  constructor(session: SocketSession, id: string, caller: Caller) {
    this.session = session;
    this.id = id;
    this.caller = caller;
    this.#head = nextHead(id);
  }

  send(payload: Payload): void {
    this.session.outlet.push(payload.next(this.id, this.#head));
  }

  /** The protocol has no message for it. */
  sendPlace(): void {
    // Whoever was told of nothing resumes from where it began.
  }

  cancel(): void {
    this.cancelled = true;
    this.subscription?.close();
    // A mutation goes on, whoever waits for it.
    if (this.prepared?.plan.kind === 'query') this.turns.end();
  }
}

export interface SessionDeps {
  readonly hub: Hub;
  readonly connections: Connections;
  readonly limits: TransportLimits;
  /** For the spread of ages; in [0, 1). */
  readonly random: () => number;
}

/** After an `end`, how long the peer may take to answer the close frame; a stalled one never does. */
export const CLOSE_GRACE_MS = 1_000;

export class SocketSession implements SweptConnection, Connection {
  readonly ws: WebSocket;
  readonly outlet: Outlet;
  /** Pending and open ones, by the client's id. graphql-ws' own set forgets a pending one that was completed. */
  readonly operations = new Map<string, SocketOperation>();
  /** From the handshake; stands in change rows of what this socket does. */
  readonly traceId: string | null;
  actor: Actor | undefined;
  ended = false;
  readonly #deps: SessionDeps;
  readonly #liveness: Liveness;
  readonly #messages: TokenBucket;

  constructor(deps: SessionDeps, ws: WebSocket, outlet: Outlet, traceId: string | null) {
    const { connections, limits } = deps;
    this.#deps = deps;
    this.ws = ws;
    this.outlet = outlet;
    this.traceId = traceId;
    this.#liveness = new Liveness(limits, connections.nowMs, deps.random);
    this.#messages = new TokenBucket(limits.messagesPerSecond, limits.messagesBurst, connections.nowMs);
  }

  /** False when the socket said more than it may; it is ended then. */
  spend(nowMs: number): boolean {
    this.#liveness.heard();
    if (this.#messages.take(nowMs)) return true;
    this.end(CLOSE.limit, 'Too many messages');
    return false;
  }

  /** A protocol message, in order with the frames of events. */
  say(message: string): void {
    this.outlet.push(textMessage(message));
  }

  /** Attaches the stream of an operation. Undefined when the process is full. */
  subscribe(operation: SocketOperation, prepared: Prepared): Subscription | undefined {
    operation.subscription = this.#deps.hub.subscribe({
      prepared,
      caller: operation.caller,
      connection: this,
      subscriber: operation,
    });
    return operation.subscription;
  }

  deny(state: Exclude<ActorState, 'valid'>): void {
    const [code, reason] = closeOf(state);
    this.end(code, reason);
  }

  judge(nowMs: number): Verdict {
    return this.#liveness.judge(this.outlet, nowMs);
  }

  ping(): void {
    if (this.ws.readyState === this.ws.OPEN) this.ws.ping();
  }

  /** Says where each stream stands (on codes that ask the client to come back), frees everything, closes. */
  end(code: CloseCode, reason: string): void {
    if (this.ended) return;
    if (code === CLOSE.restart || code === CLOSE.overload) {
      for (const operation of this.operations.values()) operation.subscription?.sendBookmark();
    }
    this.outlet.flush();
    this.release();
    this.#deps.connections.remove(this, code);
    this.ws.close(code, reason);
  }

  /** Frees what the socket holds, whoever closed it. May be called twice. */
  release(): void {
    this.ended = true;
    for (const operation of this.operations.values()) operation.cancel();
    this.outlet.close();
  }
}
