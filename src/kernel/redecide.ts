import { backoffMs } from './backoff.js';
import type { Clock } from './clock.js';

/** A decision is made again when what it was made about has changed meanwhile; so often, and no more. */
const REDECIDE_ATTEMPTS_MAX = 100;
const BASE_MS = 2;
const CAP_MS = 250;

/**
 * Runs `attempt` until it answers something other than `again`, waiting longer each time; undefined when it never did.
 * Each attempt reads afresh.
 */
export async function redecide<T>(
  clock: Clock,
  random: () => number,
  attempt: () => Promise<T | 'again'>,
): Promise<T | undefined> {
  for (let n = 0; n < REDECIDE_ATTEMPTS_MAX; n += 1) {
    const answer = await attempt();
    if (answer !== 'again') return answer;
    const delayMs = backoffMs(n, BASE_MS, CAP_MS, random);
    await new Promise<void>((resolve) => {
      clock.after(delayMs, resolve);
    });
  }
  return undefined;
}
