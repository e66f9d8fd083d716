import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import {
  CURSOR_MAX_CHARACTERS,
  decodeCursor,
  encodeCursor,
  stepEncoder,
  type Cursor,
} from '../../../src/kernel/cursor.js';
import type { Snapshot } from '../../../src/kernel/snapshot.js';

const EPOCH = '0123456789abcdef0123456789abcdef';

const snapshots: fc.Arbitrary<Snapshot> = fc
  .record({
    xmax: fc.bigInt({ min: 3n, max: 2n ** 62n }),
    gaps: fc.array(fc.bigInt({ min: 1n, max: 5_000n }), { maxLength: 40 }),
  })
  .map(({ xmax, gaps }) => {
    const xip: bigint[] = [];
    let xid = xmax;
    for (const gap of gaps) {
      xid -= gap;
      if (xid < 3n) break;
      xip.unshift(xid);
    }
    return { xmax, xip };
  });
const epochs = fc.stringMatching(/^[0-9a-f]{32}$/);
const cursors: fc.Arbitrary<Cursor> = fc.oneof(
  fc.record({ form: fc.constant('at' as const), epoch: epochs, at: snapshots }),
  fc.record({ form: fc.constant('snapshot' as const), epoch: epochs, at: snapshots }),
  fc.record({
    form: fc.constant('within' as const),
    epoch: epochs,
    from: snapshots,
    at: snapshots,
    seq: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
  }),
);

describe('change cursor', () => {
  it('reads back what was written, in URL-safe text', () => {
    fc.assert(
      fc.property(cursors, (cursor) => {
        const text = encodeCursor(cursor);
        expect(text).toMatch(/^[A-Za-z0-9_-]+$/);
        expect(decodeCursor(text)).toEqual(cursor);
      }),
    );
  });

  it('packs the cursors of one step as it packs each alone', () => {
    fc.assert(
      fc.property(snapshots, snapshots, fc.bigInt({ min: 0n, max: 2n ** 60n }), (from, at, seq) => {
        expect(stepEncoder(EPOCH, from, at)(seq)).toBe(
          encodeCursor({ form: 'within', epoch: EPOCH, from, at, seq }),
        );
      }),
    );
  });

  it('refuses a cursor in which any one character was changed, left out or added', () => {
    fc.assert(
      fc.property(cursors, fc.nat(), fc.constantFrom(...'AZaz09-_'), (cursor, place, character) => {
        const text = encodeCursor(cursor);
        const i = place % text.length;
        fc.pre(text[i] !== character);
        expect(decodeCursor(text.slice(0, i) + character + text.slice(i + 1))).toBeUndefined();
        expect(decodeCursor(text.slice(0, i) + text.slice(i + 1))).toBeUndefined();
        expect(decodeCursor(text.slice(0, i) + character + text.slice(i))).toBeUndefined();
      }),
    );
  });

  it('refuses whatever else it is given, without throwing', () => {
    fc.assert(fc.property(fc.string(), (text) => decodeCursor(text) === undefined));
    expect(decodeCursor('')).toBeUndefined();
    expect(decodeCursor('A'.repeat(CURSOR_MAX_CHARACTERS + 4))).toBeUndefined();
  });

  it('takes about 290 characters with 200 open writers', () => {
    const xip = Array.from({ length: 200 }, (_, i) => 1_000_000_000n + BigInt(i * 3));
    const text = encodeCursor({ form: 'at', epoch: EPOCH, at: { xmax: 1_000_000_700n, xip } });
    expect(text.length).toBeLessThanOrEqual(320);
  });

  it('throws rather than write a cursor that no server would read', () => {
    const xip = Array.from({ length: 9_000 }, (_, i) => 1_000_000n + BigInt(i));
    expect(() => encodeCursor({ form: 'at', epoch: EPOCH, at: { xmax: 2_000_000n, xip } })).toThrow(
      RangeError,
    );
  });
});
