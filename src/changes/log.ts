/**
 * The SQL of the change log. "What became visible between two moments" is answered from the transaction ids of the rows
 * alone (src/kernel/snapshot.ts): no lock, no leader, no dense counter, and an open transaction delays only its own rows.
 */
import type { ObjectKind } from '../kernel/ids.js';
import { formatSnapshot, FIRST_XID, parseSnapshot, type Snapshot } from '../kernel/snapshot.js';
import type { Queryable } from '../store/database.js';
import { LOG_POSITION } from '../store/log-position.js';

/** Rows between a cursor and now, of all kinds, that a resume or a page looks through. */
export const STEP_MAX_ROWS = 200_000;
export const READ_ROWS = 500;

export interface LogRow {
  readonly seq: string;
  readonly xid: string;
  readonly at: Date;
  readonly kind: string;
  readonly object_id: string;
  readonly namespace: string | null;
  readonly op: string;
  readonly version: number;
  readonly from_state: string | null;
  readonly to_state: string | null;
  readonly reason: string | null;
  readonly message: string | null;
  readonly actor: string;
  readonly trace_id: string | null;
  readonly after: string | null;
  readonly before: string | null;
}

const COLUMNS = [
  'seq', 'xid', 'at', 'kind', 'object_id', 'namespace', 'op', 'version',
  'from_state', 'to_state', 'reason', 'message', 'actor', 'trace_id',
]; // prettier-ignore
const columns = (alias: string) => COLUMNS.map((name) => `${alias}.${name}`).join(', ');
// LIMIT keeps the planner from joining the payloads of the whole log at once.
const PAYLOAD = (alias: string) =>
  `left join lateral (select p.after::text, p.before::text from change_payload p where p.seq = ${alias}.seq limit 1) payload on true`;

export interface StepRead {
  /** The moment of the statement. */
  readonly snapshot: Snapshot;
  readonly epoch: string;
  /** Rows of the step; `rows` holds the first of them. */
  readonly total: number;
  /** The newest transaction among them. */
  readonly topXid: bigint | null;
  readonly rows: readonly LogRow[];
}

/**
 * One statement, so that the moment and the rows belong to one snapshot; it gives a row when idle too. Two branches that
 * cannot overlap (xip lies below xmax): with OR in one branch the planner reads the whole log. Both materialized, so that
 * neither the order nor the limit tempts it to walk the log by seq.
 */
export const STEP_TEXT = `
with cur as materialized (select pg_current_snapshot() as s),
fresh as materialized (
  select ${columns('c')} from change c where c.xid >= $1::xid8 and pg_visible_in_snapshot(c.xid, (select s from cur))
  union all
  select ${columns('c')} from change c where c.xid = any($2::xid8[]) and pg_visible_in_snapshot(c.xid, (select s from cur))
),
head as materialized (select * from fresh order by seq limit $3)
select (select s from cur)::text as snapshot, (select epoch from log_state) as epoch,
       (select count(*) from fresh)::int as total, (select max(xid) from fresh)::text as top,
       ${columns('x')}, payload.after, payload.before
from (select 1) d left join head x on true ${PAYLOAD('x')} order by x.seq`;

export async function readStep(db: Queryable, from: Snapshot, limit: number): Promise<StepRead> {
  type Row = LogRow & { snapshot: string; epoch: string; total: number; top: string | null };
  const { rows } = await db.query<Row>({
    name: 'log_step',
    text: STEP_TEXT,
    values: [String(from.xmax), from.xip.map(String), limit],
  });
  const [first] = rows;
  if (!first) throw new Error('the log gave no row'); // the statement always gives one
  return {
    snapshot: parseSnapshot(first.snapshot),
    epoch: first.epoch,
    total: first.total,
    topXid: first.top === null ? null : BigInt(first.top),
    rows: first.total === 0 ? [] : rows,
  };
}

/** Which rows of a step somebody wants. Null is no limit. */
export interface RowFilter {
  readonly kinds: readonly ObjectKind[] | null;
  /** Rows outside namespaces pass. */
  readonly namespaces: 'all' | ReadonlySet<string>;
  readonly objectIds: ReadonlySet<string> | null;
}
export const EVERY_ROW: RowFilter = { kinds: null, namespaces: 'all', objectIds: null };

export interface StepPart {
  readonly from: Snapshot;
  readonly at: Snapshot;
  /** Only rows behind this one. */
  readonly seq: bigint;
}

/**
 * The next seqs of a step, in order. Undefined when the step has more than `maxRows` rows, of whatever kind. Not a named
 * statement: the plan has to know how far back `from` lies.
 */
export async function listSeqs(
  db: Queryable,
  part: StepPart,
  filter: RowFilter,
  limits: { readonly maxRows: number | null; readonly seqs: number },
): Promise<string[] | undefined> {
  const { text, values } = stepRows(part, filter, limits.maxRows);
  const { rows } = await db.query<{ total: number; seqs: string[] }>({
    text: `with fresh as materialized (${text})
      select (select count(*) from fresh)::int as total, array(select seq from fresh f where f.seq > $1
        and ($2::text[] is null or f.kind::text = any($2)) and ($3::text[] is null or f.namespace is null or f.namespace = any($3))
        and ($4::text[] is null or f.object_id = any($4)) order by f.seq limit $5) as seqs`,
    values: [...values, limits.seqs],
  });
  const total = rows[0]?.total ?? 0;
  return limits.maxRows !== null && total > limits.maxRows ? undefined : (rows[0]?.seqs ?? []);
}

