import { readTurns } from '../../src/kernel/read-turns.js';
import { silentLog } from '../../src/kernel/log.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { Database } from '../../src/store/database.js';
import { publicReads } from '../../src/store/public-reads.js';
import { BESIDE, TABLES } from '../../src/store/tables.js';
import { createDatabase } from '../support/database.js';
import { openStore } from '../support/open-store.js';
import { plantSentinels, type Sentinels } from '../support/sentinel.js';
import type { TestDatabase } from '../support/test-server.js';

const DENIED = { code: '42501' };
const INTERNAL_TABLES = [
  'runtime_internal',
  'deployment_internal',
  'deploy_lock',
  'agent_internal',
  'token_secret',
  'change_payload',
  'log_state',
  'idempotency_record',
];
const VERSIONED = ['runtime', 'release', 'deployment', 'agent', 'token', 'rollout'] as const;

let testDatabase: TestDatabase;
let database: Database;
let planted: Sentinels;
beforeAll(async () => {
  testDatabase = await createDatabase();
  database = openStore(testDatabase);
  planted = await plantSentinels(database);
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

describe('the read role', () => {
  it.each(INTERNAL_TABLES)('may not read %s, which the owner may', async (table) => {
    await expect(database.readPool.query(`SELECT * FROM ${table}`)).rejects.toMatchObject(DENIED);
    await expect(database.pool.query(`SELECT * FROM ${table}`)).resolves.toBeDefined();
  });

  it.each(VERSIONED)('may not read the bookkeeping of %s, nor write it', async (table) => {
    for (const column of ['changed_by', 'change_reason', 'change_token', 'trace_id']) {
      await expect(database.readPool.query(`SELECT ${column} FROM ${table}`), column).rejects.toMatchObject(
        DENIED,
      );
    }
    await expect(database.readPool.query(`DELETE FROM ${table}`)).rejects.toMatchObject(DENIED);
  });

  it('refuses what Prisma reads without a select, and gives what the graph reads', async () => {
    await expect(database.prisma.deployment.findFirst()).rejects.toThrow(/permission denied|denied access/i);
    await expect(
      database.prisma.deployment.findFirst({ select: { id: true, internal: true } }),
    ).rejects.toThrow(/permission denied|denied access/i);
    const reads = publicReads(database, silentLog);
    for (const table of VERSIONED) {
      const wanted = { table, namespaces: 'all', ids: [planted.ids[table]], deleted: true } as const;
      const columns = [...Object.keys(TABLES[table]), ...Object.keys(BESIDE[table] ?? {})];
      const rows = await reads.rows([{ wanted, rows: { table, columns, below: [] } }], readTurns());
      expect(rows).toHaveLength(1);
      expect(Object.keys(rows[0] ?? {}).sort()).toEqual(columns.sort());
    }
  });
});
