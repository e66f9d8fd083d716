import { describe, expect, it } from 'vitest';

import { createReleaseSchema, RESOURCE_SPEC_MAX_BYTES, RESOURCES_MAX } from '../../../src/releases/input.js';
import { resourceProblems } from '../../../src/releases/model.js';

const resource = (name: string, ...requires: string[]) => ({ name, requires });

describe('the resources of a release', () => {
  it('may require each other in any order without a circle', () => {
    expect(
      resourceProblems([resource('web', 'db', 'cache'), resource('db'), resource('cache', 'db')]),
    ).toEqual([]);
  });

  it.each([
    ['a name twice', [resource('a'), resource('a')], '`a` is the name of resource 0 too'],
    ['an unknown requirement', [resource('a', 'b')], 'names `b`, which is no resource here'],
    ['itself', [resource('a', 'a')], 'must not name the resource itself'],
    ['a requirement twice', [resource('a', 'b', 'b'), resource('b')], 'names `b` twice'],
    [
      'a circle',
      [resource('x'), resource('a', 'b'), resource('b', 'c'), resource('c', 'a', 'x')],
      'must not require each other in a circle: `a`, `b`, `c`',
    ],
  ])('must not name %s', (_what, resources, message) => {
    expect(resourceProblems(resources).map((problem) => problem.message)).toEqual([message]);
  });

  it('are bounded, one by one and together', () => {
    const input = (resources: object[]) =>
      createReleaseSchema.safeParse({ app: 'shop', label: 'v1', resources });
    const many = (count: number, spec: object = {}) =>
      Array.from({ length: count }, (_, n) => ({ name: `r${n}`, serviceType: 'process', spec }));
    expect(input(many(RESOURCES_MAX)).success).toBe(true);
    expect(input(many(RESOURCES_MAX + 1)).success).toBe(false);
    expect(input([]).success).toBe(false);
    expect(input(many(1, { x: 'y'.repeat(RESOURCE_SPEC_MAX_BYTES) })).success).toBe(false);
    const together = input(many(RESOURCES_MAX, { x: 'y'.repeat(20_000) }));
    expect(together.error?.issues.map(({ message }) => message)).toEqual([
      'must have at most 1048576 bytes as JSON',
    ]);
  });
});
