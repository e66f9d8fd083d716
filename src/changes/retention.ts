/**
 * Two ages of the log. After `payloadDays` a row loses its payload: it can be listed, but nothing can be resumed from
 * before it, which is remembered as the floor. After `rowDays` the row itself goes.
 *
 * In batches of their own transactions, off the writers' path; replicas take turns. The floor moves in the transaction
 * that removes, and never back. Ages are judged by the database's clock, which also wrote the times.
 */
import type { Database } from '../store/database.js';

const PAYLOAD_MIN_HOURS = 48;
const PAYLOAD_DAYS = 7;
const ROW_DAYS = 400;
const BATCH_ROWS = 2_000;
/** A pass ends after so many batches, so that a server that stops waits for no more; the next one goes on. */
const BATCHES_MAX = 50;
/** "slipway change log retention": one pass at a time, over all replicas. */
const LOCK = 7_268_417_304;

export interface RetentionDeps {
  readonly database: Pick<Database, 'inTransaction'>;
  /** Less than PAYLOAD_MIN_HOURS counts as that: a client may be away for a weekend. */
  readonly payloadDays?: number;
  /** Less than `payloadDays` counts as that. */
  readonly rowDays?: number;
}

export interface Retention {
  /** One pass. Running it twice does the same as once. `more`: it ended before it had looked at everything that is due. */
  run(): Promise<{ readonly payloads: number; readonly rows: number; readonly more: boolean }>;
}

export function createRetention({ database, payloadDays, rowDays }: RetentionDeps): Retention {
  const payloadHours = Math.max(PAYLOAD_MIN_HOURS, Math.ceil((payloadDays ?? PAYLOAD_DAYS) * 24));
  const rowHours = Math.max(payloadHours, Math.ceil((rowDays ?? ROW_DAYS) * 24));
  return {
    async run() {
      const payloads = await inBatches((after) => prunePayloads(database, payloadHours, after));
      const rows = await inBatches((after) => pruneRows(database, rowHours, after));
      return { payloads: payloads.removed, rows: rows.removed, more: payloads.more || rows.more };
    },
  };
}

interface Batch {
  readonly count: number;
  /** The highest seq that was removed. */
  readonly last: string | null;
}

/**
 * Each batch begins where the last one ended: what was just removed still stands in the index, and looking through it
 * anew would make each batch slower than the one before. The first begins at the start of the log: a transaction that
 * was open for long may have left rows below the floor.
 */
async function inBatches(
  prune: (after: string) => Promise<Batch>,
): Promise<{ readonly removed: number; readonly more: boolean }> {
  let removed = 0;
  let after = '0';
  for (let batch = 0; batch < BATCHES_MAX; batch += 1) {
    const { count, last } = await prune(after);
    removed += count;
    if (count < BATCH_ROWS || last === null) return { removed, more: false };
    after = last;
  }
  return { removed, more: true };
}

const NOTHING: Batch = { count: 0, last: null };

/** The floor rises first, in the same transaction: nobody sees a payload gone that the floor does not own up to. */
async function prunePayloads(
  database: RetentionDeps['database'],
  ageHours: number,
  after: string,
): Promise<Batch> {
  return database.inTransaction(async (tx) => {
    if (!(await turn(tx))) return NOTHING;
    const { rows } = await tx.query<Batch>({
      // By seq, which is by age: the oldest rows are looked at, and those too young end the pass. LIMIT keeps the planner
      // from joining the whole log.
      text: `with oldest as materialized (select seq from change_payload where seq > $3 order by seq limit $1),
        due as materialized (select c.seq, c.xid from oldest
          cross join lateral (select c.seq, c.xid, c.at from change c where c.seq = oldest.seq limit 1) c where c.at < now() - make_interval(hours => $2)),
        floor as (update log_state set floor_xid = greatest(floor_xid, ((select max(xid) from due)::text::numeric + 1)::text::xid8),
          floor_seq = greatest(floor_seq, (select max(seq) from due)) where exists (select from due)),
        gone as (delete from change_payload where seq = any(array(select seq from due)) returning seq)
        select count(*)::int as count, max(seq)::text as last from gone`,
      values: [BATCH_ROWS, ageHours, after],
    });
    return rows[0] ?? NOTHING;
  });
}

async function pruneRows(
  database: RetentionDeps['database'],
  ageHours: number,
  after: string,
): Promise<Batch> {
  return database.inTransaction(async (tx) => {
    if (!(await turn(tx))) return NOTHING;
    const { rows } = await tx.query<Batch>({
      // Only rows whose payload is gone: the floor then lies above them.
      text: `with oldest as materialized (select seq, at from change where seq > $3 order by seq limit $1),
        gone as (delete from change where seq = any(array(select o.seq from oldest o where o.at < now() - make_interval(hours => $2)
          and not exists (select from change_payload p where p.seq = o.seq))) returning seq)
        select count(*)::int as count, max(seq)::text as last from gone`,
      values: [BATCH_ROWS, ageHours, after],
    });
    return rows[0] ?? NOTHING;
  });
}

async function turn(tx: {
  query: (text: string, values: unknown[]) => Promise<{ rows: unknown[] }>;
}): Promise<boolean> {
  const { rows } = await tx.query('select pg_try_advisory_xact_lock($1) as mine', [LOCK]);
  const [row] = rows as { mine: boolean }[]; // the statement's only column
  return row?.mine === true;
}
