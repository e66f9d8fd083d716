import { covers, type LogIndex, type LoggedChange } from '../log-index.js';
import type { StreamEntry } from './judged.js';

/** What the reader of a LATEST stream holds after each entry. Objects are never deleted in these histories. */
export function hold(held: Map<string, number>, entry: StreamEntry): void {
  if (entry.type === 'reset') held.clear();
  if (entry.type === 'snapshot') {
    held.clear();
    for (const [object, version] of entry.objects) held.set(object, version);
  }
  if (entry.type === 'event') held.set(entry.object, entry.version);
}

/** The newest version of each deployment that the cursor covers. */
export function newestCovered(log: LogIndex, cursor: string): ReadonlyMap<string, number> {
  const newest = new Map<string, number>();
  for (const [object, rows] of log.objects) {
    if (rows[0]?.kind !== 'DEPLOYMENT') continue;
    // A later version is never covered without the earlier ones.
    let [low, high] = [0, rows.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const row = rows[middle];
      if (row && covers(cursor, row)) low = middle + 1;
      else high = middle;
    }
    const row = rows[low - 1];
    if (row) newest.set(object, row.version);
  }
  return newest;
}

/** Where a reader stands, and when it was told so. */
export interface Place {
  readonly cursor: string;
  readonly ms: number;
}

/** The log and the history tell time in whole milliseconds. */
const ROUNDED_MS = 2;

/**
 * Whether the reader has missed a change that its place covers. A newer one takes the place of one that still waits: so it
 * may be that the change itself never comes, as long as one that was there by then is to come behind this place.
 */
export function missed(
  log: LogIndex,
  held: ReadonlyMap<string, number>,
  row: LoggedChange,
  { cursor, ms }: Place,
): boolean {
  if ((held.get(row.object) ?? 0) >= row.version) return false;
  const rows = log.objects.get(row.object) ?? [];
  const waits = (later: LoggedChange): boolean => later.atMs <= ms + ROUNDED_MS && !covers(cursor, later);
  // Versions count up by one from 1: what lies behind this row is later.
  return !rows.slice(row.version).some(waits);
}
