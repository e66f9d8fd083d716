import { GraphQLObjectType, GraphQLSchema, GraphQLString, graphql } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { startTestGraph, type TestGraph } from '../support/graph.js';
import { internalFacts } from '../support/internal-facts.js';
import {
  everyOperation,
  findSentinels,
  MARKER,
  moveObjects,
  mutationInputs,
  plantSentinels,
  queryArguments,
  type Sentinels,
} from '../support/sentinel.js';

let graph: TestGraph;
let planted: Sentinels;
beforeAll(async () => {
  graph = await startTestGraph();
  planted = await plantSentinels(graph.database);
});
afterAll(() => graph.close());

/** Internal models without a marker of their own: what they hold is not secret by itself. */
const UNMARKED = new Map([
  ['ChangePayload', 'the public projections of changes; scanned through the streams'],
  ['LogState', 'one row that exists already; its system identifier is scanned for'],
]);

describe('the sentinel', () => {
  it('is planted in every internal model', async () => {
    const tables = [...internalFacts().models].filter((model) => !UNMARKED.has(model)).map(snakeCase);
    expect(tables.length).toBeGreaterThan(4);
    for (const table of tables) {
      const { rows } = await graph.database.pool.query(`SELECT 1 FROM ${table} t WHERE t::text LIKE $1`, [
        `%${MARKER}%`,
      ]);
      expect(rows.length, table).toBeGreaterThan(0);
    }
  });

  it('is in no answer of any query that selects everything', async () => {
    const { ids } = planted;
    const operations = everyOperation(graph.schema, 'query', queryArguments(planted));
    const answered = new Set<string>();
    for (const { name, document, variables } of operations) {
      const answer = await graph.run(document, variables);
      expect(answer.errors, name).toEqual([]);
      expect(findSentinels(JSON.stringify(answer), planted), name).toEqual([]);
      for (const id of Object.values(ids)) if (JSON.stringify(answer).includes(id)) answered.add(id);
    }
    // Nothing was found because nothing was shown would prove nothing.
    expect(answered.size).toBe(Object.keys(ids).length);
  });

  it('is in no answer of any mutation, done or refused', async () => {
    for (const { name, document, variables } of everyOperation(
      graph.schema,
      'mutation',
      mutationInputs(planted),
      3,
    )) {
      const answer = await graph.run(document, variables);
      expect(answer.errors, name).toEqual([]);
      expect(findSentinels(JSON.stringify(answer), planted), name).toEqual([]);
    }
  });

  it('is in no event of any stream that selects everything', async () => {
    for (const { name, document, variables } of everyOperation(graph.schema, 'subscription', {})) {
      const stream = await graph.stream(document, variables);
      const events: unknown[] = [];
      if (name.includes('watch')) {
        // The snapshot first: one object and its end.
        while (!JSON.stringify(events).includes('SnapshotEnd')) events.push(await stream.next());
      }
      await moveObjects(graph.database, planted, name);
      graph.feed.wake();
      events.push(await stream.next());
      await stream.close();
      expect(JSON.stringify(events), name).toMatch(/dep_|agt_/);
      expect(findSentinels(JSON.stringify(events), planted), name).toEqual([]);
    }
  });

  it('is in no change row, nor in the printed schema', async () => {
    const { rows } = await graph.database.pool.query(
      'SELECT to_jsonb(c)::text AS row, p.after::text, p.before::text FROM change c JOIN change_payload p USING (seq)',
    );
    expect(rows.length).toBeGreaterThan(5);
    expect(findSentinels(JSON.stringify(rows), planted)).toEqual([]);
  });

  it('is found where a schema leaks one', async () => {
    const leaking = new GraphQLSchema({
      query: new GraphQLObjectType({
        name: 'Query',
        fields: {
          leak: {
            type: GraphQLString,
            resolve: async () =>
              JSON.stringify((await graph.database.pool.query('SELECT data FROM deployment_internal')).rows),
          },
        },
      }),
    });
    const [operation] = everyOperation(leaking, 'query', {});
    const answer = await graphql({ schema: leaking, source: operation?.document ?? '' });
    expect(findSentinels(JSON.stringify(answer), planted)).toHaveLength(1);
  });
});

function snakeCase(name: string): string {
  return name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, '_').toLowerCase();
}
