/** Pages of the log's slim rows: the audit trail, and the timeline of one object. */
import { decodeCursor, encodeCursor, stepEncoder } from '../kernel/cursor.js';
import { BEGINNING, parseSnapshot } from '../kernel/snapshot.js';
import type { Queryable } from '../store/database.js';
import { decodeEntry } from './catalogue.js';
import {
  listSeqs,
  lookThrough,
  readEntries,
  readLogState,
  STEP_MAX_ROWS,
  type LogRow,
  type LogState,
  type RowFilter,
  type StepPart,
} from './log.js';
import { expired, invalid, refuseForeign, remainderOf, type Remainder } from './resume.js';
import type { ChangePage, LogEntry, PageRequest, TimelineRead } from './stream-types.js';

const PAGE_MAX_ROWS = 500;

/** Rows looked through at a time, and in all, for a page from the beginning. */
const WINDOW_ROWS = 5_000;

/**
 * In order of the log from a cursor on. Who pages to the end and then opens a stream after the last cursor misses nothing,
 * unless rows on the way have lost their payload: the stream then says CURSOR_EXPIRED.
 *
 * A page may hold fewer rows than asked for, even none, and say that there are more: a filter that matches little stops
 * after STEP_MAX_ROWS rows and goes on with the next page.
 */
export async function readPage(database: Queryable, request: PageRequest): Promise<ChangePage> {
  const state = await readLogState(database);
  const { epoch, position } = state;
  const start = startOf(request.after, state);
  const limit = Math.min(Math.max(request.limit, 1), PAGE_MAX_ROWS);
  const entries: LogEntry[] = [];
  // First what is left of the step that the cursor lies in, then the one step from there to now.
  const parts: StepPart[] = start.part ? [start.part] : [];
  parts.push({ from: start.at, at: position, seq: 0n });
  for (const part of parts) {
    const encode = stepEncoder(epoch, part.from, part.at);
    const found = await findSeqs(database, part, request, limit + 1 - entries.length);
    for (const row of await readEntries(database, found.seqs)) {
      entries.push(decodeEntry(row, encode(BigInt(row.seq))));
    }
    const page = entries.slice(0, limit);
    const last = page.at(-1);
    if (entries.length > limit && last) return { entries: page, hasMore: true, cursor: last.cursor };
    if (found.cutAt !== null) return { entries: page, hasMore: true, cursor: encode(BigInt(found.cutAt)) };
  }
  return { entries, hasMore: false, cursor: encodeCursor({ form: 'at', epoch, at: position }) };
}

function startOf(after: string | null, state: LogState): Remainder {
  if (after === null) return { part: undefined, at: BEGINNING };
  const cursor = decodeCursor(after);
  if (!cursor) throw invalid();
  refuseForeign(cursor, state);
  return cursor.form === 'snapshot' ? { part: undefined, at: cursor.at } : remainderOf(cursor);
}

/** `cutAt`: the row where looking was given up before the step's end, or null. */
async function findSeqs(
  database: Queryable,
  part: StepPart,
  request: PageRequest,
  wanted: number,
): Promise<{ seqs: string[]; cutAt: string | null }> {
  const { kinds, namespaces, objectId } = request;
  const filter: RowFilter = {
    kinds,
    namespaces,
    objectIds: objectId === undefined ? null : new Set([objectId]),
  };
  if (objectId !== undefined || part.from.xmax > BEGINNING.xmax) {
    const seqs = await listSeqs(database, part, filter, { maxRows: STEP_MAX_ROWS, seqs: wanted });
    if (!seqs) throw expired();
    return { seqs, cutAt: null };
  }
  const seqs: string[] = [];
  let at = part.seq;
  for (let looked = 0; looked < STEP_MAX_ROWS; looked += WINDOW_ROWS) {
    const window = await lookThrough(database, { at: part.at, seq: at }, filter, {
      rows: WINDOW_ROWS,
      seqs: wanted - seqs.length,
    });
    seqs.push(...window.seqs);
    if (window.last === null || seqs.length >= wanted) return { seqs, cutAt: null };
    at = BigInt(window.last);
  }
  return { seqs, cutAt: String(at) };
}

/** Newest first, by version: rows as `CHANGE_COLUMNS` of the store names them. */
export function timelinePage(epoch: string, { rows, position }: TimelineRead, limit: number): ChangePage {
  const at = parseSnapshot(position);
  const encode = stepEncoder(epoch, BEGINNING, at);
  const entries = (rows as readonly LogRow[]) // the slim columns, which is all that an entry is made of
    .slice(0, limit)
    .map((row) => decodeEntry(row, encode(BigInt(row.seq))));
  return { entries, hasMore: rows.length > limit, cursor: encodeCursor({ form: 'at', epoch, at }) };
}
