/**
 * The only source of time. Parts that wait or compare times take a `Clock`, so that tests drive time by hand.
 */
export interface Clock {
  /** Wall clock, UTC. Judges nothing that a remote clock wrote. */
  now(): Date;
  /** Milliseconds that never go back; for durations only. */
  monotonicMs(): number;
  /** Calls `run` once after `ms`; the returned function cancels. Never keeps the process alive by itself. */
  after(ms: number, run: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** A moment that somebody wrote down in ISO 8601; undefined if it is none. Reads no clock. */
export function parseMoment(text: string): Date | undefined {
  const milliseconds = Date.parse(text);
  return Number.isNaN(milliseconds) ? undefined : new Date(milliseconds);
}
