import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { jsonObjectSchema } from '../../../src/kernel/json.js';
import { cutToBytes, storable, textSchema } from '../../../src/kernel/text.js';

describe('cutToBytes', () => {
  it('never passes the bytes, never splits a character, and is a prefix as long as can be', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }).filter(storable), fc.nat(80), (text, max) => {
        const cut = cutToBytes(text, max);
        expect(text.startsWith(cut)).toBe(true);
        expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(max);
        expect(storable(cut)).toBe(true);
        const [next] = text.slice(cut.length);
        if (next !== undefined) expect(Buffer.byteLength(cut + next)).toBeGreaterThan(max);
      }),
    );
  });
});

describe('what can be stored', () => {
  it('has neither NUL nor half a surrogate pair', () => {
    expect(['', 'a', '€', '🚢'].every(storable)).toBe(true);
    expect(['\0', 'a\ud800', '\udc00b'].some(storable)).toBe(false);
    expect(textSchema(3).safeParse('\0').success).toBe(false);
    expect(textSchema(3).safeParse('abcd').success).toBe(false);
  });

  it('is a JSON object of bounded size and depth, without what JSON has no word for', () => {
    const schema = jsonObjectSchema(64);
    const deep = (levels: number): object => (levels === 0 ? {} : { a: deep(levels - 1) });
    expect(schema.safeParse({ a: [1, 'x', null, { b: true }] }).success).toBe(true);
    for (const bad of [
      null,
      [],
      'x',
      { a: '\0' },
      { '\0': 1 },
      { a: undefined },
      { a: Infinity },
      { a: 1n },
      { a: 'x'.repeat(64) },
    ]) {
      expect(schema.safeParse(bad).success).toBe(false);
    }
    expect(jsonObjectSchema(1_000).safeParse(deep(31)).success).toBe(true);
    expect(jsonObjectSchema(1_000).safeParse(deep(32)).success).toBe(false);
  });
});
