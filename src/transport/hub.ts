import type { GraphQLFormattedError } from 'graphql';

import type { Actor } from '../access/actor.js';
import type { ActorState } from '../access/authenticator.js';
import type { Caller } from '../access/caller.js';
import type { EventSource, SourceEvent } from '../graph/stream-field.js';
import type { Clock } from '../kernel/clock.js';
import type { TransportMetrics } from './metrics.js';
import type { Outlet } from './outlet.js';
import type { Pipeline, Prepared } from './pipeline.js';
import { createSharedExecution, type SharedExecution, type SubscriberGroup } from './shared-execution.js';

/**
 * All open subscriptions of the process, whatever they came by. Per subscription one loop: wait until the connection
 * can take more, take the next event, execute it (once for all equal subscribers), check the credentials again, send.
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

export interface SubscribeOptions {
  readonly prepared: Prepared;
  readonly caller: Caller;
  readonly connection: Connection;
  /** A place that overrides the operation's own `after`: the `Last-Event-ID` of an event stream. */
  readonly after?: string | undefined;
  /** Queues one event on the connection. `cursor` is where to resume after it. */
  send(payload: Buffer, cursor: string): void;
}

export interface Hub {
  /** Undefined when the process is full. */
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
  const shared = createSharedExecution(deps.pipeline, () => deps.metrics.executions.inc());
  const open = new Set<Stream>();
  return {
    subscribe(options) {
      if (open.size >= deps.maxSubscriptions) return undefined;
      const stream = new Stream(deps, shared, options);
      open.add(stream);
      deps.metrics.subscriptionsOpened.inc();
      void stream.ended.then(() => open.delete(stream));
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

/** A class, since there are twenty thousand of them: one object and one suspended loop each. */
class Stream implements Subscription {
  readonly ended: Promise<StreamEnd>;
  readonly #deps: HubDeps;
  readonly #shared: SharedExecution;
  readonly #options: SubscribeOptions;
  #source: EventSource | undefined;
  #group: SubscriberGroup | undefined;
  #closed = false;
  /** An event left the source and is not sent yet: a bookmark would pass it. */
  #holding = false;

  constructor(deps: HubDeps, shared: SharedExecution, options: SubscribeOptions) {
    this.#deps = deps;
    this.#shared = shared;
    this.#options = options;
    this.ended = this.#live();
  }

  close(): void {
    this.#closed = true;
    this.#source?.close();
  }

  sendBookmark(): void {
    if (this.#closed || this.#holding || !this.#source?.bookmark || !this.#group) return;
    const event = this.#source.bookmark();
    if (event === undefined || this.#state() !== 'valid') return;
    const payload = this.#shared.payload(this.#group, this.#options.caller, event);
    // A bookmark reads nothing, so its execution does not wait; one that would comes too late before a close.
    if (payload instanceof Buffer) this.#options.send(payload, event.cursor);
  }

  async #live(): Promise<StreamEnd> {
    const { prepared, caller, after } = this.#options;
    try {
      this.#source = this.#deps.pipeline.open(prepared, caller, after);
      this.#group = this.#shared.join(prepared, caller);
      return await this.#pump(this.#source, this.#group);
    } catch (error) {
      if (this.#closed) return { type: 'closed' };
      return { type: 'failed', errors: this.#deps.pipeline.mask([error], caller, 'execute') };
    } finally {
      this.#closed = true;
      this.#source?.close();
      if (this.#group) this.#shared.leave(this.#group);
    }
  }

  async #pump(source: EventSource, group: SubscriberGroup): Promise<StreamEnd> {
    const { connection, caller, send } = this.#options;
    while (!this.#closed) {
      const wait = connection.outlet.ready();
      if (wait) await wait;
      if (this.#gone()) break;
      const event = await source.next();
      if (this.#gone()) break;
      if (event === undefined) return { type: 'completed' };
      this.#holding = true;
      const made = this.#shared.payload(group, caller, event);
      const payload = made instanceof Buffer ? made : await made;
      if (this.#gone()) break;
      // After the execution, which may have read the database: no time passes between this check and the send.
      const state = this.#state();
      if (state !== 'valid') {
        connection.deny(state);
        break;
      }
      send(payload, event.cursor);
      this.#holding = false;
      this.#observe(event);
    }
    return { type: 'closed' };
  }

  /** A method, since the compiler takes a field that was just checked for unchanged across an await. */
  #gone(): boolean {
    return this.#closed || this.#options.connection.outlet.closed;
  }

  #state(): ActorState {
    return this.#deps.actorState(this.#options.caller.actor);
  }

  #observe(event: SourceEvent): void {
    this.#deps.metrics.eventsSent.inc();
    if (event.share !== null && 'at' in event.share && event.share.at instanceof Date) {
      this.#deps.metrics.commitToSend.observe(
        (this.#deps.clock.now().getTime() - event.share.at.getTime()) / 1_000,
      );
    }
  }
}
