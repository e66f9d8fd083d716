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
/** A pass ends after so many batches; the next one goes on. */
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
  /** One pass. Running it twice does the same as once. */
  run(): Promise<{ readonly payloads: number; readonly rows: number }>;
}

export function createRetention({ database, payloadDays, rowDays }: RetentionDeps): Retention {
  const payloadHours = Math.max(PAYLOAD_MIN_HOURS, Math.ceil((payloadDays ?? PAYLOAD_DAYS) * 24));
  const rowHours = Math.max(payloadHours, Math.ceil((rowDays ?? ROW_DAYS) * 24));
  return {
    run: async () => ({
      payloads: await inBatches(() => prunePayloads(database, payloadHours)),
      rows: await inBatches(() => pruneRows(database, rowHours)),
    }),
  };
}

async function inBatches(prune: () => Promise<number>): Promise<number> {
  let removed = 0;
  for (let batch = 0; batch < BATCHES_MAX; batch += 1) {
    const count = await prune();
    removed += count;
    if (count < BATCH_ROWS) break;
  }
  return removed;
}

/** The floor rises first, in the same transaction: nobody sees a payload gone that the floor does not own up to. */
async function prunePayloads(database: RetentionDeps['database'], ageHours: number): Promise<number> {
  return database.inTransaction(async (tx) => {
    if (!(await turn(tx))) return 0;
    const { rows } = await tx.query<{ count: number }>({
      // By seq, which is by age: the oldest rows are looked at, and those too young end the pass.
      text: `with oldest as materialized (select seq from change_payload order by seq limit $1),
        due as materialized (select c.seq, c.xid from oldest join change c on c.seq = oldest.seq where c.at < now() - make_interval(hours => $2)),
        floor as (update log_state set floor_xid = greatest(floor_xid, ((select max(xid) from due)::text::numeric + 1)::text::xid8),
          floor_seq = greatest(floor_seq, (select max(seq) from due)) where exists (select from due)),
        gone as (delete from change_payload p using due where p.seq = due.seq returning 1)
        select count(*)::int as count from gone`,
      values: [BATCH_ROWS, ageHours],
    });
    return rows[0]?.count ?? 0;
  });
}

async function pruneRows(database: RetentionDeps['database'], ageHours: number): Promise<number> {
  return database.inTransaction(async (tx) => {
    if (!(await turn(tx))) return 0;
    const { rows } = await tx.query<{ count: number }>({
      // Only rows whose payload is gone: the floor then lies above them.
      text: `with oldest as materialized (select seq, at from change order by seq limit $1),
        gone as (delete from change c using oldest o where c.seq = o.seq and o.at < now() - make_interval(hours => $2)
          and not exists (select from change_payload p where p.seq = o.seq) returning 1)
        select count(*)::int as count from gone`,
      values: [BATCH_ROWS, ageHours],
    });
    return rows[0]?.count ?? 0;
  });
}

async function turn(tx: {
  query: (text: string, values: unknown[]) => Promise<{ rows: unknown[] }>;
}): Promise<boolean> {
  const { rows } = await tx.query('select pg_try_advisory_xact_lock($1) as mine', [LOCK]);
  const [row] = rows as { mine: boolean }[]; // the statement's only column
  return row?.mine === true;
}
