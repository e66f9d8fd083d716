/**
 * The one reader of the change log in this process, and the door to it: streams, pages and listeners. Guarantees: every
 * committed change is told to every stream whose filter holds it, in order, once; listeners hear of it first.
 */
import type { Clock } from '../kernel/clock.js';
import { encodeCursor } from '../kernel/cursor.js';
import type { ObjectKind } from '../kernel/ids.js';
import type { Log } from '../kernel/log.js';
import { BEGINNING, covers, parseSnapshot, type Snapshot } from '../kernel/snapshot.js';
import type { Database } from '../store/database.js';
import type { OpenSession } from '../store/session.js';
import type { DecodedRow } from './catalogue.js';
import type { LiveLog, StreamCounters } from './live-log.js';
import { readLogState } from './log.js';
import { readPage, timelinePage } from './pages.js';
import { Ring, RING_MAX_BYTES, RING_MAX_CHANGES } from './ring.js';
import { SharedSnapshots } from './shared-snapshots.js';
import { StepReader, type StepSink } from './step-reader.js';
import {
  StreamEnded,
  type ChangeStream,
  type Feed,
  type FeedStats,
  type StreamRequest,
} from './stream-types.js';
import { Stream } from './stream.js';
import { Subscribers } from './subscribers.js';
import type { Change } from './types.js';
import { createWakes, type Wakes } from './wakes.js';

export type * from './stream-types.js';
export { StreamEnded } from './stream-types.js';

/** The feed is current while its last step is younger. */
const CURRENT_MS = 5_000;
const TICK_MS = 1_000;

export interface FeedDeps {
  readonly database: Pick<Database, 'pool' | 'readPool' | 'inTransaction'>;
  /** Sessions of the owner of the tables, on the primary. */
  readonly openSession: OpenSession;
  readonly clock: Clock;
  readonly log: Log;
}

export function createFeed(deps: FeedDeps): Feed {
  return new LogFeed(deps);
}

class LogFeed implements Feed, StepSink {
  readonly #deps: FeedDeps;
  readonly #reader: StepReader;
  readonly #wakes: Wakes;
  readonly #live: MutableLiveLog;
  readonly #streams = new Set<Stream>();
  readonly #listeners = new Map<ObjectKind, Set<(change: Change) => void>>();
  readonly #historyListeners = new Set<() => void>();
  readonly #waiting = new Set<{ readonly moment: Snapshot; readonly done: (reached: boolean) => void }>();
  /** The rows of the step that is being told, for the ring; undefined when they are too many for it. */
  #stepRows: DecodedRow[] | undefined = [];
  #stepBytes = 0;
  #lastStepMs = -Infinity;
  #telling = false;
  #cancelTick: (() => void) | undefined;
  #counts = { steps: 0, changes: 0, badRows: 0, reconnects: 0 };

