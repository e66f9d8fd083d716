/**
 * What one operation may take of the sessions for reads: a few at a time, whatever it selects, so that one with many
 * fields at its root leaves the others theirs. And where it ends: what it has not asked by then is not asked any more,
 * and what runs is cancelled.
 */
export interface ReadTurns {
  /** Nobody waits for the operation any more: refuses who waits, cancels what runs. Safe to call twice. */
  end(): void;
  readonly ended: boolean;
  /** Undefined if a place is free, and then it is taken; else a promise of one, that rejects with `ReadsEnded`. */
  enter(): Promise<void> | undefined;
  leave(): void;
  /** `cancel` is called when the operation ends before the returned function is. */
  running(cancel: () => void): () => void;
}

/** Sessions that one operation holds at most at a time. */
export const READS_AT_ONCE = 3;

/** Never told: there is nobody left to tell. */
export class ReadsEnded extends Error {
  override readonly name = 'ReadsEnded';
  constructor() {
    super('the operation that reads is over');
  }
}

interface Waiting {
  readonly enter: () => void;
  readonly refuse: (error: ReadsEnded) => void;
}

class Turns implements ReadTurns {
  ended = false;
  #inside = 0;
  // Made when they are needed: an operation mostly reads once.
  #waiting: Waiting[] | undefined;
  #cancels: Set<() => void> | undefined;

  enter(): Promise<void> | undefined {
    if (this.ended) return Promise.reject(new ReadsEnded());
    if (this.#inside < READS_AT_ONCE) {
      this.#inside += 1;
      return undefined;
    }
    return new Promise((enter, refuse) => {
      (this.#waiting ??= []).push({ enter, refuse });
    });
  }

  leave(): void {
    // The place is handed over, never given up in between: `#inside` stays as it is.
    const next = this.#waiting?.shift();
    if (next) next.enter();
    else this.#inside -= 1;
  }

  running(cancel: () => void): () => void {
    const cancels = (this.#cancels ??= new Set());
    cancels.add(cancel);
    return () => cancels.delete(cancel);
  }

  end(): void {
    if (this.ended) return;
    this.ended = true;
    for (const { refuse } of this.#waiting?.splice(0) ?? []) refuse(new ReadsEnded());
    for (const cancel of this.#cancels ?? []) cancel();
  }
}

export function readTurns(): ReadTurns {
  return new Turns();
}
