import { describe, expect, it } from 'vitest';

import { Ring, RING_MAX_BYTES, RING_MAX_CHANGES } from '../../../src/changes/ring.js';
import type { Snapshot } from '../../../src/kernel/snapshot.js';
import { row } from './rows.js';

const at = (xmax: number, ...xip: number[]): Snapshot => ({ xmax: BigInt(xmax), xip: xip.map(BigInt) });
const every = (): boolean => true;
const seqs = (ring: Ring, from: Snapshot, to: Snapshot, seq = 0n) =>
  ring.select({ from, at: to, seq }, every, 100).rows.map(({ change }) => Number(change.seq));

describe('Ring', () => {
  it('gives what lies between two moments, in order of seq, however the steps were cut', () => {
    const ring = new Ring(at(10));
    ring.add(at(13, 11), [row({ seq: 2, xid: 10n }), row({ seq: 3, xid: 12n })]);
    ring.add(at(14), [row({ seq: 1, xid: 11n }), row({ seq: 4, xid: 13n })]);
    expect(seqs(ring, at(10), at(14))).toEqual([1, 2, 3, 4]);
    expect(seqs(ring, at(13, 11), at(14))).toEqual([1, 4]);
    expect(seqs(ring, at(10), at(13, 11))).toEqual([2, 3]);
    expect(seqs(ring, at(10), at(14), 2n)).toEqual([3, 4]);
    // A moment of another replica, between the two steps.
    expect(seqs(ring, at(12, 11), at(14))).toEqual([1, 3, 4]);
    expect(seqs(ring, at(14), at(14))).toEqual([]);
  });

  it('says how far back it reaches', () => {
    const ring = new Ring(at(10));
    expect(ring.reachesBackTo(at(10))).toBe(true);
    expect(ring.reachesBackTo(at(9))).toBe(false);
    expect(ring.reachesBackTo(at(12, 8))).toBe(false);
    ring.reset(at(20));
    expect(ring.reachesBackTo(at(19))).toBe(false);
    expect(ring.reachesBackTo(at(20))).toBe(true);
  });

  it('drops whole steps, the oldest first, at its bounds', () => {
    const ring = new Ring(at(10));
    const half = Array.from({ length: RING_MAX_CHANGES / 2 }, (_, i) => row({ seq: i + 1, xid: 10n }));
    ring.add(at(11), half);
    ring.add(at(12), [row({ seq: 9_000_001, xid: 11n })]);
    expect(ring.reachesBackTo(at(10))).toBe(true);
    ring.add(
      at(13),
      half.map((_, i) => row({ seq: 10_000_000 + i, xid: 12n })),
    );
    expect(ring.changes).toBeLessThanOrEqual(RING_MAX_CHANGES);
    expect(ring.reachesBackTo(at(10))).toBe(false);
    expect(ring.reachesBackTo(at(11))).toBe(true);

    const wide = new Ring(at(10));
    wide.add(at(11), [row({ seq: 1, xid: 10n, bytes: RING_MAX_BYTES + 1 })]);
    expect([wide.changes, wide.bytes]).toEqual([0, 0]);
    expect(wide.reachesBackTo(at(10))).toBe(false);
    expect(wide.reachesBackTo(at(11))).toBe(true);
  });

  it('forgets everything before a step that was too large to keep', () => {
    const ring = new Ring(at(10));
    ring.add(at(11), [row({ seq: 1, xid: 10n })]);
    ring.add(at(12), undefined);
    expect(ring.changes).toBe(0);
    expect(ring.reachesBackTo(at(11))).toBe(false);
  });

  it('moves on with moments that brought nothing', () => {
    const ring = new Ring(at(10, 5));
    ring.add(at(10), []);
    expect(ring.reachesBackTo(at(10))).toBe(true);
    ring.add(at(11, 9), [row({ seq: 1, xid: 10n })]);
    ring.add(at(11), []);
    expect(seqs(ring, at(11), at(11))).toEqual([]);
    expect(seqs(ring, at(10), at(11))).toEqual([1]);
  });
});
