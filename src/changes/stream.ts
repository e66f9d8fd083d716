/**
 * One reader's way through the log: from a cursor, a snapshot or now, to the live feed. Guarantees: every change in the
 * filter once and in order (EVERY), or the newest of each object (LATEST); every cursor sent can be resumed after.
 *
 * It works when its reader asks: what nobody asks for costs a bounded mailbox and nothing else. A reader that falls
 * behind is told so (SLOW_CONSUMER, Reset) and harms nobody.
 */
import { decodeCursor, encodeCursor } from '../kernel/cursor.js';
import { nextOf, type Reader } from '../kernel/tap.js';
import type { LiveLog } from './live-log.js';
import { EveryMailbox, LATEST_MAX_OBJECTS, LatestMailbox, type Mailbox, type Offer } from './mailbox.js';
import { Replay } from './replay.js';
import { behind, expired, invalid, judgeCursor, REACH_TIMEOUT_MS, type Remainder } from './resume.js';
import type { ObjectSnapshot } from './shared-snapshots.js';
import { StreamEnded, type ChangeStream, type StreamItem, type StreamRequest } from './stream-types.js';
import type { Subscriber } from './subscribers.js';

/** A bookmark after so much silence, give or take a fifth. */
export const BOOKMARK_MS = 15_000;
/** A stream that is reset takes a new snapshot at most this often. */
const RESET_INTERVAL_MS = 5_000;
/** A reader of LATEST is woken within a step that changes so many, before its mailbox is full. */
const WAKE_AT_OBJECTS = LATEST_MAX_OBJECTS / 2;
type State =
  | { readonly name: 'opening' }
  | { readonly name: 'reset'; readonly reason: 'SLOW_CONSUMER' | 'CURSOR_EXPIRED' }
  | { readonly name: 'snapshot' }
  | { readonly name: 'rows'; readonly snapshot: ObjectSnapshot; next: number }
  | { readonly name: 'replay'; readonly replay: Replay }
  | { readonly name: 'live' }
  | { readonly name: 'ended'; error: StreamEnded | undefined };

export class Stream implements ChangeStream, Subscriber {
  readonly request: StreamRequest;
  readonly #live: LiveLog;
  readonly #mailbox: Mailbox;
  readonly #bookmarkMs = BOOKMARK_MS * (0.8 + 0.4 * Math.random());
  #state: State = { name: 'opening' };
  #attached = false;
  /** Something to be sent before anything else. */
  #first: StreamItem | undefined;
  /** Who waits. */
  #reader: Reader | undefined;
  /** The state whose work is under way. It goes on unheard when the stream comes to another one meanwhile. */
  #working: State | undefined;
  /** Ends a pause before its time. */
  #hurry: (() => void) | undefined;
  #cursor: string | null;
  /** As of the last tick. */
  #sentAtMs: number;
  #sentSinceTick = false;
  #snapshotAtMs = -Infinity;
  #bookmarkDue = false;
  #planned = false;

  constructor(live: LiveLog, request: StreamRequest) {
    this.#live = live;
    this.request = request;
    this.#mailbox = request.mode === 'EVERY' ? new EveryMailbox() : new LatestMailbox();
    this.#cursor = request.after;
    this.#sentAtMs = live.clock.monotonicMs();
    if (live.outage !== undefined) this.#end(new StreamEnded('UNAVAILABLE', live.outage, request.after));
    else if (request.after === null) this.#begin();
  }

  get size(): number {
    return this.#mailbox.size;
  }

  get ended(): boolean {
    return this.#state.name === 'ended';
  }

  get cursor(): string | null {
    const idle = this.#state.name === 'live' && this.#mailbox.size === 0 && this.#live.settled;
    return idle ? this.#live.positionCursor : this.#cursor;
  }

  take(): StreamItem | undefined {
    const item = this.#waiting();
    if (item === undefined) {
      this.#throwOnce(this.#state);
      return undefined;
    }
    this.#sentSinceTick = true;
    this.#cursor = item.cursor;
    return item;
  }

