/**
 * The newest steps of the log in memory, so that whoever was cut for a moment resumes without the database. Whole steps
 * only: a step of which a part was dropped could no longer be told from one that is complete.
 */
import { covers, visible, type Snapshot } from '../kernel/snapshot.js';
import type { DecodedRow } from './catalogue.js';
import type { StepPart } from './log.js';

export const RING_MAX_CHANGES = 10_000;
export const RING_MAX_BYTES = 16 * 1024 * 1024;

interface RingStep {
  readonly at: Snapshot;
  readonly rows: readonly DecodedRow[];
  readonly bytes: number;
}

export class Ring {
  /** Everything that this moment does not see, and the newest step sees, is here. */
  #base: Snapshot;
  #steps: RingStep[] = [];
  #changes = 0;
  #bytes = 0;

  constructor(base: Snapshot) {
    this.#base = base;
  }

  get changes(): number {
    return this.#changes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** `rows` undefined: the step was too large to be kept, and all before it goes too. */
  add(at: Snapshot, rows: readonly DecodedRow[] | undefined): void {
    if (rows === undefined) return this.reset(at);
    if (rows.length === 0) {
      // A moment without rows: move the end of what is known, or the base if nothing is kept.
      const last = this.#steps.at(-1);
      if (last) this.#steps[this.#steps.length - 1] = { ...last, at };
      else this.#base = at;
      return;
    }
    const bytes = rows.reduce((sum, row) => sum + row.bytes, 0);
    this.#steps.push({ at, rows, bytes });
    this.#changes += rows.length;
    this.#bytes += bytes;
    let dropped = 0;
    while (this.#changes > RING_MAX_CHANGES || this.#bytes > RING_MAX_BYTES) {
      const oldest = this.#steps[dropped];
      if (!oldest) break;
      dropped += 1;
      this.#changes -= oldest.rows.length;
      this.#bytes -= oldest.bytes;
      this.#base = oldest.at;
    }
    if (dropped > 0) this.#steps.splice(0, dropped);
  }

  reset(base: Snapshot): void {
    this.#base = base;
    this.#steps = [];
    this.#changes = 0;
    this.#bytes = 0;
  }

  /** Whether nothing that a reader at `from` lacks has left the ring. */
  reachesBackTo(from: Snapshot): boolean {
    return covers(from, this.#base);
  }

  /** The rows of a step between two moments, in order of seq. Only valid where the ring reaches back to its start. */
  select(
    part: StepPart,
    wanted: (row: DecodedRow) => boolean,
    limit: number,
  ): { rows: DecodedRow[]; more: boolean } {
    const found: DecodedRow[] = [];
    for (let i = this.#steps.length - 1; i >= 0; i -= 1) {
      const step = this.#steps[i];
      if (!step || covers(part.from, step.at)) break; // it and all before it were delivered
      for (const row of step.rows) {
        if (row.change.seq <= part.seq || visible(row.xid, part.from) || !visible(row.xid, part.at)) continue;
        if (wanted(row)) found.push(row);
      }
    }
    found.sort((a, b) => (a.change.seq < b.change.seq ? -1 : 1));
    return { rows: found.slice(0, limit), more: found.length > limit };
  }
}
