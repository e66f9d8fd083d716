/**
 * Turns rows of the log into typed changes. Total: a row that does not fit is an error that names the row, and the feed
 * stops there. A row that were skipped would be a change that nobody is ever told of.
 */
import { OBJECT_KINDS, type ObjectKind } from '../kernel/ids.js';
import type { LogRow } from './log.js';
import type { LogEntry } from './stream-types.js';
import type { Change, Projections } from './types.js';

const DATES = ['createdAt', 'updatedAt'] as const;
const DATES_OF: { readonly [K in ObjectKind]: readonly (keyof Projections[K] & string)[] } = {
  RUNTIME: [...DATES, 'deletionRequestedAt', 'deletedAt'],
  RELEASE: DATES,
  DEPLOYMENT: [...DATES, 'deletionRequestedAt', 'deletedAt'],
  AGENT: [...DATES, 'deletedAt', 'lastHeartbeatAt'],
  TOKEN: [...DATES, 'expiresAt', 'revokedAt'],
  ROLLOUT: [...DATES, 'activatedAt', 'cancelRequestedAt', 'finishedAt', 'deletedAt'],
};
const OPS = ['INSERT', 'UPDATE', 'DELETE'] as const;
/** What a change costs beside its payload, roughly, in bytes. */
const ROW_BYTES = 256;

/** A row that this build cannot read: written by a newer one, or by hand. */
export class BadRowError extends Error {
  override readonly name = 'BadRowError';
  readonly seq: string;

  constructor(row: LogRow, problem: string) {
    super(
      `row ${row.seq} of the change log (${row.kind} ${row.object_id}, version ${row.version}): ${problem}`,
    );
    this.seq = row.seq;
  }
}

/** The payload was pruned, or never was: the row can be listed but not be followed from. */
export class NoPayloadError extends BadRowError {
  constructor(row: LogRow) {
    super(row, 'it has no payload');
  }
}

export interface DecodedRow {
  readonly change: Change;
  /** The transaction that wrote it. */
  readonly xid: bigint;
  /** What it takes in memory, roughly. */
  readonly bytes: number;
}

export function decodeRow(row: LogRow, cursor: string): DecodedRow {
  const entry = decodeEntry(row, cursor);
  if (row.after === null) throw new NoPayloadError(row);
  const before = row.before === null ? null : withDates(row, parse(row, row.before), false);
  const after = withDates(row, parse(row, row.after), true);
  // The triggers of this build's migrations write exactly the projection of `kind`; a guard test compares them.
  const change = { ...entry, seq: BigInt(row.seq), after, before } as unknown as Change;
  return { change, xid: BigInt(row.xid), bytes: ROW_BYTES + row.after.length + (row.before?.length ?? 0) };
}

export function decodeEntry(row: LogRow, cursor: string): LogEntry {
  const kind = OBJECT_KINDS.find((known) => known === row.kind);
  if (kind === undefined) throw new BadRowError(row, 'a kind that this build does not know');
  const op = OPS.find((known) => known === row.op);
  if (op === undefined) throw new BadRowError(row, 'an operation that this build does not know');
  return {
    at: row.at,
    kind,
    objectId: row.object_id,
    namespace: row.namespace,
    op,
    version: row.version,
    from: row.from_state,
    to: row.to_state,
    reason: row.reason,
    message: row.message,
    actor: row.actor,
    traceId: row.trace_id,
    cursor,
  };
}

function parse(row: LogRow, text: string): Record<string, unknown> {
  const value: unknown = JSON.parse(text); // jsonb: always well-formed
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new BadRowError(row, 'its payload is no object');
  }
  return value as Record<string, unknown>; // nobody else has it
}

/** `before` holds some fields only; `after` must hold every date. */
function withDates(row: LogRow, fields: Record<string, unknown>, whole: boolean): Record<string, unknown> {
  // Only to index by a kind that decodeEntry has just checked.
  const kind = row.kind as ObjectKind;
  if (whole && fields['id'] !== row.object_id) throw new BadRowError(row, 'its payload is of another object');
  for (const name of DATES_OF[kind]) {
    const value = fields[name];
    if (typeof value === 'string') {
      const date = new Date(value);
      if (Number.isNaN(date.getTime())) throw new BadRowError(row, `\`${name}\` is no time`);
      fields[name] = date;
    } else if (whole && DATES.some((required) => required === name)) {
      throw new BadRowError(row, `\`${name}\` is missing`);
    } else if (value !== undefined && value !== null) {
      throw new BadRowError(row, `\`${name}\` is no time`);
    }
  }
  if (whole && kind === 'AGENT') {
    // Written before the agent's first heartbeat is known, in the transaction that makes the agent.
    fields['consumerLag'] ??= null;
    fields['lastHeartbeatAt'] ??= null;
  }
  return fields;
}
