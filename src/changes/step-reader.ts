/**
 * Reads the log step by step, each from where the one before ended, for as long as the process lives. Every row that
 * commits is told once, in order of seq within its step, however often the session or the database is lost in between.
 *
 * Steps are read when woken and each POLL_MS: a wake is a hint and may be lost. A row that cannot be decoded ends the
 * advance there: it is read again and again until it can be, and nothing behind it is told.
 */
import { backoffMs } from '../kernel/backoff.js';
import type { Clock } from '../kernel/clock.js';
import { encodeCursor, stepEncoder } from '../kernel/cursor.js';
import type { Log } from '../kernel/log.js';
import { covers, lowered, type Snapshot } from '../kernel/snapshot.js';
import type { Database } from '../store/database.js';
import type { OpenSession, Session } from '../store/session.js';
import { BadRowError, decodeRow, type DecodedRow } from './catalogue.js';
import { checkHistory, rotateEpoch, StandbyError } from './epoch.js';
import { EVERY_ROW, listSeqs, READ_ROWS, readRows, readStep, type LogRow, type LogState } from './log.js';

const POLL_MS = 500;
/**
 * The pause behind a step, a millisecond for each row beyond the first: one change at a time is read at once, and under load a
 * step's own price is shared by more of them.
 */
const PAUSE_MAX_MS = 8;
/** Rows of a step that come with the step's own statement. */
const STEP_ROWS = 1_000;
const LISTED_SEQS = 10_000;
const ANSWER_TIMEOUT_MS = 10_000;
const RETRY_BASE_MS = 100;
const RETRY_CAP_MS = 5_000;

/**
 * Of the statement that reads a step the planner would make a plan at each step, which takes longer than to run it: where it does
 * not know the moments, it believes that a step is a third of the log. Such a plan is the right one, as long as that belief does
 * not lead it past the indexes.
 */
const PLANNED_ONCE = "set plan_cache_mode = 'force_generic_plan'; set enable_seqscan = off";

export interface StepSink {
  /** A history begins, at the first connect or because the one before ended: `state.position` is where reading starts. */
  began(state: LogState): void;
  /** Rows of the step that is being read, in order. */
  told(rows: readonly DecodedRow[]): void;
  /** The step is complete. `snapshot` is its moment as the database told it, `at` the same as cursors tell it. */
  reached(at: Snapshot, snapshot: Snapshot): void;
  /** A row that cannot be decoded. Called once for each such row. */
  stuck(error: BadRowError): void;
  reconnected(): void;
}

interface OpenStep {
  readonly from: Snapshot;
  readonly at: Snapshot;
  readonly snapshot: Snapshot;
  /** The last row that was told. */
  seq: bigint;
}

export interface StepReaderDeps {
  readonly database: Pick<Database, 'inTransaction'>;
  readonly openSession: OpenSession;
  readonly clock: Clock;
  readonly log: Log;
}

export class StepReader {
  readonly #deps: StepReaderDeps;
  readonly #sink: StepSink;
  #session: Session | undefined;
  #epoch = '';
  #position: Snapshot | undefined;
  /** A step of which some rows were told and some were not. */
  #open: OpenStep | undefined;
  #stuckAt: string | undefined;
  #failures = 0;
  #stepRows = 0;
  #woken = false;
  #stopped = false;
  #wakeUp: (() => void) | undefined;
  #running: Promise<void> | undefined;

  constructor(deps: StepReaderDeps, sink: StepSink) {
    this.#deps = deps;
    this.#sink = sink;
  }

  /** Whether everything told so far belongs to complete steps. */
  get settled(): boolean {
    return this.#open === undefined;
  }

  /** Reads the first step; throws if that fails. From then on failures are retried for ever. */
  async start(): Promise<void> {
    try {
      await this.#advance();
    } catch (error) {
      this.#drop();
      throw error;
    }
    this.#running = this.#loop();
  }

  wake(): void {
    this.#woken = true;
    this.#wakeUp?.();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#drop();
    this.#wakeUp?.();
    await this.#running;
  }

