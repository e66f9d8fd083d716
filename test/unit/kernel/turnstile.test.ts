import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';

import { turnstile } from '../../../src/kernel/turnstile.js';

describe('turnstile', () => {
  it('lets so many through at a time, in order, and a failure makes room too', async () => {
    const inTurn = turnstile(2);
    const begun: number[] = [];
    const ends: ((fail: boolean) => void)[] = [];
    const work = [0, 1, 2, 3].map(async (i) =>
      inTurn(
        async () =>
          new Promise<void>((resolve, reject) => {
            begun.push(i);
            ends[i] = (fail) => {
              if (fail) reject(new Error(`${i}`));
              else resolve();
            };
          }),
      ).catch((error: unknown) => String(error)),
    );
    await turn();
    expect(begun).toEqual([0, 1]);
    ends[1]?.(true);
    await turn();
    expect(begun).toEqual([0, 1, 2]);
    ends[0]?.(false);
    await turn();
    expect(begun).toEqual([0, 1, 2, 3]);
    for (const i of [2, 3]) ends[i]?.(false);
    expect(await Promise.all(work)).toEqual([undefined, 'Error: 1', undefined, undefined]);
    await inTurn(async () => Promise.resolve());
  });
});
