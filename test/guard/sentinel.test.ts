import { GraphQLObjectType, GraphQLSchema, GraphQLString, graphql } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { startTestGraph, type TestGraph } from '../support/graph.js';
import { internalFacts } from '../support/internal-facts.js';
import {
  everyOperation,
  findSentinels,
  MARKER,
  plantSentinels,
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
    const operations = everyOperation(graph.schema, 'query', {
      node: { id: ids.deployment },
      nodes: { ids: Object.values(ids) },
      deployment: { id: ids.deployment },
      runtime: { id: ids.runtime },
      release: { id: ids.release },
      agent: { id: ids.agent },
    });
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
      await moveObjects(graph, planted, name);
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

/** Behind the server's back, so that even the token of the write is a marker. */
async function moveObjects(
  { database, feed }: TestGraph,
  { ids, marked }: Sentinels,
  why: string,
): Promise<void> {
  await database.pool.query(
    `UPDATE deployment SET version = version + 1, change_token = $2,
            phase = CASE phase WHEN 'RUNNING' THEN 'UPDATING' ELSE 'RUNNING' END::"DeploymentPhase" WHERE id = $1`,
    [ids.deployment, marked(`token-${why}`)],
  );
  await database.pool.query(
    `UPDATE agent SET version = version + 1, change_token = $2,
            health = CASE health WHEN 'READY' THEN 'CONGESTED' ELSE 'READY' END::"AgentHealth" WHERE id = $1`,
    [ids.agent, marked(`token-${why}`)],
  );
  feed.wake();
}

function mutationInputs({ ids }: Sentinels): Record<string, { input: object }> {
  const target = { id: ids.deployment };
  const resources = [{ name: 'web', serviceType: 'process' }];
  return {
    createRuntime: { input: { name: 'place', type: 'external' } },
    updateRuntime: { input: { id: ids.runtime, labels: { team: 'web' } } },
    patchRuntimeStatus: { input: { id: ids.runtime, expectedVersion: 1 } },
    createRelease: { input: { app: 'shop', label: 'v1', resources } },
    applyDeployment: {
      input: { name: 'shop', labels: { team: 'web' }, env: [{ name: 'A', secretValue: 'x' }] },
    },
    patchDeploymentStatus: { input: { ...target, expectedVersion: 999, phase: 'RUNNING' } },
    undeployDeployment: { input: { ...target, expectedVersion: 999 } },
    retryDeployment: { input: target },
    deleteDeployment: { input: { ...target, expectedVersion: 999 } },
    deleteRuntime: { input: { id: ids.runtime, expectedVersion: 999 } },
    registerAgent: { input: { name: 'other', topic: 'worker', serviceTypes: [], protocolVersion: 1 } },
    heartbeatAgent: { input: { id: ids.agent, session: 'wrong', sequence: 1, consumerLag: 0 } },
    deregisterAgent: { input: { id: ids.agent, expectedVersion: 999 } },
    cordonAgent: { input: { id: ids.agent, cordoned: true } },
    createToken: { input: { name: 'new', roles: ['VIEWER'] } },
    updateToken: { input: { id: ids.token, expectedVersion: 999 } },
    revokeToken: { input: { id: ids.token, expectedVersion: 999 } },
  };
}

function snakeCase(name: string): string {
  return name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, '_').toLowerCase();
}
