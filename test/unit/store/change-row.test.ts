import { describe, expect, it } from 'vitest';

import type { Clock } from '../../../src/kernel/clock.js';
import { redecide } from '../../../src/kernel/redecide.js';
import { changeRow } from '../../../src/store/change-row.js';
import { ObjectCache } from '../../../src/store/object-cache.js';

/** A clock on which every wait is over at once, and written down. */
function hurried(): { clock: Clock; waits: number[] } {
  const waits: number[] = [];
  const clock: Clock = {
    now: () => new Date(0),
    monotonicMs: () => 0,
    after(ms, run) {
      waits.push(ms);
      queueMicrotask(run);
      return () => undefined;
    },
  };
  return { clock, waits };
}

describe('redecide', () => {
  it('tries a hundred times, waits longer and longer, and then gives up', async () => {
    const { clock, waits } = hurried();
    let attempts = 0;
    const attempt = () => {
      attempts += 1;
      return Promise.resolve('again' as const);
    };
    expect(await redecide(clock, () => 0.999, attempt)).toBeUndefined();
    expect(attempts).toBe(100);
    expect(waits).toEqual([...waits].sort((a, b) => a - b));
    expect(waits[0]).toBeLessThan(3);
    expect(waits.at(-1)).toBeGreaterThan(200);
    expect(Math.max(...waits)).toBeLessThanOrEqual(250);
  });

  it('stops at the first answer', async () => {
    const { clock, waits } = hurried();
    const answers = ['again', 'again', 7] as const;
    let at = 0;
    expect(
      await redecide(
        clock,
        () => 0.5,
        () => Promise.resolve(answers[at++] ?? 'again'),
      ),
    ).toBe(7);
    expect(waits).toHaveLength(2);
  });
});

describe('changeRow', () => {
  const row = { id: 'x', version: 3 };

  it('tells the conflict with the last row it saw when no attempt fits', async () => {
    const { clock } = hurried();
    const outcome = await changeRow(clock, {
      what: 'thing',
      expectedVersion: undefined,
      read: () => Promise.resolve(row),
      decide: () => ({ kind: 'applied', write: () => Promise.resolve(undefined) }),
    });
    expect(outcome).toMatchObject({
      done: false,
      failure: { kind: 'VersionConflict', currentVersion: 3, current: row },
    });
  });

  it('reads again after a lost race, and then sees that the expected version is gone', async () => {
    const { clock } = hurried();
    let reads = 0;
    const outcome = await changeRow(clock, {
      what: 'thing',
      expectedVersion: 3,
      read: () => Promise.resolve({ id: 'x', version: 3 + reads++ }),
      decide: () => ({ kind: 'applied', write: () => Promise.resolve(undefined) }),
    });
    expect(outcome).toMatchObject({ failure: { kind: 'VersionConflict', currentVersion: 4 } });
    expect(reads).toBe(2);
  });
});

describe('ObjectCache', () => {
  it('keeps the newest version, in whatever order it is told', () => {
    const cache = new ObjectCache<{ id: string; version: number }>();
    for (const version of [2, 5, 3]) cache.note({ id: 'a', version });
    expect(cache.newest('a')).toEqual({ id: 'a', version: 5 });
    cache.forget('a');
    expect(cache.newest('a')).toBeUndefined();
  });

  it('is bounded: the least used makes room', () => {
    const cache = new ObjectCache<{ id: string; version: number }>(2);
    for (const id of ['a', 'b']) cache.note({ id, version: 1 });
    cache.newest('a');
    cache.note({ id: 'c', version: 1 });
    expect(cache.size).toBe(2);
    expect([cache.newest('a')?.id, cache.newest('b')?.id, cache.newest('c')?.id]).toEqual([
      'a',
      undefined,
      'c',
    ]);
  });
});
