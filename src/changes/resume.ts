/** Judges a cursor: whether it is one of ours, of this history, and not older than what the log still holds. */
import type { Cursor } from '../kernel/cursor.js';
import { covers, FIRST_XID, xminOf, type Snapshot } from '../kernel/snapshot.js';
import type { LiveLog } from './live-log.js';
import { readLogState, type LogState, type StepPart } from './log.js';
import { StreamEnded } from './stream-types.js';

/** How long a stream waits for the feed to reach the moment it begins at. */
export const REACH_TIMEOUT_MS = 5_000;

export type Place = Exclude<Cursor, { form: 'snapshot' }>;

/** What remains of the step that the cursor lies in; from the end of it the reader goes on to now. */
export interface Remainder {
  readonly part: StepPart | undefined;
  readonly at: Snapshot;
}

/** Rejects with StreamEnded. Asks the database only for cursors that the ring does not answer. */
export async function judgeCursor(live: LiveLog, cursor: Place): Promise<Remainder> {
  const remainder = remainderOf(cursor);
  const start = remainder.part?.from ?? cursor.at;
  const known = cursor.epoch === live.epoch && live.settled && covers(live.snapshot, cursor.at);
  if (known && live.ring.reachesBackTo(start)) {
    live.counters.ringResumes += 1;
    return remainder;
  }
  refuseUnresumable(cursor, await readLogState(live.database));
  live.counters.logResumes += 1;
  if (!(await live.reached(cursor.at, REACH_TIMEOUT_MS))) throw behind();
  if (cursor.epoch !== live.epoch) throw expired();
  return remainder;
}

export function remainderOf(cursor: Place): Remainder {
  if (cursor.form === 'at') return { part: undefined, at: cursor.at };
  if (!covers(cursor.at, cursor.from)) throw invalid();
  return { part: { from: cursor.from, at: cursor.at, seq: cursor.seq }, at: cursor.at };
}

/** For what needs payloads. */
function refuseUnresumable(cursor: Place, state: LogState): void {
  refuseForeign(cursor, state);
  if (xminOf(cursor.at) < state.floorXid) throw expired();
  if (cursor.form !== 'within') return;
  // From the beginning, only the place in the log's own order tells how far back the cursor lies.
  const lost =
    cursor.from.xmax <= FIRST_XID ? cursor.seq < state.floorSeq : xminOf(cursor.from) < state.floorXid;
  if (lost) throw expired();
}

export function refuseForeign(cursor: Cursor, state: LogState): void {
  if (cursor.epoch !== state.epoch) throw expired();
  if (cursor.at.xmax > state.snapshot.xmax) throw invalid();
}

export function expired(): StreamEnded {
  return new StreamEnded('CURSOR_EXPIRED', 'This cursor can no longer be resumed from: take a new snapshot.');
}

export function invalid(): StreamEnded {
  return new StreamEnded('CURSOR_INVALID', 'This is no cursor of this server.');
}

export function behind(): StreamEnded {
  return new StreamEnded('UNAVAILABLE', 'The change feed is behind. Try again.');
}
