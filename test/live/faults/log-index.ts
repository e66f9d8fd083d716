/** The change log as the database holds it at the end, and what a cursor says of it. */
import { decodeCursor, type Cursor } from '../../../src/kernel/cursor.js';
import { visible, xminOf, type Snapshot } from '../../../src/kernel/snapshot.js';
import type { StreamMode } from './history.js';

export interface LoggedChange {
  readonly seq: bigint;
  readonly xid: bigint;
  readonly kind: string;
  readonly object: string;
  readonly version: number;
  readonly from: string | null;
  readonly to: string | null;
  readonly actor: string;
  /** When it was written, shortly before it was committed. */
  readonly atMs: number;
  /** The op of the mutation that made it, if a client of the harness did. */
  readonly message: string | null;
}

export interface LogIndex {
  /** In the order of seq. */
  readonly rows: readonly LoggedChange[];
  readonly objects: ReadonlyMap<string, readonly LoggedChange[]>;
  ofTransaction(xid: bigint): readonly LoggedChange[];
  row(object: string, version: number): LoggedChange | undefined;
  /** The rows that `after` does not cover and `upTo` does, of those that the mode takes. */
  between(after: string, upTo: string, mode: StreamMode): readonly LoggedChange[];
  /** Everything that the cursor covers. */
  covered(cursor: string): readonly LoggedChange[];
}

export const takes = (mode: StreamMode, row: LoggedChange): boolean =>
  row.kind === 'DEPLOYMENT' && (mode === 'LATEST' || row.from !== row.to);

export const nameOf = (change: { readonly object: string; readonly version: number }): string =>
  `${change.object}@${change.version}`;

const cursors = new Map<string, Cursor>();
const CURSORS_KEPT = 500_000;

export function parseCursor(text: string): Cursor {
  const known = cursors.get(text);
  if (known) return known;
  const cursor = decodeCursor(text);
  if (!cursor) throw new Error(`not a cursor: ${text}`);
  if (cursors.size >= CURSORS_KEPT) cursors.clear();
  cursors.set(text, cursor);
  return cursor;
}

/** Whether whoever stands at the cursor has been told of the row. */
export function covers(text: string, row: Pick<LoggedChange, 'seq' | 'xid'>): boolean {
  const cursor = parseCursor(text);
  if (cursor.form === 'within') {
    return visible(row.xid, cursor.from) || (visible(row.xid, cursor.at) && row.seq <= cursor.seq);
  }
  return visible(row.xid, cursor.at);
}

export function indexLog(unsorted: readonly LoggedChange[]): LogIndex {
  const rows = unsorted.toSorted((a, b) => compare(a.seq, b.seq));
  const byXid = unsorted.toSorted((a, b) => compare(a.xid, b.xid) || compare(a.seq, b.seq));
  const objects = grouped(rows, ({ object }) => object);
  const transactions = grouped(rows, ({ xid }) => String(xid));
  const names = new Map(rows.map((row) => [nameOf(row), row]));
  const from = (xid: bigint): number => {
    let [low, high] = [0, byXid.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((byXid[middle]?.xid ?? 0n) < xid) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  /** All rows that are covered by one cursor and not by the other lie between these ids. */
  const range = (low: bigint, high: bigint) => byXid.slice(from(low), from(high));
  return {
    rows,
    objects,
    ofTransaction: (xid) => transactions.get(String(xid)) ?? [],
    row: (object, version) => names.get(nameOf({ object, version })),
    between: (after, upTo, mode) =>
      range(xminOf(startOf(after)), parseCursor(upTo).at.xmax)
        .filter((row) => takes(mode, row) && covers(upTo, row) && !covers(after, row))
        .sort((a, b) => compare(a.seq, b.seq)),
    covered: (cursor) => range(0n, parseCursor(cursor).at.xmax).filter((row) => covers(cursor, row)),
  };
}

function startOf(text: string): Snapshot {
  const cursor = parseCursor(text);
  return cursor.form === 'within' ? cursor.from : cursor.at;
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function grouped<T>(all: readonly T[], keyOf: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) {
    const group = groups.get(keyOf(one));
    if (group) group.push(one);
    else groups.set(keyOf(one), [one]);
  }
  return groups;
}
