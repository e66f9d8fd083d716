import type { GraphQLFormattedError } from 'graphql';

import type { Actor } from '../access/actor.js';
import type { ActorState } from '../access/authenticator.js';
import type { Caller } from '../access/caller.js';
import type { EventSource, SourceEvent } from '../graph/stream-field.js';
import type { Clock } from '../kernel/clock.js';
import type { Reader } from '../kernel/tap.js';
import { Payload } from './frames.js';
import type { TransportMetrics } from './metrics.js';
import type { Outlet } from './outlet.js';
import type { Pipeline, Prepared } from './pipeline.js';
import { createSharedExecution, type SharedExecution, type SubscriberGroup } from './shared-execution.js';

/**
 * All open subscriptions of the process, whatever they came by. Each goes round: can the connection take more, what is
 * the next event, execute it (once for all equal subscribers), check the credentials again, send; and where it cannot go
 * on it says who is to wake it, and returns. So a change goes to all its subscribers in one plain loop, within the turn in
 * which the feed tells of it.
 *
 * Guarantees order per subscription; that nobody waits for another's connection; that closing frees everything at
 * once, also while an event is awaited or executed; and that nothing is sent on credentials that no longer hold.
 */
/** One socket or event stream, as its subscriptions see it. */
export interface Connection {
  readonly outlet: Outlet;
  /** Ends the whole connection because of its credentials. Called at most once for each subscription. */
  deny(state: Exclude<ActorState, 'valid'>): void;
}

export type StreamEnd =
  | { readonly type: 'completed' }
  | { readonly type: 'failed'; readonly errors: readonly GraphQLFormattedError[] }
  /** By `close`, by the connection, or by its credentials: nobody is told. */
  | { readonly type: 'closed' };

export interface Subscription {
  /** Never rejects. */
  readonly ended: Promise<StreamEnd>;
  close(): void;
  /** Sends the place that was reached, if the stream can say it and no event is on its way. */
  sendBookmark(): void;
}

/** Whose subscription it is. */
export interface Subscriber {
  /** Queues one event on the connection. `cursor` is where to resume after it. */
  send(payload: Payload, cursor: string): void;
  /** The same without an event, where the protocol has a way. */
  sendPlace(cursor: string): void;
}

export interface SubscribeOptions {
  readonly prepared: Prepared;
  readonly caller: Caller;
  readonly connection: Connection;
  readonly subscriber: Subscriber;
  /** A place that overrides the operation's own `after`: the `Last-Event-ID` of an event stream. */
  readonly after?: string | undefined;
}

export interface Hub {
  /** Undefined when the process is full. Nothing is sent during the call. */
  subscribe(options: SubscribeOptions): Subscription | undefined;
  readonly full: boolean;
  readonly open: number;
  readonly groups: number;
}

export interface HubDeps {
  readonly pipeline: Pipeline;
  readonly clock: Clock;
  readonly metrics: TransportMetrics;
  readonly actorState: (actor: Actor) => ActorState;
  readonly maxSubscriptions: number;
}

export function createHub(deps: HubDeps): Hub {
  const { pipeline, clock, metrics } = deps;
  const shared = createSharedExecution(pipeline, {
    onExecuted({ share }) {
      metrics.executions.inc();
      if (share !== null && 'at' in share && share.at instanceof Date) {
        metrics.commitToSend.observe((clock.now().getTime() - share.at.getTime()) / 1_000);
      }
    },
  });
  const open = new Set<Stream>();
  const surroundings = { ...deps, shared, forget: (stream: Stream) => void open.delete(stream) };
  return {
    subscribe(options) {
      if (open.size >= deps.maxSubscriptions) return undefined;
      const stream = new Stream(surroundings, options);
      open.add(stream);
      metrics.subscriptionsOpened.inc();
      // Not within this call: whoever subscribes does not know the stream yet.
      queueMicrotask(() => stream.wake());
      return stream;
    },
    get full() {
      return open.size >= deps.maxSubscriptions;
    },
    get open() {
      return open.size;
    },
    get groups() {
      return shared.groups;
    },
  };
}

