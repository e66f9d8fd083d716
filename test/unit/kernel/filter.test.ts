import { describe, expect, it } from 'vitest';

import { deploymentFilterSchema } from '../../../src/deployments/filter.js';
import {
  FILTER_DEPTH_MAX,
  FILTER_LEAVES_MAX,
  FILTER_VALUES_MAX,
  matches,
} from '../../../src/kernel/filter.js';
import { releaseFilterSchema } from '../../../src/releases/filter.js';
import { validated } from '../../../src/kernel/validate.js';

const row = { name: 'web', app: 'shop', phase: 'RUNNING', labels: { team: 'x' } };
const hits = (filter: unknown) => matches(deploymentFilterSchema.parse(filter), row);
const issues = (filter: unknown) => {
  const outcome = validated(deploymentFilterSchema, filter, ['filter']);
  return outcome.done
    ? []
    : outcome.failure.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
};

describe('a filter', () => {
  it('of nothing holds for everything', () => {
    for (const filter of [null, undefined, {}, { name: null, and: null, labels: null }, { name: {} }]) {
      expect(hits(filter)).toBe(true);
    }
  });

  it('holds when everything that stands side by side holds', () => {
    expect(hits({ name: { equals: 'web' }, app: { in: ['shop', 'cart'] } })).toBe(true);
    expect(hits({ name: { equals: 'web', startsWith: 'a' } })).toBe(false);
    expect(hits({ or: [{ app: { equals: 'cart' } }, { phase: { notIn: ['RUNNING'] } }] })).toBe(false);
    expect(hits({ not: { and: [{ app: { equals: 'shop' } }, { name: { equals: 'api' } }] } })).toBe(true);
  });

  it.each([
    [{ key: 'team', operator: 'IN', values: ['x'] }, true],
    [{ key: 'team', operator: 'NOT_IN', values: ['x'] }, false],
    [{ key: 'none', operator: 'NOT_IN', values: ['x'] }, true],
    [{ key: 'none', operator: 'IN', values: [''] }, false],
    [{ key: 'team', operator: 'EXISTS' }, true],
    [{ key: 'toString', operator: 'EXISTS' }, false],
    [{ key: 'none', operator: 'NOT_EXISTS' }, true],
  ])('selects by label: %j is %s', (label, expected) => {
    expect(hits({ labels: [label] })).toBe(expected);
  });

  it('has at most so many levels, leaves and values, and says where there are more', () => {
    const nested = (levels: number): object =>
      levels === 1 ? { name: { equals: 'x' } } : { not: nested(levels - 1) };
    expect(issues(nested(FILTER_DEPTH_MAX))).toEqual([]);
    expect(issues(nested(FILTER_DEPTH_MAX + 1))).toEqual([
      `filter.not.not.not.not.not: must nest at most ${FILTER_DEPTH_MAX} levels`,
    ]);
    const wide = (count: number) => ({
      or: [{ and: Array(count - 1).fill({ name: { equals: 'x' } }) }, { app: { equals: 'x' } }],
    });
    expect(issues(wide(FILTER_LEAVES_MAX))).toEqual([]);
    expect(issues(wide(FILTER_LEAVES_MAX + 1))).toEqual([
      `filter: must have at most ${FILTER_LEAVES_MAX} leaves`,
    ]);
    expect(issues({ name: { in: Array<string>(FILTER_VALUES_MAX + 1).fill('x') } })).toEqual([
      `filter.name.in: must have at most ${FILTER_VALUES_MAX} values`,
    ]);
  });

  it('refuses what it does not know, by its path', () => {
    expect(issues({ secret: { equals: 'x' } })).toEqual(['filter.secret: is not a field here']);
    expect(issues({ phase: { startsWith: 'R' } })).toEqual(['filter.phase.startsWith: is not a field here']);
    expect(issues({ phase: { equals: 'HAPPY' } })).toHaveLength(1);
    expect(issues({ labels: [{ key: 'a', operator: 'IN' }] })).toEqual([
      'filter.labels.0.values: must have 1 to 100 values',
    ]);
    expect(issues({ labels: [{ key: 'a', operator: 'EXISTS', values: ['x'] }] })).toEqual([
      'filter.labels.0.values: must be empty for this operator',
    ]);
    expect(issues({ or: [] })).toEqual(['filter.or: must have at least 1 filter']);
    expect(releaseFilterSchema.safeParse({ labels: [] }).success).toBe(false);
  });
});
