import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { silentLog } from '../../../src/kernel/log.js';
import { READS_AT_ONCE, ReadsEnded, readTurns, type ReadTurns } from '../../../src/kernel/read-turns.js';
import { namedStatements, type NamedStatements } from '../../../src/store/named-statements.js';
import { cancelStatements } from '../../../src/store/session.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { waitFor } from '../../support/wait-for.js';

let database: TestDatabase;
let pool: pg.Pool;
let statements: NamedStatements;
beforeAll(async () => {
  database = await createDatabase();
  pool = new pg.Pool({ ...database.connection, max: 2 * READS_AT_ONCE });
  statements = namedStatements(pool, cancelStatements(pool, silentLog));
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const sleep = (turns: ReadTurns, mark: string) =>
  statements.row({ text: `SELECT pg_sleep(600)::text, '${mark}'`, values: [], prepare: false }, turns);

/** How many statements with the mark PostgreSQL is at. */
async function at(mark: string): Promise<number> {
  const { rows } = await pool.query<{ count: string }>(
    `SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND query LIKE $1`,
    [`SELECT pg_sleep(600)::text, '${mark}'%`],
  );
  return Number(rows[0]?.count);
}

describe('the reads of one operation', () => {
  it('are a few at a time, and leave sessions to others', async () => {
    const greedy = readTurns();
    const asked = Array.from({ length: 30 }, () => sleep(greedy, 'greedy').catch((error: unknown) => error));
    await waitFor(async () => (await at('greedy')) === READS_AT_ONCE, 'its share is taken');
    const other = readTurns();
    for (let time = 0; time < 20; time += 1) {
      expect(await statements.row({ text: `SELECT 'here'`, values: [], prepare: true }, other)).toEqual([
        'here',
      ]);
    }
    expect(await at('greedy')).toBe(READS_AT_ONCE);
    greedy.end();
    await Promise.all(asked);
  });

  it('end with it: what runs is cancelled, what waits is not asked', async () => {
    const turns = readTurns();
    const asked = Array.from({ length: 10 }, () => sleep(turns, 'ended').catch((error: unknown) => error));
    await waitFor(async () => (await at('ended')) === READS_AT_ONCE, 'its share is taken');
    turns.end();
    const outcomes = await Promise.all(asked);
    const cancelled = outcomes.filter((error) => (error as { code?: string }).code === '57014');
    const refused = outcomes.filter((error) => error instanceof ReadsEnded);
    expect([cancelled.length, refused.length]).toEqual([READS_AT_ONCE, 10 - READS_AT_ONCE]);
    expect(await at('ended')).toBe(0);
    await expect(sleep(turns, 'ended')).rejects.toBeInstanceOf(ReadsEnded);
  });

  it('hand on the place of one that failed', async () => {
    const turns = readTurns();
    const fail = () => statements.row({ text: 'SELECT (1 / 0)::text', values: [], prepare: false }, turns);
    const outcomes = await Promise.allSettled(Array.from({ length: 12 }, fail));
    expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true);
    expect(await statements.row({ text: `SELECT 'on'`, values: [], prepare: false }, turns)).toEqual(['on']);
  });
});
