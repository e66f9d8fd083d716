import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { canonicalJson, sameJson } from '../../../src/kernel/json.js';

describe('sameJson', () => {
  const value = fc.anything({
    maxDepth: 3,
    key: fc.constantFrom('a', 'b', 'toString', '__proto__', 'constructor'),
    values: [
      fc.constantFrom<unknown>(undefined, null, true, 0, -0, NaN, '', 'a'),
      fc.constantFrom<unknown>(new Date(0), new Date(0).toISOString(), [], {}),
    ],
  });

  it('holds exactly of what is written alike with sorted keys', () => {
    fc.assert(
      fc.property(value, value, (a, b) => {
        expect(sameJson(a, b)).toBe(canonicalJson(a) === canonicalJson(b));
        expect(sameJson(a, a)).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  it('does not mind the order of keys, absent members, or a moment that is written as text', () => {
    expect(sameJson({ a: 1, b: { c: [1] } }, { b: { c: [1], d: undefined }, a: 1 })).toBe(true);
    expect(sameJson({ at: new Date(0) }, { at: new Date(0).toISOString() })).toBe(true);
    expect(sameJson([undefined], [null])).toBe(true);
    expect(sameJson({ a: 1 }, { b: 1 })).toBe(false);
    expect(sameJson([1], { 0: 1 })).toBe(false);
    expect(sameJson({ a: undefined }, { b: null })).toBe(false);
  });
});
