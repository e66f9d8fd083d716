import { z } from 'zod';

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

/** Of the years 0001 to 9999, in UTC: what ISO 8601 writes with four digits, and PostgreSQL and JavaScript alike. */
export const FIRST_MOMENT = new Date('0001-01-01T00:00:00.000Z');
export const LAST_MOMENT = new Date('9999-12-31T23:59:59.999Z');

/** Knows the calendar; Date.parse takes 30 February for 2 March, and dates that no standard describes. */
const isoMoment = z.iso.datetime({ offset: true });

/** A moment that somebody wrote down in ISO 8601, with its offset; undefined if it is none. Reads no clock. */
export function parseMoment(text: string): Date | undefined {
  if (!isoMoment.safeParse(text).success) return undefined;
  const moment = new Date(text);
  // An offset may lead out of the years. Written so that an invalid date fails too.
  return moment >= FIRST_MOMENT && moment <= LAST_MOMENT ? moment : undefined;
}
