/**
 * One reader's way through the log: from a cursor, a snapshot or now, to the live feed. Guarantees: every change in the
 * filter once and in order (EVERY), or the newest of each object (LATEST); every cursor sent can be resumed after.
 *
 * It works when its reader asks: what nobody asks for costs a bounded mailbox and nothing else. A reader that falls
 * behind is told so (SLOW_CONSUMER, Reset) and harms nobody.
 */
import { decodeCursor, encodeCursor } from '../kernel/cursor.js';
import type { LiveLog } from './live-log.js';
import { EveryMailbox, LatestMailbox, type Mailbox } from './mailbox.js';
import { Replay } from './replay.js';
import { behind, expired, invalid, judgeCursor, REACH_TIMEOUT_MS, type Remainder } from './resume.js';
import type { ObjectSnapshot } from './shared-snapshots.js';
import { StreamEnded, type ChangeStream, type StreamItem, type StreamRequest } from './stream-types.js';
import { judge, type Subscriber } from './subscribers.js';
import type { DecodedRow } from './catalogue.js';

/** A bookmark after so much silence, give or take a fifth. */
export const BOOKMARK_MS = 15_000;
/** A stream that is reset takes a new snapshot at most this often. */
const RESET_INTERVAL_MS = 5_000;
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
  #asked = false;
  /** Something to be sent before anything else. */
  #first: StreamItem | undefined;
  /** Set while next() waits for news; called when there is some. */
  #wakeUp: (() => void) | undefined;
  /** Set while next() waits for anything; called when the stream ends or begins anew. */
  #interrupt: (() => void) | undefined;
  #cursor: string | null;
  #sentAtMs: number;
  #snapshotAtMs = -Infinity;
  #bookmarkDue = false;

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

  async next(): Promise<StreamItem | undefined> {
    if (this.#asked) throw new Error('next() was called while another call waits');
    this.#asked = true;
    try {
      for (;;) {
        const item = this.#take();
        if (item !== undefined) {
          this.#sentAtMs = this.#live.clock.monotonicMs();
          this.#cursor = item.cursor;
          return item;
        }
        if (this.#state.name === 'ended') return this.#last(this.#state);
        await this.#advance(this.#state);
      }
    } finally {
      this.#asked = false;
    }
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

  deliver(row: DecodedRow): void {
    if (!this.#attached) return; // it left while others were told of the same change
    const verdict = judge(this.request, row.change);
    if (!verdict) return;
    if (!this.#mailbox.offer({ row, ...verdict, cursor: row.change.cursor })) return this.#overflowed();
    this.#wakeUp?.();
  }

  /** Called each second. */
  tick(nowMs: number): void {
    if (this.#wakeUp === undefined || nowMs - this.#sentAtMs < this.#bookmarkMs) return;
    this.#bookmarkDue = true;
    this.#wakeUp();
  }

  #begin(): void {
    if (this.request.mode === 'LATEST' && this.request.snapshot) this.#state = { name: 'snapshot' };
    else if (this.#live.settled) this.#attach();
    else this.#replay({ part: undefined, at: this.#live.position });
    if (this.#state.name !== 'snapshot') this.#cursor = this.#live.positionCursor;
  }

  #take(): StreamItem | undefined {
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

  async #advance(state: State): Promise<void> {
    try {
      if (state.name === 'opening') await this.#unlessInterrupted(this.#open(state));
      else if (state.name === 'reset') await this.#reset(state.reason);
      else if (state.name === 'snapshot') await this.#unlessInterrupted(this.#readSnapshot(state));
      else if (state.name === 'replay') await this.#unlessInterrupted(this.#fill(state));
      else if (state.name === 'live') await this.#waitForNews();
    } catch (error) {
      if (error instanceof StreamEnded) return this.#stopWith(error);
      this.#live.log.warn({ err: error }, 'A change stream could not be read on');
      this.fail('UNAVAILABLE', 'The change log cannot be read at the moment.', error);
    }
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
    this.#interrupt?.();
  }

  async #reset(reason: 'SLOW_CONSUMER' | 'CURSOR_EXPIRED'): Promise<void> {
    const { clock, epoch, position: at, counters } = this.#live;
    const dueInMs = this.#snapshotAtMs + RESET_INTERVAL_MS - clock.monotonicMs();
    if (dueInMs > 0) return this.#waitMs(dueInMs);
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
    this.#interrupt?.();
  }

  #last(state: State & { name: 'ended' }): undefined {
    const { error } = state;
    state.error = undefined;
    if (error) throw error;
    return undefined;
  }

  /** Work goes on unheard when the stream ends meanwhile; it looks at the state before it changes anything. */
  #unlessInterrupted(work: Promise<void>): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      this.#interrupt = resolve;
      work.then(resolve, reject);
    }).finally(() => (this.#interrupt = undefined));
  }

  async #waitForNews(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wakeUp = resolve;
      this.#interrupt = resolve;
    });
    this.#wakeUp = undefined;
    this.#interrupt = undefined;
  }

  async #waitMs(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const cancel = this.#live.clock.after(ms, resolve);
      this.#interrupt = () => {
        cancel();
        resolve();
      };
    });
    this.#interrupt = undefined;
  }
}