interface Surroundings extends HubDeps {
  readonly shared: SharedExecution;
  forget(stream: Stream): void;
}

/** A class, and nothing suspended while it waits, since there are twenty thousand of them. */
class Stream implements Subscription, Reader {
  readonly ended: Promise<StreamEnd>;
  readonly #hub: Surroundings;
  readonly #options: SubscribeOptions;
  readonly #source: EventSource | undefined;
  readonly #group: SubscriberGroup | undefined;
  #resolve: ((end: StreamEnd) => void) | undefined;
  #failure: unknown;
  /** An event left the source and is not sent yet: a bookmark would pass it. */
  #holding = false;

  constructor(hub: Surroundings, options: SubscribeOptions) {
    const { prepared, caller, after } = options;
    this.#hub = hub;
    this.#options = options;
    this.ended = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    try {
      this.#source = hub.pipeline.open(prepared, caller, after);
      this.#group = hub.shared.join(prepared, caller);
    } catch (error) {
      this.#failure = error;
    }
  }

  close(): void {
    this.#finish({ type: 'closed' });
  }

  /** By what it waited for. It does as much as it can, and waits again. */
  wake(): void {
    try {
      if (this.#source && this.#group) this.#go(this.#source, this.#group);
      else this.#fail(this.#failure);
    } catch (error) {
      this.#fail(error);
    }
  }

  sendBookmark(): void {
    if (this.#gone() || this.#holding || !this.#source || !this.#group) return;
    const event = this.#source.bookmark();
    if (event === undefined || this.#state() !== 'valid') return;
    const { caller, subscriber } = this.#options;
    if (event.silent) return subscriber.sendPlace(event.cursor);
    const payload = this.#hub.shared.payload(this.#group, caller, event);
    // A bookmark reads nothing, so its execution does not wait; one that would comes too late before a close.
    if (payload instanceof Payload) subscriber.send(payload, event.cursor);
  }

  #go(source: EventSource, group: SubscriberGroup): void {
    const { caller, connection } = this.#options;
    while (!this.#gone()) {
      if (!connection.outlet.ready(this)) return;
      const event = source.take();
      if (event === undefined) {
        if (source.ended) return this.#finish({ type: 'completed' });
        return source.wait(this);
      }
      const payload = event.silent ? undefined : this.#hub.shared.payload(group, caller, event);
      if (payload instanceof Promise) return this.#sendLate(payload, event);
      this.#send(payload, event);
    }
    this.#finish({ type: 'closed' });
  }

  #sendLate(payload: Promise<Payload>, event: SourceEvent): void {
    this.#holding = true;
    payload.then(
      (made) => {
        this.#holding = false;
        this.#send(made, event);
        this.wake();
      },
      (error: unknown) => this.#fail(error),
    );
  }

  /** Undefined: nothing to show. */
  #send(payload: Payload | undefined, event: SourceEvent): void {
    if (this.#gone()) return;
    const { connection, subscriber } = this.#options;
    // After the execution, which may have read the database: no time passes between this check and the send.
    const state = this.#state();
    if (state !== 'valid') {
      connection.deny(state);
      return this.#finish({ type: 'closed' });
    }
    if (!payload) return subscriber.sendPlace(event.cursor);
    subscriber.send(payload, event.cursor);
    this.#hub.metrics.eventsSent.inc();
  }

  /** A method, since the compiler takes a field that was just checked for unchanged. */
  #gone(): boolean {
    return this.#resolve === undefined || this.#options.connection.outlet.closed;
  }

  #state(): ActorState {
    return this.#hub.actorState(this.#options.caller.actor);
  }

  #fail(error: unknown): void {
    if (this.#gone()) return this.#finish({ type: 'closed' });
    const errors = this.#hub.pipeline.mask([error], this.#options.caller, 'execute');
    this.#finish({ type: 'failed', errors });
  }

  #finish(end: StreamEnd): void {
    const resolve = this.#resolve;
    if (!resolve) return;
    this.#resolve = undefined;
    this.#source?.close();
    if (this.#group) this.#hub.shared.leave(this.#group);
    this.#options.connection.outlet.forget(this);
    this.#hub.forget(this);
    resolve(end);
  }
}
