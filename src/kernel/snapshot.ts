/**
 * A moment of the database, as `pg_current_snapshot()` tells it: every transaction below `xmax` has ended, except those in
 * `xip`. Pure set algebra over transaction ids; which rows they wrote is the log's business.
 */
export interface Snapshot {
  /** The first transaction id that had not been given to a finished transaction. */
  readonly xmax: bigint;
  /** The transactions below `xmax` that were still running: sorted, without repeats. */
  readonly xip: readonly bigint[];
}

/** The first id that PostgreSQL gives to a transaction of ours; rows of an older history carry it too. */
export const FIRST_XID = 3n;
/** Before everything that a log can hold. */
export const BEGINNING: Snapshot = { xmax: FIRST_XID, xip: [] };

/** Reads the text of a pg_snapshot, `xmin:xmax:xip,xip`. Throws on anything else: only the database writes it. */
export function parseSnapshot(text: string): Snapshot {
  const match = /^(\d+):(\d+):((?:\d+(?:,\d+)*)?)$/.exec(text);
  if (!match) throw new Error(`not a snapshot: ${text.slice(0, 80)}`);
  const [, , xmax = '', list = ''] = match;
  const xip = list === '' ? [] : list.split(',').map(BigInt);
  return { xmax: BigInt(xmax), xip };
}

export function formatSnapshot(snapshot: Snapshot): string {
  return `${xminOf(snapshot)}:${snapshot.xmax}:${snapshot.xip.join()}`;
}

/** The oldest transaction that the snapshot does not see as ended. */
export function xminOf(snapshot: Snapshot): bigint {
  return snapshot.xip[0] ?? snapshot.xmax;
}

/** Whether what the transaction wrote, if it committed at all, is seen by the snapshot. */
export function visible(xid: bigint, snapshot: Snapshot): boolean {
  return xid < snapshot.xmax && !includes(snapshot.xip, xid);
}

/** Whether `later` sees everything that `earlier` sees. May say no for snapshots that differ in unused ids only. */
export function covers(later: Snapshot, earlier: Snapshot): boolean {
  if (later.xmax < earlier.xmax) return false;
  for (const xid of later.xip) {
    if (xid >= earlier.xmax) return true; // sorted: the rest is above as well
    if (!includes(earlier.xip, xid)) return false;
  }
  return true;
}

/**
 * The same snapshot with the bound lowered to `xmax`. Equal for a log in which no id at or above `xmax` has ended with a
 * row. Keeps out ids that a crash of the database would give out again: an aborted transaction leaves nothing on disk.
 */
export function lowered(snapshot: Snapshot, xmax: bigint): Snapshot {
  if (xmax >= snapshot.xmax) return snapshot;
  return { xmax, xip: snapshot.xip.filter((xid) => xid < xmax) };
}

export function sameSnapshot(a: Snapshot, b: Snapshot): boolean {
  return a.xmax === b.xmax && a.xip.length === b.xip.length && a.xip.every((xid, i) => xid === b.xip[i]);
}

function includes(sorted: readonly bigint[], wanted: bigint): boolean {
  let low = 0;
  let high = sorted.length - 1;
  while (low <= high) {
    const middle = (low + high) >>> 1;
    const found = sorted[middle] ?? wanted;
    if (found === wanted) return true;
    if (found < wanted) low = middle + 1;
    else high = middle - 1;
  }
  return false;
}
