import pg, { type Pool, type PoolClient, type QueryResultRow } from 'pg';

import type { Answered, Queryable, Statement } from './queryable.js';
import { PreparedCall, type Cells, type Column } from './prepared-call.js';

/** How often it is looked whether sessions were without work all the time since. */
const KEPT_MS = 5;
/** As long as the pool lets wait for a session: a full pool must fail a request, not hold it for ever. */
const WAIT_MS = 5_000;
/** Statements whose columns are known; with more of them, all are asked for again. */
const KNOWN_MAX = 1_000;

export interface Lanes extends Queryable {
  /** The rows as PostgreSQL wrote them, all texts. */
  cells(statement: Statement, watch: Watch): Promise<readonly Cells[]>;
}

/** Follows one statement through its session. */
export interface Watch {
  /** Why it is not to be run any more; asked right before a session takes it. */
  refused(): Error | undefined;
  /** A session takes it. What is returned is called once it was answered, and before the session takes another; true: the session ends. */
  begun(session: PoolClient): () => boolean;
}

/** With the code of PostgreSQL for it: too many connections. */
class NoSession extends Error {
  override readonly name = 'NoSession';
  readonly code = '53300';
}

interface Task {
  readonly call: PreparedCall;
  readonly watch: Watch | undefined;
  readonly fail: (error: Error) => void;
  patience: NodeJS.Timeout | undefined;
}

/**
 * Single statements over sessions of a pool. A session that has answered one takes the next that waits, or is kept for a moment for the
 * one that comes: to lend a session and to take it back cost the pool more than a statement costs the driver. Whoever wants a session of the pool
 * for itself is not kept waiting by that: nobody here goes on while somebody waits there.
 */
export function lanesOf(pool: Pool, waitMs = WAIT_MS): Lanes {
  const lanes = new Sessions(pool, waitMs);
  const known = new Map<string, { readonly text: string; readonly fields: readonly Field[] }>();

  function run(statement: Statement, describe: boolean, watch?: Watch): Promise<PreparedCall> {
    return new Promise((resolve, reject) => {
      const call: PreparedCall = new PreparedCall(statement, describe, (error) => {
        lanes.answered(call, error);
        if (error) reject(error);
        else resolve(call);
      });
      lanes.start({ call, watch, fail: reject, patience: undefined });
    });
  }

  return {
    async cells(statement, watch) {
      return (await run(statement, false, watch)).rows;
    },
    async query<R extends QueryResultRow>(statement: Statement): Promise<Answered<R>> {
      const { name, text } = statement;
      const found = name === undefined ? undefined : known.get(name);
      const remembered = found?.text === text ? found.fields : undefined;
      const { rows, rowCount, columns } = await run(statement, remembered === undefined);
      const fields = remembered ?? columns.map(fieldOf);
      if (name !== undefined && remembered === undefined) {
        if (known.size >= KNOWN_MAX) known.clear();
        known.set(name, { text, fields });
      }
      return { rowCount, rows: rows.map((cells) => rowOf(fields, cells) as R) }; // the caller's statement says so
    },
  };
}

interface Field {
  readonly name: string;
  readonly parse: (text: string) => unknown;
}

function fieldOf({ name, dataTypeID }: Column): Field {
  // Of the driver's own table, which its types leave open.
  const parse = pg.types.getTypeParser(dataTypeID) as (text: string) => unknown;
  return { name, parse };
}

function rowOf(fields: readonly Field[], cells: Cells): Record<string, unknown> {
  const row: Record<string, unknown> = {};
  for (const [index, { name, parse }] of fields.entries()) {
    const text = cells[index] ?? null;
    row[name] = text === null ? null : parse(text);
  }
  return row;
}