  constructor(deps: FeedDeps) {
    this.#deps = deps;
    this.#reader = new StepReader(deps, this);
    this.#wakes = createWakes({ ...deps, onWake: () => this.#reader.wake() });
    this.#live = new MutableLiveLog(deps, {
      settled: () => this.#reader.settled && !this.#telling,
      reached: (moment, ms) => this.#reached(moment, ms),
      forget: (stream) => this.#streams.delete(stream as Stream), // streams pass themselves, and only Streams are made here
    });
  }

  async start(): Promise<void> {
    await this.#reader.start();
    this.#wakes.start();
    this.#tick();
  }

  async stop(): Promise<void> {
    this.#live.outage = 'The server is stopping.';
    this.#cancelTick?.();
    this.#wakes.stop();
    for (const stream of this.#streams) stream.fail('UNAVAILABLE', this.#live.outage);
    for (const waiting of this.#waiting) waiting.done(false);
    await this.#reader.stop();
  }

  wake(): void {
    this.#reader.wake();
    this.#wakes.notify();
  }

  get current(): boolean {
    return this.#live.outage === undefined && this.#deps.clock.monotonicMs() - this.#lastStepMs < CURRENT_MS;
  }

  async head(): Promise<string> {
    const { epoch, position } = await this.#unlessDown(readLogState(this.#deps.database.pool));
    return encodeCursor({ form: 'at', epoch, at: position });
  }

  cursorOf(snapshot: string): string {
    return encodeCursor({ form: 'at', epoch: this.#live.epoch, at: parseSnapshot(snapshot) });
  }

  listen(kinds: readonly ObjectKind[], listener: (change: Change) => void): () => void {
    // A function of its own: the same listener may be registered twice.
    const own = (change: Change) => listener(change);
    for (const kind of kinds) {
      const known = this.#listeners.get(kind);
      if (known) known.add(own);
      else this.#listeners.set(kind, new Set([own]));
    }
    return () => {
      for (const kind of kinds) this.#listeners.get(kind)?.delete(own);
    };
  }

  onNewHistory(listener: () => void): () => void {
    const own = () => listener();
    this.#historyListeners.add(own);
    return () => this.#historyListeners.delete(own);
  }

  open(request: StreamRequest): ChangeStream {
    const stream = new Stream(this.#live, request);
    if (!stream.ended) this.#streams.add(stream);
    return stream;
  }

  page: Feed['page'] = (request) => this.#unlessDown(readPage(this.#deps.database.pool, request));
  timelineOf: Feed['timelineOf'] = (read, limit) => timelinePage(this.#live.epoch, read, limit);

  get stats(): FeedStats {
    const { counters, ring, snapshots } = this.#live;
    let pendingItems = 0;
    for (const stream of this.#streams) pendingItems += stream.size;
    let listeners = 0;
    for (const set of this.#listeners.values()) listeners += set.size;
    return {
      ...this.#counts,
      ...counters,
      listenReconnects: this.#wakes.reconnects,
      snapshotReads: snapshots.reads,
      streams: this.#streams.size,
      attached: this.#live.subscribers.size,
      waiting: this.#waiting.size,
      pendingItems,
      listeners,
      ringChanges: ring.changes,
      ringBytes: ring.bytes,
    };
  }

  // What the reader tells -------------------------------------------------------------------------------------------

  began(state: { epoch: string; position: Snapshot; snapshot: Snapshot }): void {
    const first = this.#live.epoch === '';
    this.#live.move(state.position, state.snapshot, state.epoch);
    this.#live.ring.reset(state.position);
    this.#startStep();
    if (first) return;
    this.#deps.log.warn(
      { epoch: state.epoch },
      'The database has another history: older cursors have expired',
    );
    for (const listener of this.#historyListeners) listener();
    for (const stream of [...this.#streams]) stream.historyEnded();
  }

  reconnected(): void {
    this.#counts.reconnects += 1;
  }

  told(rows: readonly DecodedRow[]): void {
    this.#counts.changes += rows.length;
    this.#keep(rows);
    for (const { change } of rows) {
      for (const listener of this.#listeners.get(change.kind) ?? []) this.#call(listener, change);
    }
    // Who opens a stream meanwhile begins behind this step, once it was told.
    this.#telling = true;
    this.#live.subscribers.tell(rows);
    this.#telling = false;
  }

  reached(at: Snapshot, snapshot: Snapshot): void {
    this.#live.ring.add(at, this.#stepRows);
    this.#startStep();
    this.#live.move(at, snapshot, this.#live.epoch);
    this.#live.outage = undefined;
    this.#counts.steps += 1;
    this.#lastStepMs = this.#deps.clock.monotonicMs();
    for (const waiting of this.#waiting) {
      if (covers(snapshot, waiting.moment)) waiting.done(true);
    }
  }

  stuck(): void {
    this.#counts.badRows += 1;
    this.#live.outage = 'The change feed stands still at a change that this server cannot read.';
    for (const stream of [...this.#streams]) stream.fail('UNAVAILABLE', this.#live.outage);
    for (const waiting of [...this.#waiting]) waiting.done(false);
  }

  // ------------------------------------------------------------------------------------------------------------------

  #startStep(): void {
    this.#stepRows = [];
    this.#stepBytes = 0;
  }

  #keep(rows: readonly DecodedRow[]): void {
    if (!this.#stepRows) return;
    for (const row of rows) this.#stepBytes += row.bytes;
    if (this.#stepRows.length + rows.length > RING_MAX_CHANGES || this.#stepBytes > RING_MAX_BYTES) {
      this.#stepRows = undefined;
    } else this.#stepRows.push(...rows);
  }

  #call(listener: (change: Change) => void, change: Change): void {
    try {
      listener(change);
    } catch (error) {
      // A bug of that listener, which must not keep the change from everybody else.
      this.#deps.log.error(
        { err: error, kind: change.kind, objectId: change.objectId },
        'A listener of changes failed',
      );
    }
  }

  #reached(moment: Snapshot, ms: number): Promise<boolean> {
    if (this.#reader.settled && covers(this.#live.snapshot, moment)) return Promise.resolve(true);
    if (this.#live.outage !== undefined) return Promise.resolve(false);
    return new Promise((resolve) => {
      const cancel = this.#deps.clock.after(ms, () => waiting.done(false));
      const waiting = {
        moment,
        done: (reached: boolean) => {
          cancel();
          this.#waiting.delete(waiting);
          resolve(reached);
        },
      };
      this.#waiting.add(waiting);
      this.#reader.wake();
    });
  }

  #tick(): void {
    this.#cancelTick = this.#deps.clock.after(TICK_MS, () => {
      const now = this.#deps.clock.monotonicMs();
      for (const stream of this.#streams) stream.tick(now);
      this.#tick();
    });
  }

  async #unlessDown<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (error instanceof StreamEnded) throw error;
      this.#deps.log.warn({ err: error }, 'A page of the change log could not be read');
      throw new StreamEnded('UNAVAILABLE', 'The change log cannot be read at the moment.', null, {
        cause: error,
      });
    }
  }
}

/** The feed's own end of what its streams see. */
class MutableLiveLog implements LiveLog {
  readonly clock: Clock;
  readonly log: Log;
  readonly database: LiveLog['database'];
  readonly snapshots: SharedSnapshots;
  readonly subscribers = new Subscribers();
  readonly ring = new Ring(BEGINNING);
  readonly counters: StreamCounters = { ringResumes: 0, logResumes: 0, slowConsumers: 0, resets: 0 };
  readonly reached: LiveLog['reached'];
  readonly forget: LiveLog['forget'];
  readonly #settled: () => boolean;
  epoch = '';
  position = BEGINNING;
  snapshot = BEGINNING;
  outage: string | undefined = 'The change feed has not started.';
  #positionCursor: string | undefined;

  constructor(
    { clock, log, database }: FeedDeps,
    feed: { settled(): boolean; reached: LiveLog['reached']; forget: LiveLog['forget'] },
  ) {
    this.clock = clock;
    this.log = log;
    this.database = database.pool;
    this.snapshots = new SharedSnapshots(database.readPool, clock);
    this.#settled = () => feed.settled();
    this.reached = feed.reached;
    this.forget = feed.forget;
  }

  get settled(): boolean {
    return this.#settled();
  }

  get positionCursor(): string {
    return (this.#positionCursor ??= encodeCursor({ form: 'at', epoch: this.epoch, at: this.position }));
  }

  move(position: Snapshot, snapshot: Snapshot, epoch: string): void {
    if (position !== this.position) this.#positionCursor = undefined;
    this.position = position;
    this.snapshot = snapshot;
    this.epoch = epoch;
  }
}