  wait(reader: Reader): void {
    if (this.#reader) throw new Error('another call waits for this stream');
    const state = this.#state;
    if (state.name === 'ended') return reader.wake();
    this.#reader = reader;
    if (state.name !== 'live' && state !== this.#working) void this.#work(state);
  }

  next(): Promise<StreamItem | undefined> {
    return nextOf(this);
  }

  close(): void {
    this.#end(undefined);
  }

  /** Ends the stream with a reason, unless it has ended. `cursor` of the error is where its reader stands. */
  fail(code: StreamEnded['code'], message: string, cause?: unknown): void {
    const cursor = code === 'CURSOR_EXPIRED' || code === 'CURSOR_INVALID' ? null : this.cursor;
    this.#end(new StreamEnded(code, message, cursor, cause === undefined ? undefined : { cause }));
  }

  /** The feed's history ended: what this stream stood at means nothing any more. */
  historyEnded(): void {
    if (this.#state.name === 'opening' || this.#state.name === 'ended') return;
    this.#expired();
  }

  deliver(offer: Offer): boolean {
    if (!this.#attached) return false; // it left while others were told of the same change
    if (!this.#mailbox.offer(offer)) this.#overflowed();
    else if (this.request.mode === 'LATEST' && this.#mailbox.size < WAKE_AT_OBJECTS) return this.#plan();
    else this.#wake();
    return false;
  }

  told(): void {
    this.#planned = false;
    this.#wake();
  }

  /** What one transaction did to an object comes as one: the reader is woken when all of it was delivered. */
  #plan(): boolean {
    if (this.#planned || !this.#reader) return false;
    this.#planned = true;
    return true;
  }

  /** Called each second. */
  tick(nowMs: number): void {
    if (this.#sentSinceTick) this.#sentAtMs = nowMs;
    this.#sentSinceTick = false;
    const waits = this.#reader !== undefined && this.#state.name === 'live';
    if (!waits || nowMs - this.#sentAtMs < this.#bookmarkMs) return;
    this.#bookmarkDue = true;
    this.#wake();
  }

  #begin(): void {
    if (this.request.mode === 'LATEST' && this.request.snapshot) this.#state = { name: 'snapshot' };
    else if (this.#live.settled) this.#attach();
    else this.#replay({ part: undefined, at: this.#live.position });
    if (this.#state.name !== 'snapshot') this.#cursor = this.#live.positionCursor;
  }

  #waiting(): StreamItem | undefined {
    const state = this.#state;
    const first = this.#first;
    this.#first = undefined;
    if (first) return first;
    if (state.name === 'rows') return this.#takeRow(state);
    const item = this.#mailbox.take();
    if (item || !this.#bookmarkDue) return item;
    this.#bookmarkDue = false;
    if (state.name !== 'live' || !this.#live.settled) return undefined;
    return { type: 'bookmark', cursor: this.#live.positionCursor, at: this.#live.clock.now() };
  }

  #takeRow(state: State & { name: 'rows' }): StreamItem {
    const { rows, position, at } = state.snapshot;
    const { epoch } = this.#live;
    const object = rows[state.next];
    const kind = this.request.snapshot?.kind;
    if (object !== undefined && kind !== undefined) {
      state.next += 1;
      return {
        type: 'object',
        object,
        kind,
        cursor: encodeCursor({ form: 'snapshot', epoch, at: position }),
        at,
      };
    }
    this.#replay({ part: undefined, at: position });
    return { type: 'snapshotEnd', cursor: encodeCursor({ form: 'at', epoch, at: position }), at };
  }

  async #work(state: State): Promise<void> {
    this.#working = state;
    try {
      if (state.name === 'opening') await this.#open(state);
      else if (state.name === 'reset') await this.#reset(state.reason);
      else if (state.name === 'snapshot') await this.#readSnapshot(state);
      else if (state.name === 'replay') await this.#fill(state);
    } catch (error) {
      if (this.#state === state) this.#failed(error);
    }
    if (this.#working === state) this.#working = undefined;
    this.#wake();
  }

  #failed(error: unknown): void {
    if (error instanceof StreamEnded) return this.#stopWith(error);
    this.#live.log.warn({ err: error }, 'A change stream could not be read on');
    this.fail('UNAVAILABLE', 'The change log cannot be read at the moment.', error);
  }

  #wake(): void {
    const reader = this.#reader;
    this.#reader = undefined;
    reader?.wake();
  }

  async #open(state: State): Promise<void> {
    const cursor = decodeCursor(this.request.after ?? '');
    if (!cursor) throw invalid();
    if (cursor.form === 'snapshot') {
      // The reader was cut inside a snapshot: only a whole one is of use to it.
      if (!this.request.snapshot || cursor.epoch !== this.#live.epoch) throw expired();
      return this.#resetBecause('CURSOR_EXPIRED');
    }
    const remainder = await judgeCursor(this.#live, cursor);
    if (this.#state === state) this.#replay(remainder);
  }

  async #readSnapshot(state: State): Promise<void> {
    const { snapshot: reader } = this.request;
    if (!reader) throw new Error('a snapshot without a reader of it'); // the state is only entered with one
    this.#snapshotAtMs = this.#live.clock.monotonicMs();
    const snapshot = await this.#live.snapshots.read(reader);
    if (!(await this.#live.reached(snapshot.position, REACH_TIMEOUT_MS))) throw behind();
    if (this.#state === state) this.#state = { name: 'rows', snapshot, next: 0 };
  }

  #replay(remainder: Remainder): void {
    this.#state = { name: 'replay', replay: new Replay(this.#live, this.request, remainder) };
  }

  #fill(state: State & { name: 'replay' }): Promise<void> {
    return state.replay.fill({
      mailbox: this.#mailbox,
      active: () => this.#state === state,
      attach: () => this.#attach(),
    });
  }

  #attach(): void {
    this.#state = { name: 'live' };
    this.#attached = true;
    this.#live.subscribers.add(this);
  }

  #detach(): void {
    if (this.#attached) this.#live.subscribers.remove(this);
    this.#attached = false;
    this.#mailbox.clear();
    this.#first = undefined;
    this.#bookmarkDue = false;
  }

  #overflowed(): void {
    this.#live.counters.slowConsumers += 1;
    if (this.request.mode === 'LATEST' && this.request.snapshot) return this.#resetBecause('SLOW_CONSUMER');
    this.fail('SLOW_CONSUMER', 'The reader is slower than the changes: resume after the last cursor.');
  }

  #stopWith(error: StreamEnded): void {
    if (error.code === 'CURSOR_EXPIRED') this.#expired();
    else this.fail(error.code, error.message, error.cause);
  }

  #expired(): void {
    if (this.request.onExpired === 'SNAPSHOT' && this.request.snapshot) this.#resetBecause('CURSOR_EXPIRED');
    else this.fail('CURSOR_EXPIRED', expired().message);
  }

  #resetBecause(reason: 'SLOW_CONSUMER' | 'CURSOR_EXPIRED'): void {
    this.#detach();
    this.#state = { name: 'reset', reason };
    this.#hurry?.();
    this.#wake();
  }

  async #reset(reason: 'SLOW_CONSUMER' | 'CURSOR_EXPIRED'): Promise<void> {
    const { clock, epoch, position: at, counters } = this.#live;
    const dueInMs = this.#snapshotAtMs + RESET_INTERVAL_MS - clock.monotonicMs();
    if (dueInMs > 0) return this.#pause(dueInMs);
    counters.resets += 1;
    this.#state = { name: 'snapshot' };
    this.#first = {
      type: 'reset',
      reason,
      cursor: encodeCursor({ form: 'snapshot', epoch, at }),
      at: clock.now(),
    };
  }

  /** Undefined: closed by its reader. */
  #end(error: StreamEnded | undefined): void {
    if (this.#state.name === 'ended') return;
    this.#cursor = error?.cursor ?? this.#cursor;
    this.#detach();
    this.#state = { name: 'ended', error };
    this.#live.forget(this);
    this.#hurry?.();
    this.#wake();
  }

  #throwOnce(state: State): void {
    if (state.name !== 'ended' || !state.error) return;
    const { error } = state;
    state.error = undefined;
    throw error;
  }

  async #pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const cancel = this.#live.clock.after(ms, resolve);
      this.#hurry = () => {
        cancel();
        resolve();
      };
    });
    this.#hurry = undefined;
  }
}
