/** Counts what runs, so that a drain can wait for it: queries and mutations of every transport. */
export interface InFlight {
  /** The returned function says that it ended; call it exactly once. */
  enter(): () => void;
  readonly count: number;
  /** Resolves when nothing runs; at once if nothing does. */
  idle(): Promise<void>;
}

export function createInFlight(): InFlight {
  let count = 0;
  let waiters: (() => void)[] = [];
  const leave = () => {
    count -= 1;
    if (count > 0) return;
    const woken = waiters;
    waiters = [];
    for (const wake of woken) wake();
  };
  return {
    enter() {
      count += 1;
      return leave;
    },
    get count() {
      return count;
    },
    idle() {
      if (count === 0) return Promise.resolve();
      return new Promise((resolve) => {
        waiters.push(resolve);
      });
    },
  };
}
