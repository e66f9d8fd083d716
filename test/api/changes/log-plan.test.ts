import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { STEP_TEXT } from '../../../src/changes/log.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';

const ROWS = 120_000;
const TRANSACTIONS = 60;

describe('the feed query on a large log', () => {
  let database: TestDatabase;
  let client: pg.Client;
  let newest: string;
  beforeAll(async () => {
    database = await createDatabase();
    client = new pg.Client(database.connection);
    await client.connect();
    for (let i = 0; i < TRANSACTIONS; i += 1) {
      await client.query(
        `with c as (insert into change (kind, object_id, op, version, actor)
           select 'AGENT', 'agt_' || $1::int || '_' || i, 'INSERT', 1, 'system:test' from generate_series(1, $2::int) i returning seq)
         insert into change_payload (seq, after) select seq, jsonb_build_object('pad', repeat('x', 200)) from c`,
        [i, ROWS / TRANSACTIONS],
      );
    }
    const { rows } = await client.query<{ xid: string }>('select max(xid)::text as xid from change');
    newest = rows[0]?.xid ?? '';
    await client.query(`prepare step (xid8, xid8[], bigint) as ${STEP_TEXT}`);
  });
  afterAll(async () => {
    await client.end();
    await database.drop();
  });

  const explain = async (mode: string, xmax: string, xip: string): Promise<string> => {
    await client.query(`set plan_cache_mode = ${mode}`);
    const { rows } = await client.query<Record<string, string>>(
      `explain (analyze, costs off, timing off) execute step('${xmax}', '${xip}', 1001)`,
    );
    return rows.map((row) => Object.values(row)[0]).join('\n');
  };

  describe.each(['force_custom_plan', 'force_generic_plan'])('with %s', (mode) => {
    describe.each(['before', 'after'])('%s the statistics were gathered', (when) => {
      beforeAll(async () => {
        if (when === 'after') await client.query('analyze change, change_payload');
      });

      it('never walks the log', async () => {
        for (const [xmax, xip] of [
          [String(BigInt(newest) + 1n), '{}'],
          [newest, '{}'],
          [newest, `{${BigInt(newest) - 1n}}`],
        ] as const) {
          const plan = await explain(mode, xmax, xip);
          expect(plan).not.toMatch(/Seq Scan on change(_payload)?\b/);
          expect(plan).not.toMatch(/change_pkey/);
          expect(plan).toMatch(/change_xid_idx/);
          expect(plan).not.toMatch(/Rows Removed by Filter: \d{4,}/);
        }
      });
    });
  });

  it('would walk the log with an OR instead of two branches', async () => {
    await client.query('set plan_cache_mode = force_generic_plan');
    await client.query(`prepare worse (xid8, xid8[]) as select c.* from change c
      where (c.xid >= $1 or c.xid = any($2)) and pg_visible_in_snapshot(c.xid, pg_current_snapshot()) order by c.seq limit 1001`);
    const { rows } = await client.query<Record<string, string>>(`explain execute worse('${newest}', '{}')`);
    expect(rows.map((row) => Object.values(row)[0]).join('\n')).toMatch(/Seq Scan on change|change_pkey/);
  });
});
