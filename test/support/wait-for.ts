import { setTimeout as delay } from 'node:timers/promises';

/** Looks again and again until `condition` is true (or gives a value), for at most `withinMs`. */
export async function waitFor<T>(
  condition: () => Promise<T | undefined | false> | T | undefined | false,
  what: string,
  withinMs = 10_000,
): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const value = await condition();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > deadline) throw new Error(`not within ${withinMs} ms: ${what}`);
    await delay(5);
  }
}
