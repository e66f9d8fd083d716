import { describe, expect, it } from 'vitest';

import { Tally, TokenBucket } from '../../../src/transport/limits.js';

describe('TokenBucket', () => {
  it('gives its burst at once, then as much as time brings', () => {
    const bucket = new TokenBucket(2, 3, 0);
    expect([0, 0, 0, 0].map((at) => bucket.take(at))).toEqual([true, true, true, false]);
    expect([499, 500, 500].map((at) => bucket.take(at))).toEqual([false, true, false]);
  });

  it('never holds more than its burst, and does not mind a clock that stands', () => {
    const bucket = new TokenBucket(1_000, 2, 0);
    expect([60_000, 60_000, 60_000].map((at) => bucket.take(at))).toEqual([true, true, false]);
    expect(bucket.take(59_000)).toBe(false);
  });
});

describe('Tally', () => {
  it('counts per key and forgets keys that hold nothing', () => {
    const tally = new Tally();
    expect([tally.take('a', 2), tally.take('a', 2), tally.take('a', 2), tally.take('b', 2)]).toEqual([
      true,
      true,
      false,
      true,
    ]);
    tally.giveBack('a');
    expect(tally.take('a', 2)).toBe(true);
    for (const key of ['a', 'a', 'b']) tally.giveBack(key);
    expect(tally.keys).toBe(0);
  });
});
