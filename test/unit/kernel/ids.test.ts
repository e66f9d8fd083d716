import fc from 'fast-check';
import { TypeID } from 'typeid-js';
import { describe, expect, it } from 'vitest';

import { ID_PREFIXES, kindOfId, newId, OBJECT_KINDS, parseId } from '../../../src/kernel/ids.js';

describe('ids', () => {
  it('are known for what they are', () => {
    for (const kind of OBJECT_KINDS) {
      const id = newId(kind);
      expect(kindOfId(id)).toBe(kind);
      expect(parseId(kind, id)).toBe(id);
      expect(parseId(kind === 'AGENT' ? 'TOKEN' : 'AGENT', id)).toBeUndefined();
    }
  });

  it('are those that the specification of TypeIDs knows', () => {
    const valid = (text: string): boolean => {
      try {
        TypeID.fromString(text, ID_PREFIXES.DEPLOYMENT);
        return true;
      } catch {
        return false;
      }
    };
    const digit = fc.constantFrom(...'0123456789abcdefghjkmnpqrstvwxyz', 'i', 'l', 'o', 'u', 'A', '-', '_');
    const suffix = fc.array(digit, { minLength: 24, maxLength: 27 }).map((digits) => digits.join(''));
    const good = fc.uuid().map((uuid) => TypeID.fromUUID(ID_PREFIXES.DEPLOYMENT, uuid).toString());
    const near = suffix.map((text) => `dep_${text}`);
    const changed = fc
      .tuple(good, fc.nat(29), digit)
      .map(([id, at, one]) => id.slice(0, at) + one + id.slice(at + 1));
    fc.assert(
      fc.property(fc.oneof(good, near, changed), (text) => {
        expect(parseId('DEPLOYMENT', text) !== undefined).toBe(valid(text));
      }),
      { numRuns: 2_000 },
    );
    for (const text of [
      '',
      '_',
      'dep',
      'dep_',
      'Dep_',
      `dep_${'0'.repeat(26)}\n`,
      ` ${newId('DEPLOYMENT')}`,
    ]) {
      expect(kindOfId(text)).toBeUndefined();
    }
  });
});
