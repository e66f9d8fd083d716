import { describe, expect, it } from 'vitest';

import { Liveness } from '../../../src/transport/liveness.js';

const LIMITS = {
  pingEveryMs: 10_000,
  pongWithinMs: 5_000,
  connectionAgeMs: 60_000,
  stalledBytes: 2_000,
  stalledMs: 15_000,
};
const idle = { unsentBytes: 0, drainedBytes: 0, paused: false };

/** With `random` 0, the first ping is due after half its interval, and the age ends at 90 %. */
const liveness = (random = 0) => new Liveness(LIMITS, 0, () => random);

describe('Liveness', () => {
  it('pings after its interval, again and again, while the peer answers', () => {
    const one = liveness();
    expect(one.judge(idle, 4_999)).toBe('fine');
    for (let at = 5_000; at < 50_000; at += 10_000) {
      expect(one.judge(idle, at)).toBe('ping');
      expect(one.judge(idle, at + 1)).toBe('fine');
      one.heard();
    }
  });

  it('finds a peer silent that does not answer in time', () => {
    const one = liveness();
    expect(one.judge(idle, 5_000)).toBe('ping');
    expect(one.judge(idle, 9_999)).toBe('fine');
    expect(one.judge(idle, 10_000)).toBe('silent');
  });

  it('gives a peer that still takes bytes until the longer limit', () => {
    const one = liveness();
    const reading = (drainedBytes: number) => ({ unsentBytes: 1_000, drainedBytes, paused: false });
    expect(one.judge(reading(0), 5_000)).toBe('ping');
    expect(one.judge(reading(500), 12_000)).toBe('fine');
    expect(one.judge(reading(900), 15_000)).toBe('ping');
    expect(one.judge(reading(900), 20_000)).toBe('silent');
  });

  it('finds a connection stalled that is paused and takes nothing', () => {
    const one = liveness();
    const paused = (drainedBytes: number) => ({ unsentBytes: 1_000, drainedBytes, paused: true });
    one.heard();
    expect(one.judge(paused(10), 1_000)).toBe('fine');
    expect(one.judge(paused(20), 4_000)).toBe('fine'); // it read: the time begins again
    expect(one.judge(paused(20), 18_999)).not.toBe('stalled');
    expect(one.judge(paused(20), 19_000)).toBe('stalled');
  });

  it('finds a connection stalled that holds too much for too long, whatever it takes', () => {
    const one = liveness();
    const full = (drainedBytes: number) => ({ unsentBytes: 2_001, drainedBytes, paused: false });
    expect(one.judge(full(1), 1_000)).toBe('fine');
    expect(one.judge({ ...idle, drainedBytes: 2 }, 2_000)).toBe('fine');
    expect(one.judge(full(3), 3_000)).toBe('fine');
    expect(one.judge(full(9), 18_000)).toBe('stalled');
  });

  it.each([
    [0, 54_000],
    [0.5, 60_000],
    [0.999, 65_980],
  ])('spreads the age of connections (%d)', (random, ageMs) => {
    const one = liveness(random);
    for (let at = 0; at < ageMs - 1_000; at += 1_000) {
      expect(one.judge(idle, at)).not.toBe('aged');
      one.heard();
    }
    expect(one.judge(idle, ageMs + 1_000)).toBe('aged');
  });
});
