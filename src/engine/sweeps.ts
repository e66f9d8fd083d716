import type { Clock } from '../kernel/clock.js';
import type { Log } from '../kernel/log.js';

/**
 * Loops that look again and again: level-triggered, so that a run which was missed, failed or came twice costs time
 * and nothing else. A loop never overlaps itself, outlives every failure of what it runs, and its end can be awaited.
 */
export interface Loop {
  readonly name: string;
  readonly runs: number;
  readonly failures: number;
  /** Looks now: a hint. During a run it means once more, right after. */
  wake(): void;
  /** No run begins any more; resolves when the one that is on has ended. */
  stop(): Promise<void>;
}

export interface LoopDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** In [0, 1). */
  readonly random: () => number;
}

/** Replicas that were started together must not look together for ever. */
const JITTER = 0.1;

/** What a run resolves to when there was more to do than one run should: the next begins right after it. */
export const MORE = Symbol('more');

/** Runs at once, then each `everySeconds` ± 10 % after the end of the run before. */
export function loop(name: string, everySeconds: number, run: () => Promise<unknown>, deps: LoopDeps): Loop {
  const { clock, log, random } = deps;
  let runs = 0;
  let failures = 0;
  let failing = 0;
  let stopped = false;
  let woken = false;
  let current: Promise<void> | undefined;
  let cancel = (): void => undefined;

  const once = async (): Promise<unknown> => {
    const startedMs = clock.monotonicMs();
    runs += 1;
    try {
      const result = await run();
      if (failing > 0) log.info({ loop: name, failures: failing }, 'A loop works again');
      failing = 0;
      return result;
    } catch (error) {
      failures += 1;
      failing += 1;
      log.error(
        { err: error, loop: name, failing, durationMs: clock.monotonicMs() - startedMs },
        'A run of a loop failed',
      );
      return undefined;
    }
  };

  const begin = (): void => {
    if (stopped || current) return;
    cancel();
    woken = false;
    current = once().then((result) => {
      current = undefined;
      if (stopped) return;
      const waitMs =
        woken || result === MORE ? 0 : everySeconds * 1_000 * (1 - JITTER + 2 * JITTER * random());
      cancel = clock.after(waitMs, begin);
    });
  };

  begin();
  return {
    name,
    get runs() {
      return runs;
    },
    get failures() {
      return failures;
    },
    wake() {
      woken = true;
      begin();
    },
    async stop() {
      stopped = true;
      cancel();
      await current;
    },
  };
}
