import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import {
  BEGINNING,
  covers,
  formatSnapshot,
  lowered,
  parseSnapshot,
  visible,
  xminOf,
  type Snapshot,
} from '../../../src/kernel/snapshot.js';

/** A history in which transactions begin and end; the snapshots that a database would have told on the way. */
const histories = fc
  .array(fc.record({ begin: fc.boolean(), which: fc.nat() }), { minLength: 2, maxLength: 60 })
  .map((events) => {
    let next = 3n;
    let highestEnded = 2n;
    const running: bigint[] = [];
    const moments: Snapshot[] = [BEGINNING];
    for (const { begin, which } of events) {
      if (begin || running.length === 0) {
        running.push(next);
        next += 1n;
      } else {
        const [ended = 0n] = running.splice(which % running.length, 1);
        if (ended > highestEnded) highestEnded = ended;
      }
      const xmax = highestEnded + 1n;
      moments.push({ xmax, xip: running.filter((xid) => xid < xmax) });
    }
    return moments;
  });
const ids = (last: bigint) => Array.from({ length: Number(last) + 2 }, (_, i) => BigInt(i));

describe('snapshot', () => {
  it('reads the text of PostgreSQL and writes it back', () => {
    for (const text of ['863:863:', '3:3:', '10:20:10,14,15']) {
      expect(formatSnapshot(parseSnapshot(text))).toBe(text);
    }
    for (const text of ['', '1:2', 'a:b:', '10:20:10,', '10:20:10,,11', '-1:2:']) {
      expect(() => parseSnapshot(text)).toThrow();
    }
  });

  it('sees what ended below its bound and was not running', () => {
    const snapshot = parseSnapshot('10:20:10,14');
    expect([9n, 10n, 11n, 14n, 19n, 20n].map((xid) => visible(xid, snapshot))).toEqual([
      true,
      false,
      true,
      false,
      true,
      false,
    ]);
    expect(xminOf(snapshot)).toBe(10n);
    expect(xminOf(parseSnapshot('20:20:'))).toBe(20n);
  });

  it('covers every earlier moment of the same history', () => {
    fc.assert(
      fc.property(histories, fc.nat(), fc.nat(), (moments, a, b) => {
        const [i, j] = [a % moments.length, b % moments.length].sort((x, y) => x - y);
        const [earlier = BEGINNING, later = BEGINNING] = [moments[i ?? 0], moments[j ?? 0]];
        expect(covers(later, earlier)).toBe(true);
        for (const xid of ids(later.xmax)) if (visible(xid, earlier)) expect(visible(xid, later)).toBe(true);
      }),
    );
  });

  it('never claims to cover a moment that sees more', () => {
    fc.assert(
      fc.property(histories, fc.nat(), fc.nat(), (moments, a, b) => {
        const [x = BEGINNING, y = BEGINNING] = [moments[a % moments.length], moments[b % moments.length]];
        if (covers(x, y)) {
          for (const xid of ids(y.xmax)) if (visible(xid, y)) expect(visible(xid, x)).toBe(true);
        }
      }),
    );
  });

  it('stays the same for all ids below a lowered bound, and sees none above', () => {
    fc.assert(
      fc.property(histories, fc.nat(), fc.bigInt({ min: 3n, max: 40n }), (moments, at, bound) => {
        const snapshot = moments[at % moments.length] ?? BEGINNING;
        const low = lowered(snapshot, bound);
        for (const xid of ids(snapshot.xmax)) {
          expect(visible(xid, low)).toBe(visible(xid, snapshot) && xid < bound);
        }
      }),
    );
  });
});
