import { parse } from 'graphql';
import { describe, expect, it } from 'vitest';

import { documentExcess } from '../../../src/transport/document-limits.js';

const BOUNDS = { documentDepth: 3, documentAliases: 2, documentDirectives: 6, fieldRepeats: 2 };
const excess = (document: string) => documentExcess(parse(document), BOUNDS);

describe('documentExcess', () => {
  it.each([
    ['as deep as allowed', '{ a { b { c } } }', undefined],
    ['one deeper', '{ a { b { c { d } } } }', 'deep'],
    ['deeper by an inline fragment', '{ a { ... on T { b { c { d } } } } }', 'deep'],
    ['deeper by a fragment', '{ a { ...F } } fragment F on T { b { c { d } } }', 'deep'],
    ['deep only in introspection', '{ __schema { a { b { c { d { e } } } } } }', undefined],
    ['deep in the second operation', 'query A { a } query B { a { b { c { d } } } }', 'deep'],
    ['as many aliases as allowed', '{ x: a y: b }', undefined],
    ['one alias more', '{ x: a y: b z: c }', 'aliases'],
    [
      'aliases by a fragment that is spread twice',
      '{ p { ...F } q { ...F } } fragment F on T { x: a y: b }',
      'aliases',
    ],
    ['as many directives as allowed', '{ a @x @x @x b @x @x @x }', undefined],
    ['one directive more', '{ a @x @x @x b @x @x @x @x }', 'directives'],
    ['too many directives on one field', '{ a @x @x @x @x @x @x }', 'directives'],
    ['too many directives on the operation', 'query @x @x @x @x @x @x { a }', 'directives'],
    ['a field as often as allowed', '{ a a }', undefined],
    ['a field once more', '{ a a a }', 'repeats'],
    ['a spread too often', '{ ...F ...F ...F } fragment F on T { a }', 'repeats'],
    ['repeats in a fragment', '{ ...F } fragment F on T { a a a }', 'repeats'],
    ['a fragment that nobody defines', '{ ...Nowhere }', undefined],
    ['fragments in a circle', '{ ...F } fragment F on T { ...G } fragment G on T { ...F }', undefined],
  ])('%s', (_name, document, expected) => {
    expect(excess(document)).toBe(expected);
  });

  it('takes no longer for fragments that double', () => {
    const levels = 500;
    const fragments = Array.from(
      { length: levels },
      (_, n) => `fragment F${n} on T { x: a ${n + 1 < levels ? `...F${n + 1} ... { ...F${n + 1} }` : ''} }`,
    );
    // 2^500 aliases if it were walked.
    expect(excess(`{ ...F0 } ${fragments.join(' ')}`)).toBe('aliases');
  });
});