  async #loop(): Promise<void> {
    for (;;) {
      await this.#gather();
      await this.#pause(
        this.#failures === 0 ? POLL_MS : backoffMs(this.#failures, RETRY_BASE_MS, RETRY_CAP_MS, Math.random),
      );
      if (this.#stopped) return;
      this.#woken = false;
      try {
        await this.#advance();
        this.#failures = 0;
        this.#stuckAt = undefined;
      } catch (error) {
        this.#failed(error);
      }
    }
  }

  /** Lets the changes that come right behind many others come together. */
  async #gather(): Promise<void> {
    const ms = Math.min(this.#stepRows - 1, PAUSE_MAX_MS);
    this.#stepRows = 0;
    if (ms <= 0 || this.#stopped) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#deps.clock.after(ms, resolve);
      this.#wakeUp = () => {
        if (!this.#stopped) return;
        cancel();
        resolve();
      };
    });
    this.#wakeUp = undefined;
  }

  /** After a failure a wake does not shorten the pause: a busy process would otherwise hammer a dead database. */
  async #pause(ms: number): Promise<void> {
    if (this.#stopped || (this.#failures === 0 && this.#woken)) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#deps.clock.after(ms, resolve);
      this.#wakeUp = () => {
        if (this.#failures > 0 && !this.#stopped) return;
        cancel();
        resolve();
      };
    });
    this.#wakeUp = undefined;
  }

  #failed(error: unknown): void {
    if (this.#stopped) return;
    this.#failures += 1;
    if (error instanceof BadRowError) {
      if (this.#stuckAt === error.seq) return;
      this.#stuckAt = error.seq;
      this.#deps.log.error(
        { err: error, seq: error.seq },
        'The change feed stands still at a row it cannot read',
      );
      this.#sink.stuck(error);
      return;
    }
    this.#drop();
    this.#deps.log.warn({ err: error, attempt: this.#failures }, 'The change feed lost its database session');
  }

  #drop(): void {
    this.#session?.close();
    this.#session = undefined;
  }

  async #advance(): Promise<void> {
    const session = (this.#session ??= await this.#connect());
    if (this.#open === undefined) await this.#readStep(session);
    while (this.#open !== undefined) await this.#readOn(session, this.#open);
  }

  async #connect(): Promise<Session> {
    const session = await this.#deps.openSession('feed', ANSWER_TIMEOUT_MS);
    try {
      if (this.#stopped) throw new Error('stopped while connecting');
      await session.query({ text: PLANNED_ONCE });
      let state = await checkHistory(session, this.#deps.database);
      if (this.#position && state.epoch === this.#epoch && !covers(state.snapshot, this.#position)) {
        // What was read is gone: the database was set back without a new timeline.
        await rotateEpoch(this.#deps.database, state.epoch);
        state = await checkHistory(session, this.#deps.database);
      }
      if (this.#position === undefined || state.epoch !== this.#epoch) {
        this.#epoch = state.epoch;
        this.#position = state.position;
        this.#open = undefined;
        this.#sink.began(state);
      } else {
        this.#sink.reconnected();
      }
      return session;
    } catch (error) {
      session.close();
      if (error instanceof StandbyError) {
        this.#deps.log.error({ err: error }, 'The change feed refuses a standby');
      }
      throw error;
    }
  }

  async #readStep(session: Session): Promise<void> {
    const from = this.#position;
    if (!from) throw new Error('connected without a position'); // #connect sets it
    const read = await readStep(session, from, STEP_ROWS);
    if (read.epoch !== this.#epoch || !covers(read.snapshot, from)) {
      throw new Error('the history of the log changed');
    }
    const top = read.topXid === null ? 0n : read.topXid + 1n;
    const at = lowered(read.snapshot, top > from.xmax ? top : from.xmax);
    this.#stepRows = read.total;
    if (read.total === 0) return this.#finish(at, read.snapshot);
    const whole = read.rows.length === read.total;
    const rows = this.#decode(from, at, read.rows, whole);
    // From here to the end of the step without an await where the step is whole: nobody sees half of it.
    if (!whole) this.#open = { from, at, snapshot: read.snapshot, seq: lastSeq(rows) };
    this.#sink.told(rows);
    if (whole) this.#finish(at, read.snapshot);
  }

  /** A bulk write: the rest of its rows, by lists of their seqs, so that memory stays bounded. */
  async #readOn(session: Session, step: OpenStep): Promise<void> {
    const seqs = (await listSeqs(session, step, EVERY_ROW, { maxRows: null, seqs: LISTED_SEQS })) ?? [];
    for (let i = 0; i < seqs.length; i += READ_ROWS) {
      const wanted = seqs.slice(i, i + READ_ROWS);
      const rows = this.#decode(step.from, step.at, await readRows(session, wanted), false);
      if (rows.length < wanted.length) throw new Error('rows of the log vanished while they were read');
      if (this.#open !== step) return;
      step.seq = lastSeq(rows);
      this.#sink.told(rows);
    }
    if (seqs.length === LISTED_SEQS) return;
    this.#open = undefined;
    this.#finish(step.at, step.snapshot);
  }

  #finish(at: Snapshot, snapshot: Snapshot): void {
    this.#position = at;
    this.#sink.reached(at, snapshot);
  }

  #decode(from: Snapshot, at: Snapshot, rows: readonly LogRow[], whole: boolean): DecodedRow[] {
    const encode = stepEncoder(this.#epoch, from, at);
    const last = rows.at(-1)?.seq;
    return rows.map((row) =>
      // Behind the last row of a step lies the step's end, which takes half the text.
      decodeRow(
        row,
        whole && row.seq === last
          ? encodeCursor({ form: 'at', epoch: this.#epoch, at })
          : encode(BigInt(row.seq)),
      ),
    );
  }
}

function lastSeq(rows: readonly DecodedRow[]): bigint {
  return rows.at(-1)?.change.seq ?? 0n;
}
