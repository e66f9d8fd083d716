import { readFileSync } from 'node:fs';
import { buildSchema } from 'graphql';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { createDatabase, type TestDatabase } from '../support/database.js';
import { seedFleet } from '../support/fleet.js';
import { cursorBack, rootFieldsAsked, tenant, type Asking } from '../support/plan-asking.js';
import { casesOfAdmin, casesOfTenant, type PlanCase } from '../support/plan-cases.js';
import {
  explainGeneric,
  explainRun,
  isPlanned,
  recordStatements,
  type Asked,
  type Verdict,
} from '../support/plans.js';
import { startTestServer } from '../support/server.js';

/** So large that reading a table from end to end is never the cheapest, unless there is no other way. */
const FLEET = { deployments: 50_000, changes: 200_000, payloads: 100_000, others: 20_000 };
/** Rows of large tables that one statement may look at, whatever the size of the fleet. */
const READ_MAX = 15_000;

/** What may read more, and why. Each is in use, or the test says so. */
const ALLOWED: readonly { readonly what: RegExp; readonly why: string }[] = [
  {
    what: /FROM token WHERE 'ADMIN' = ANY \(roles\)/,
    why: 'once at start: tokens are as many as people and machines, not as deployments',
  },
  {
    what: /\bcount\(\*\)[^]*\bfrom\b[^]*\b(deployment|runtime|release|rollout|agent|token)\b/i,
    why: 'totalCount counts the whole list, and only when it is selected; an index is all that is read where the table is visible to all',
  },
  {
    what: /^WITH stale AS \(SELECT agent_id FROM agent_internal/,
    why: 'an index on what each heartbeat writes would cost every heartbeat more than the sweep costs in all',
  },
];

describe('the plan of every statement on a large fleet', () => {
  let database: TestDatabase;
  let client: pg.Client;
  let asked: readonly Asked[];
  beforeAll(async () => {
    database = await createDatabase();
    client = new pg.Client(database.connection);
    await client.connect();
    await seedFleet(client, FLEET);
    await client.query('VACUUM ANALYZE');
    asked = await everythingAsked(database.url, await cursorBack(client, 1_000));
  }, 180_000);
  afterAll(async () => {
    await client.end();
    await database.drop();
  });

  const explained = async (
    one: Asked,
  ): Promise<readonly (Verdict & { readonly how: 'these values' | 'any values' })[]> => [
    { ...(await explainRun(client, one)), how: 'these values' },
    // Only what is prepared under a name is ever planned without its values.
    ...(one.name === undefined
      ? []
      : [{ ...(await explainGeneric(client, one)), how: 'any values' as const }]),
  ];

  it('reads only what it needs', { timeout: 120_000 }, async () => {
    const used = new Set<RegExp>();
    const bad = new Set<string>();
    for (const one of asked) {
      for (const { how, walked, read } of await explained(one)) {
        if (walked.length === 0 && read <= READ_MAX) continue;
        const allowed = ALLOWED.find(({ what }) => what.test(one.text));
        if (allowed) used.add(allowed.what);
        else {
          const walks = walked.length > 0 ? `walks ${walked.join(', ')}` : `reads ${read} rows`;
          bad.add(`${one.during}, planned for ${how}: ${walks}\n${one.text}`);
        }
      }
    }
    expect(
      [...bad].join('\n\n'),
      'Give the statement an index (prisma/migrations), or allow it above with the reason',
    ).toBe('');
    expect(
      ALLOWED.filter(({ what }) => !used.has(what)),
      'allowed, but never needed',
    ).toEqual([]);
  });

  it('is known for every field that can be asked', () => {
    const schema = buildSchema(readFileSync(new URL('../../schema.graphql', import.meta.url), 'utf8'));
    const fields = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()].flatMap(
      (type) => Object.keys(type?.getFields() ?? {}).map((field) => `${type?.name}.${field}`),
    );
    expect(
      fields.filter((field) => !rootFieldsAsked().has(field)),
      'ask them in test/support/plan-cases.ts',
    ).toEqual([]);
  });

  it.each([
    ['change_xid_idx', 'change'],
    ['deployment_exceptional_idx', 'deployment'],
    ['deployment_name_id_idx', 'deployment'],
    ['deployment_deleted_at_idx', 'deployment'],
  ])('is told apart from the one without %s', async (index, table) => {
    const verdicts: Verdict[] = [];
    for (const one of asked) {
      // Rolled back by the explanation.
      await client.query('BEGIN');
      await client.query(`DROP INDEX ${index}`);
      verdicts.push(await explainRun(client, one));
      if (verdicts.at(-1)?.walked.includes(table)) break;
    }
    expect(verdicts.at(-1)?.walked).toContain(table);
  });
});

async function everythingAsked(databaseUrl: string, from: string): Promise<readonly Asked[]> {
  const record = recordStatements();
  // No agent falls silent meanwhile: that would be as many changes.
  const server = await startTestServer({ databaseUrl, env: { SLIPWAY_HEARTBEAT_TIMEOUT_SECONDS: '86400' } });
  const run = async (who: string, asking: Asking, cases: readonly PlanCase[]) => {
    for (const one of cases) {
      record.during = `${who}: ${one.name}`;
      await one.run(asking);
      // Some statements are prepared only when they come again.
      if (one.repeatable) await one.run(asking);
    }
  };
  try {
    const admin: Asking = { url: server.url, headers: {} };
    await run('everything', admin, casesOfAdmin(from));
    for (const namespaces of [['tiny'], ['default'], ['tiny', 'team-3', 'empty']]) {
      await run(namespaces.join(', '), await tenant(admin, namespaces), casesOfTenant);
    }
  } finally {
    await server.close();
    record.stop();
  }
  return [...record.asked.values()].filter(isPlanned);
}