/**
 * For pages from the beginning of the log: looks through so many rows behind `seq`, in order, and says how far it came.
 * `last` is null when nothing is left.
 */
export async function lookThrough(
  db: Queryable,
  part: { readonly at: Snapshot; readonly seq: bigint },
  filter: RowFilter,
  limits: { readonly rows: number; readonly seqs: number },
): Promise<{ seqs: string[]; last: string | null }> {
  const { rows } = await db.query<{ last: string | null; seqs: string[] }>({
    text: `with fresh as materialized (select c.seq, c.kind, c.namespace from change c
        where c.seq > $1 and pg_visible_in_snapshot(c.xid, $2::pg_snapshot) order by c.seq limit $6)
      select (select max(seq) from fresh)::text as last, array(select seq from fresh f where ($3::text[] is null or f.kind::text = any($3))
        and ($4::text[] is null or f.namespace is null or f.namespace = any($4)) order by f.seq limit $5) as seqs`,
    values: [
      String(part.seq),
      formatSnapshot(part.at),
      filter.kinds,
      filter.namespaces === 'all' ? null : [...filter.namespaces],
      limits.seqs,
      limits.rows,
    ],
  });
  return { seqs: rows[0]?.seqs ?? [], last: rows[0]?.last ?? null };
}

/** $5 is the caller's; the rest is bound here. */
function stepRows(
  part: StepPart,
  filter: RowFilter,
  maxRows: number | null,
): { text: string; values: unknown[] } {
  const list = (set: Iterable<string> | null) => (set === null ? null : [...set]);
  const objectIds = list(filter.objectIds);
  const values = [
    String(part.seq),
    filter.kinds,
    filter.namespaces === 'all' ? null : list(filter.namespaces),
    objectIds,
  ];
  const at = `'${formatSnapshot(part.at)}'::pg_snapshot`; // digits, colons and commas: made from numbers
  const from = `'${formatSnapshot(part.from)}'::pg_snapshot`;
  const select = 'select c.seq, c.kind, c.namespace, c.object_id from change c where';
  const limit = maxRows === null ? '' : `limit ${maxRows + 1}`;
  if (objectIds !== null) {
    // By the index on the object: the rest of the log is not touched.
    return { text: `${select} c.object_id = any($4) and pg_visible_in_snapshot(c.xid, ${at}) and not pg_visible_in_snapshot(c.xid, ${from}) ${limit}`, values }; // prettier-ignore
  }
  if (part.from.xmax <= FIRST_XID) {
    return {
      text: `${select} c.seq > $1 and pg_visible_in_snapshot(c.xid, ${at}) order by c.seq ${limit}`,
      values,
    };
  }
  const xip = `'{${part.from.xip.join()}}'::xid8[]`;
  return {
    text: `(${select} c.xid >= '${part.from.xmax}'::xid8 and pg_visible_in_snapshot(c.xid, ${at})
      union all ${select} c.xid = any(${xip}) and pg_visible_in_snapshot(c.xid, ${at})) ${limit}`,
    values,
  };
}

/** Rows with their payloads, in order of seq. */
export async function readRows(db: Queryable, seqs: readonly string[]): Promise<LogRow[]> {
  if (seqs.length === 0) return [];
  const { rows } = await db.query<LogRow>({
    name: 'log_rows',
    text: `select ${columns('c')}, payload.after, payload.before from change c ${PAYLOAD('c')} where c.seq = any($1::bigint[]) order by c.seq`,
    values: [seqs],
  });
  return rows;
}

/** Slim rows, in order of seq. */
export async function readEntries(db: Queryable, seqs: readonly string[]): Promise<LogRow[]> {
  if (seqs.length === 0) return [];
  const { rows } = await db.query<LogRow>({
    name: 'log_entries',
    text: `select ${columns('c')}, null::text as after, null::text as before from change c where c.seq = any($1::bigint[]) order by c.seq`,
    values: [seqs],
  });
  return rows;
}

export interface LogState {
  readonly epoch: string;
  readonly floorXid: bigint;
  readonly floorSeq: bigint;
  /** The moment that cursors are made of. */
  readonly position: Snapshot;
  /** The same moment as the database tells it: no cursor of ours lies behind it. */
  readonly snapshot: Snapshot;
  readonly at: Date;
}

export async function readLogState(db: Queryable): Promise<LogState> {
  const { rows } = await db.query<{
    epoch: string; floor_xid: string; floor_seq: string; position: string; snapshot: string; at: Date;
  }>({
    name: 'log_state',
    text: `select epoch, floor_xid::text, floor_seq::text, ${LOG_POSITION} as position,
      pg_current_snapshot()::text as snapshot, clock_timestamp() as at from log_state`,
  }); // prettier-ignore
  const [row] = rows;
  if (!row) throw new Error('the change log has no state row');
  return {
    epoch: row.epoch,
    floorXid: BigInt(row.floor_xid),
    floorSeq: BigInt(row.floor_seq),
    position: parseSnapshot(row.position),
    snapshot: parseSnapshot(row.snapshot),
    at: row.at,
  };
}
