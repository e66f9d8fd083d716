import { describe, expect, it } from 'vitest';

import { dateTimeText } from '../../../src/graph/scalars.js';

describe('the text of a DateTime', () => {
  it.each([
    [new Date('2026-11-30T12:00:00Z'), '2026-11-30T12:00:00.000Z'],
    [new Date('+010000-01-01T00:00:00Z'), '9999-12-31T23:59:59.999Z'],
    [new Date('-000044-03-15T00:00:00Z'), '0001-01-01T00:00:00.000Z'],
    [new Date(Number.NaN), '9999-12-31T23:59:59.999Z'],
    // What the driver makes of PostgreSQL's own two.
    [Number.POSITIVE_INFINITY, '9999-12-31T23:59:59.999Z'],
    [Number.NEGATIVE_INFINITY, '0001-01-01T00:00:00.000Z'],
  ])('of %j is %s', (value, text) => {
    expect(dateTimeText(value)).toBe(text);
  });
});
