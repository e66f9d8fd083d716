import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';

import { loop, MORE, type Loop } from '../../../src/engine/sweeps.js';
import { silentLog } from '../../../src/kernel/log.js';
import { ManualClock } from '../../support/manual-clock.js';

/** A run that ends when the test says so. */
function gated() {
  const ends: { resolve: () => void; reject: (error: Error) => void }[] = [];
  const run = async () =>
    new Promise<void>((resolve, reject) => {
      ends.push({ resolve, reject });
    });
  return {
    run,
    begun: () => ends.length,
    async end(error?: Error) {
      const last = ends.at(-1);
      if (error) last?.reject(error);
      else last?.resolve();
      await turn();
    },
  };
}

function start(
  run: () => Promise<unknown>,
  random = () => 0.5,
  errors: object[] = [],
): { clock: ManualClock; it: Loop } {
  const clock = new ManualClock();
  const log = { ...silentLog, error: (fields: object) => void errors.push(fields) };
  return { clock, it: loop('sweep', 10, run, { clock, log, random }) };
}

describe('loop', () => {
  it('looks at once, and again some time after it has ended', async () => {
    const work = gated();
    const { clock } = start(work.run);
    expect(work.begun()).toBe(1);
    clock.advance(60_000);
    expect(work.begun()).toBe(1);
    await work.end();
    clock.advance(9_999);
    expect(work.begun()).toBe(1);
    clock.advance(1);
    expect(work.begun()).toBe(2);
  });

  it('looks again at once after a run that left something', async () => {
    const results = [MORE, MORE, undefined];
    let runs = 0;
    const { clock } = start(() => Promise.resolve(results[(runs += 1) - 1]));
    for (let i = 0; i < results.length; i += 1) {
      await turn();
      clock.advance(0);
    }
    await turn();
    expect(runs).toBe(3);
    expect(clock.waiting).toEqual([10_000]);
  });

  it.each([
    [0, 9_000],
    [0.999_999, 11_000],
  ])('waits the interval give or take a tenth: %d', async (random, ms) => {
    const work = gated();
    const { clock } = start(work.run, () => random);
    await work.end();
    expect(Math.round(clock.waiting[0] ?? 0)).toBe(ms);
  });

  it('counts and logs a failure, and goes on', async () => {
    const work = gated();
    const errors: object[] = [];
    const { clock, it: loop } = start(work.run, () => 0.5, errors);
    await work.end(new Error('database away'));
    clock.advance(10_000);
    await work.end(new Error('still away'));
    clock.advance(10_000);
    await work.end();
    expect([loop.runs, loop.failures]).toEqual([3, 2]);
    expect(errors).toEqual([
      expect.objectContaining({ loop: 'sweep', failing: 1, err: expect.any(Error) }),
      expect.objectContaining({ failing: 2 }),
    ]);
  });

  it('goes on after a run that throws before it waits', async () => {
    const { clock, it: loop } = start(() => {
      throw new Error('at once');
    });
    await turn();
    clock.advance(10_000);
    await turn();
    expect([loop.runs, loop.failures]).toEqual([2, 2]);
  });

  it('takes any number of wakes during a run as one more run', async () => {
    const work = gated();
    const { clock, it: loop } = start(work.run);
    for (let i = 0; i < 5; i += 1) loop.wake();
    await work.end();
    clock.advance(0);
    expect(work.begun()).toBe(2);
    await work.end();
    clock.advance(0);
    expect(work.begun()).toBe(2);
    loop.wake();
    expect(work.begun()).toBe(3);
    // The wait that was on is over with it.
    expect(clock.waiting).toEqual([]);
  });

  it('waits for the run that is on when it is stopped, and begins none after', async () => {
    const work = gated();
    const { clock, it: loop } = start(work.run);
    let ended = false;
    const stopping = loop.stop().then(() => {
      ended = true;
    });
    await turn();
    expect(ended).toBe(false);
    await work.end();
    await stopping;
    loop.wake();
    clock.advance(100_000);
    expect(work.begun()).toBe(1);
    expect(clock.waiting).toEqual([]);
  });

  it('leaves nothing behind when it is stopped between runs', async () => {
    const work = gated();
    const { clock, it: loop } = start(work.run);
    await work.end();
    await loop.stop();
    expect(clock.waiting).toEqual([]);
  });
});
