/**
 * Counts what runs, so that a drain can wait for it: queries and mutations of every transport. A request that has not
 * arrived in full is no operation yet, and may never become one: it is counted apart.
 */
export interface InFlight {
  /** The returned function says that it ended; call it exactly once. */
  enter(): () => void;
  /** Within what was entered: until `request` settles, that is arriving and not running. */
  receive<T>(request: Promise<T>): Promise<T>;
  readonly count: number;
  readonly arriving: number;
  /** Resolves when nothing runs; at once if nothing does. */
  idle(): Promise<void>;
  /** Resolves when nothing is arriving; what has arrived counts as running by then. */
  arrived(): Promise<void>;
}

export function createInFlight(): InFlight {
  const running = createCount();
  const arriving = createCount();
  return {
    enter() {
      running.add();
      return running.remove;
    },
    async receive(request) {
      arriving.add();
      running.remove();
      try {
        return await request;
      } finally {
        // In this order: who waits for the arrivals must find it running.
        running.add();
        arriving.remove();
      }
    },
    get count() {
      return running.value;
    },
    get arriving() {
      return arriving.value;
    },
    idle: () => running.zero(),
    arrived: () => arriving.zero(),
  };
}

function createCount() {
  let value = 0;
  let waiters: (() => void)[] = [];
  return {
    get value() {
      return value;
    },
    add() {
      value += 1;
    },
    remove() {
      value -= 1;
      if (value > 0) return;
      const woken = waiters;
      waiters = [];
      for (const wake of woken) wake();
    },
    zero() {
      if (value === 0) return Promise.resolve();
      return new Promise<void>((resolve) => {
        waiters.push(resolve);
      });
    },
  };
}