class Sessions {
  readonly #pool: Pool;
  readonly #waitMs: number;
  readonly #waiting: Task[] = [];
  readonly #at = new Map<
    PreparedCall,
    { readonly session: PoolClient; readonly ended: (() => boolean) | undefined }
  >();
  #spare: PoolClient[] = [];
  /** How few of them there were since sessions were last given back. */
  #unneeded = 0;
  #returning: NodeJS.Timeout | undefined;
  /** Asked of the pool and not given yet. */
  #asked = 0;
  readonly #heard = new WeakSet<PoolClient>();
  readonly #broken = new WeakSet<PoolClient>();

  constructor(pool: Pool, waitMs: number) {
    this.#pool = pool;
    this.#waitMs = waitMs;
  }

  start(task: Task): void {
    const session = this.#spare.pop();
    this.#unneeded = Math.min(this.#unneeded, this.#spare.length);
    if (session !== undefined) {
      if (!this.#broken.has(session)) return this.#run(session, task);
      session.release(true);
    }
    task.patience = setTimeout(() => {
      const at = this.#waiting.indexOf(task);
      if (at >= 0) this.#waiting.splice(at, 1);
      task.fail(new NoSession('timeout exceeded when waiting for a database session'));
    }, this.#waitMs);
    this.#waiting.push(task);
    this.#ask();
  }

  answered(call: PreparedCall, error: Error | undefined): void {
    const at = this.#at.get(call);
    if (at === undefined) return;
    this.#at.delete(call);
    const { session } = at;
    const ends = at.ended?.() ?? false;
    if (error || ends || this.#broken.has(session)) {
      // As the pool does it: what failed, for whatever reason, is not lent again.
      session.release(error ?? true);
      this.#ask();
    } else {
      this.#next(session);
    }
  }

  #next(session: PoolClient): void {
    // Those whom we have asked for ourselves wait there as well.
    if (this.#pool.waitingCount > this.#asked) {
      session.release();
      this.#ask();
      return;
    }
    const task = this.#wanted();
    if (task) {
      this.#run(session, task);
      return;
    }
    this.#spare.push(session);
    this.#returning ??= setTimeout(() => this.#giveBack(), KEPT_MS);
  }

  /** The first that waits and is still to be run. */
  #wanted(): Task | undefined {
    for (;;) {
      const task = this.#waiting.shift();
      const refused = task?.watch?.refused();
      if (!task || !refused) return task;
      clearTimeout(task.patience);
      task.fail(refused);
    }
  }

  /** Those that nobody needed since the last time, or all if others wait. */
  #giveBack(): void {
    const others = this.#pool.waitingCount > this.#asked;
    const idle = this.#spare.splice(0, others ? this.#spare.length : this.#unneeded);
    for (const session of idle) session.release(this.#broken.has(session));
    this.#unneeded = this.#spare.length;
    this.#returning = this.#spare.length > 0 ? setTimeout(() => this.#giveBack(), KEPT_MS) : undefined;
  }

  #run(session: PoolClient, task: Task): void {
    clearTimeout(task.patience);
    this.#at.set(task.call, { session, ended: task.watch?.begun(session) });
    session.query(task.call);
  }

  /** One session for each that waits, as far as the pool has them. */
  #ask(): void {
    while (this.#asked < this.#waiting.length && this.#at.size + this.#asked < this.#pool.options.max) {
      this.#asked += 1;
      this.#pool.connect((error, session) => {
        this.#asked -= 1;
        if (error || !session) this.#refused(error ?? new NoSession('the pool gave no session'));
        else this.#given(session);
      });
    }
  }

  #given(session: PoolClient): void {
    if (!this.#heard.has(session)) {
      this.#heard.add(session);
      const broken = () => this.#broken.add(session);
      session.on('error', broken);
      session.on('end', broken);
    }
    this.#next(session);
  }

  #refused(error: Error): void {
    // Whoever waits will have the next session that answers, or runs out of patience.
    if (this.#at.size > 0) return;
    const task = this.#waiting.shift();
    if (!task) return;
    clearTimeout(task.patience);
    task.fail(error);
    this.#ask();
  }
}
