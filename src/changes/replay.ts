/**
 * The way of one stream from a moment of the past to the live feed: one step, however many the feed took for it, from the
 * ring where that reaches back, else from the log. Bounded: it goes on only when what it found was taken.
 */
import { stepEncoder } from '../kernel/cursor.js';
import { sameSnapshot, type Snapshot } from '../kernel/snapshot.js';
import { decodeRow, NoPayloadError, type DecodedRow } from './catalogue.js';
import type { LiveLog } from './live-log.js';
import { listSeqs, READ_ROWS, readRows, STEP_MAX_ROWS, type RowFilter, type StepPart } from './log.js';
import type { Mailbox } from './mailbox.js';
import { behind, expired, REACH_TIMEOUT_MS, type Remainder } from './resume.js';
import type { StreamRequest } from './stream-types.js';
import { allows, judge } from './subscribers.js';

const LISTED_SEQS = 10_000;

interface Current {
  readonly from: Snapshot;
  readonly at: Snapshot;
  readonly encode: (seq: bigint) => string;
  /** The last row that was looked at. */
  seq: bigint;
  /** From the log: rows still to be read, and whether the list was cut. */
  listed: { seqs: string[]; readonly cut: boolean } | undefined;
}

export interface ReplayTarget {
  readonly mailbox: Mailbox;
  /** Whether the stream still wants it. */
  active(): boolean;
  /** Called when nothing lies between the replay and the feed, without an await in between. */
  attach(): void;
}

export class Replay {
  readonly #live: LiveLog;
  readonly #request: StreamRequest;
  readonly #epoch: string;
  #at: Snapshot;
  #current: Current | undefined;

  constructor(live: LiveLog, request: StreamRequest, remainder: Remainder) {
    this.#live = live;
    this.#request = request;
    this.#epoch = live.epoch;
    this.#at = remainder.at;
    if (remainder.part) this.#current = this.#begin(remainder.part);
  }

  /** Returns when the mailbox holds something, the stream was attached, or it is no longer wanted. */
  async fill(target: ReplayTarget): Promise<void> {
    while (target.active()) {
      if (!this.#live.settled) await this.#settled();
      else if (this.#current) await this.#advance(this.#current, target);
      else if (sameSnapshot(this.#at, this.#live.position)) return target.attach();
      else this.#current = this.#begin({ from: this.#at, at: this.#live.position, seq: 0n });
      // A mailbox that was filled up to the feed is attached at once, as long as nothing was awaited since.
      const level = !this.#current && this.#live.settled && sameSnapshot(this.#at, this.#live.position);
      if (target.mailbox.size > 0 && !level) return;
    }
  }

  async #settled(): Promise<void> {
    const { position } = this.#live;
    if (!(await this.#live.reached(position, REACH_TIMEOUT_MS))) throw behind();
  }

  #begin(part: StepPart): Current {
    return { ...part, encode: stepEncoder(this.#epoch, part.from, part.at), listed: undefined };
  }

  /** Not async where the ring answers: what follows belongs to the same turn. */
  #advance(current: Current, target: ReplayTarget): Promise<void> | void {
    if (this.#live.ring.reachesBackTo(current.from)) {
      const { rows, more } = this.#live.ring.select(current, (row) => this.#wants(row), READ_ROWS);
      if (this.#offer(current, rows, target.mailbox) === rows.length && !more) this.#end(current);
      return;
    }
    return this.#advanceFromLog(current, target);
  }

  async #advanceFromLog(current: Current, target: ReplayTarget): Promise<void> {
    if (current.listed === undefined || (current.listed.seqs.length === 0 && current.listed.cut)) {
      const limits = { maxRows: STEP_MAX_ROWS, seqs: LISTED_SEQS };
      const seqs = await listSeqs(this.#live.database, current, this.#filter(), limits);
      if (!seqs) throw expired();
      current.listed = { seqs, cut: seqs.length === LISTED_SEQS };
    }
    const { listed } = current;
    const wanted = listed.seqs.slice(0, READ_ROWS);
    const rows = await readRows(this.#live.database, wanted);
    // Rows that were pruned since they were listed are lost to this stream, as if it had come later.
    if (rows.length < wanted.length) throw expired();
    if (!target.active()) return;
    const decoded = rows.map((row) => this.#decode(row, current));
    const looked = this.#offer(current, decoded, target.mailbox);
    listed.seqs.splice(0, looked);
    if (listed.seqs.length === 0 && !listed.cut) this.#end(current);
  }

  #decode(row: Parameters<typeof decodeRow>[0], current: Current): DecodedRow {
    try {
      return decodeRow(row, current.encode(BigInt(row.seq)));
    } catch (error) {
      if (error instanceof NoPayloadError) throw expired();
      throw error;
    }
  }

  /** How many of the rows were looked at before the mailbox was full. */
  #offer(current: Current, rows: readonly DecodedRow[], mailbox: Mailbox): number {
    for (const [looked, row] of rows.entries()) {
      const { change, bytes } = row;
      const verdict = allows(this.#request, change) ? judge(this.#request, change) : undefined;
      if (verdict) {
        const item = { type: 'change', change, ...verdict, cursor: current.encode(change.seq) } as const;
        if (!mailbox.offer({ item, bytes })) return looked;
      }
      current.seq = change.seq;
    }
    return rows.length;
  }

  #end(current: Current): void {
    this.#at = current.at;
    this.#current = undefined;
  }

  #wants(row: DecodedRow): boolean {
    return allows(this.#request, row.change) && judge(this.#request, row.change) !== undefined;
  }

  #filter(): RowFilter {
    const { kinds, namespaces, objectIds } = this.#request;
    return { kinds, namespaces, objectIds: objectIds ?? null };
  }
}
