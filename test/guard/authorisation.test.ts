import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { ACTIONS, OPERATIONS } from '../../src/access/actions.js';
import { AUTHORISATION_CASES } from '../api/access/authz.cases.js';
import { startTestGraph, type TestGraph } from '../support/graph.js';

/** What is wrong, one sentence each, as whoever added an action or an operation should read it. */
function gaps(
  coordinates: readonly string[],
  operations: Readonly<Record<string, string>>,
  actions: readonly string[],
  cases: readonly string[],
): string[] {
  return [
    ...coordinates
      .filter((coordinate) => !Object.hasOwn(operations, coordinate))
      .map(
        (coordinate) =>
          `${coordinate} has no row in OPERATIONS. Say in src/access/actions.ts which action it needs.`,
      ),
    ...Object.entries(operations)
      .filter(([, action]) => !actions.includes(action))
      .map(([coordinate, action]) => `${coordinate} needs ${action}, which is no row of ACTIONS.`),
    ...actions
      .filter((action) => !cases.includes(action))
      .map((action) => `${action} has no case in authz.cases.ts. Add who may do it and who may not.`),
    ...cases
      .filter((action) => !actions.includes(action))
      .map((action) => `authz.cases.ts has a case for ${action}, which is no action any more.`),
  ];
}

describe('authorisation coverage', () => {
  let graph: TestGraph;
  beforeAll(async () => {
    graph = await startTestGraph();
  });
  afterAll(() => graph.close());

  it('holds every query, mutation and subscription, and every action', () => {
    const { schema } = graph;
    const coordinates = [
      schema.getQueryType(),
      schema.getMutationType(),
      schema.getSubscriptionType(),
    ].flatMap((type) => (type ? Object.keys(type.getFields()).map((field) => `${type.name}.${field}`) : []));
    expect(coordinates.length).toBeGreaterThan(0);
    expect(gaps(coordinates, OPERATIONS, Object.keys(ACTIONS), Object.keys(AUTHORISATION_CASES))).toEqual([]);
  });

  it('names what is missing', () => {
    expect(gaps(['Mutation.renewLease'], { 'Query.x': 'x:read' }, ['lease:renew'], ['lease:gone'])).toEqual([
      expect.stringContaining('Mutation.renewLease has no row'),
      expect.stringContaining('Query.x needs x:read'),
      expect.stringContaining('lease:renew has no case in authz.cases.ts'),
      expect.stringContaining('lease:gone'),
    ]);
  });
});
