import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { readTurns } from '../../../src/kernel/read-turns.js';
import { namedStatements, type NamedStatements } from '../../../src/store/named-statements.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createDatabase();
  pool = new pg.Pool({ ...database.connection, max: 1 });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const PREPARED =
  'SELECT pg_backend_pid()::text AS pid, (SELECT count(*) FROM pg_prepared_statements)::text AS held';
async function session(): Promise<{ pid: string; held: number }> {
  const { rows } = await pool.query<{ pid: string; held: string }>(PREPARED);
  return { pid: rows[0]?.pid ?? '', held: Number(rows[0]?.held) };
}

const cancel = (): void => {
  throw new Error('nothing ends here');
};
const row = (statements: NamedStatements, text: string, values: readonly unknown[]) =>
  statements.row({ text, values, prepare: true }, readTurns());

describe('named statements', () => {
  it('prepare a text when it comes again, once for all its values', async () => {
    const statements = namedStatements(pool, cancel, { texts: 10, perSession: 10 });
    const text = "SELECT $1::text || '!', NULL";
    const before = (await session()).held;
    expect(await row(statements, text, ['a'])).toEqual(['a!', null]);
    expect((await session()).held).toBe(before);
    for (const value of ['b', 'c', 'd']) {
      expect(await row(statements, text, [value])).toEqual([`${value}!`, null]);
    }
    expect((await session()).held).toBe(before + 1);
  });

  it('never fill a session, however many shapes are asked twice', async () => {
    const statements = namedStatements(pool, cancel, { texts: 4, perSession: 5 });
    const pids = new Set<string>();
    let most = 0;
    for (let shape = 0; shape < 40; shape += 1) {
      const text = `SELECT ${shape}::text`;
      for (let time = 0; time < 3; time += 1) {
        expect(await row(statements, text, [])).toEqual([String(shape)]);
      }
      const { pid, held } = await session();
      pids.add(pid);
      most = Math.max(most, held);
    }
    // The first session was used before.
    expect(most).toBeLessThanOrEqual(6);
    expect(pids.size).toBeGreaterThan(5);
  });

  it('forget texts, and find one that comes back where it was prepared', async () => {
    const statements = namedStatements(pool, cancel, { texts: 2, perSession: 100 });
    const before = (await session()).held;
    const ask = async (text: string) => {
      await row(statements, text, []);
      await row(statements, text, []);
    };
    await ask(`SELECT 'one'`);
    for (const other of ['two', 'three', 'four']) await ask(`SELECT '${other}'`);
    await ask(`SELECT 'one'`);
    expect((await session()).held).toBe(before + 4);
  });

  it('take a session that failed for a new one, and go on', async () => {
    const statements = namedStatements(pool, cancel, { texts: 10, perSession: 10 });
    await expect(row(statements, 'SELECT 1 / $1::int', [0])).rejects.toThrow(/division by zero/);
    expect(await row(statements, 'SELECT 1 / $1::int', [1])).toEqual(['1']);
  });
});
