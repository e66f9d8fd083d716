/**
 * Full-jitter exponential delay: uniformly between 0 and min(cap, base * 2^attempt). Spreads a crowd that was cut at
 * one moment. `attempt` counts from 0; `random` is in [0, 1).
 */
export function backoffMs(attempt: number, baseMs: number, capMs: number, random: () => number): number {
  const ceiling = Math.min(capMs, baseMs * 2 ** Math.min(attempt, 30));
  return Math.floor(random() * ceiling);
}
