import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

import { lanesOf } from '../../../src/store/lanes.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

async function withPool<T>(max: number, use: (pool: pg.Pool) => Promise<T>): Promise<T> {
  const pool = new pg.Pool({ ...database.connection, max });
  try {
    return await use(pool);
  } finally {
    await pool.end();
  }
}

/** Far more than it takes. */
const ROUNDS_MAX = 5_000;
const pid = { name: 'pid', text: 'SELECT pg_backend_pid() AS pid' };

describe('lanes', () => {
  it('give what the driver gives, whatever the values are', () =>
    withPool(2, async (pool) => {
      const lanes = lanesOf(pool);
      const text = fc.string({ unit: 'binary' }).map((some) => some.replaceAll(/[\0\p{Cs}]/gu, '?'));
      const row = fc.tuple(
        fc.option(text),
        fc.option(fc.array(fc.option(text))),
        fc.option(fc.integer({ min: -2_147_483_648, max: 2_147_483_647 })),
        fc.option(fc.boolean()),
        fc.option(fc.date({ min: new Date(0), max: new Date('9999-01-01'), noInvalidDate: true })),
        fc.option(fc.jsonValue().map((value) => JSON.stringify(value).replaceAll('\\u0000', ''))),
      );
      const statement = {
        name: 'values',
        text: 'SELECT $1::text AS a, $2::text[] AS "B b", $3::int AS c, $4::boolean AS d, $5::timestamptz AS e, $6::jsonb AS f',
      };
      await fc.assert(
        fc.asyncProperty(row, async (values) => {
          const expected = await pool.query<pg.QueryResultRow>({ ...statement, values });
          const found = await lanes.query({ ...statement, values });
          expect(found).toStrictEqual({ rows: expected.rows, rowCount: expected.rowCount });
        }),
        { numRuns: 100 },
      );
    }));

  it('count rows that are written, and tell of none', () =>
    withPool(1, async (pool) => {
      const lanes = lanesOf(pool);
      await lanes.query({ text: 'CREATE TEMP TABLE own (id int PRIMARY KEY)' });
      const insert = { name: 'own', text: 'INSERT INTO own SELECT generate_series($1::int, $2::int)' };
      expect(await lanes.query({ ...insert, values: [1, 3] })).toEqual({ rows: [], rowCount: 3 });
      expect(await lanes.query({ ...insert, values: [4, 3] })).toEqual({ rows: [], rowCount: 0 });
    }));

  it('run as many at once as the pool has sessions, and the others after them', () =>
    withPool(3, async (pool) => {
      const lanes = lanesOf(pool);
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, n) =>
          lanes.query({ name: 'n', text: 'SELECT $1::int AS n', values: [n] }),
        ),
      );
      expect(answers.map(({ rows }) => rows[0]?.['n'])).toEqual(Array.from({ length: 50 }, (_, n) => n));
      expect(pool.totalCount).toBeLessThanOrEqual(3);
    }));

  it('let those come in between who want a session of the pool', () =>
    withPool(2, async (pool) => {
      const lanes = lanesOf(pool);
      const lent: pg.PoolClient[] = [];
      const crowd = Array.from({ length: 8 }, async () => {
        let rounds = 0;
        while (rounds < ROUNDS_MAX && lent.length < 20) {
          await lanes.query(pid);
          rounds += 1;
        }
        return rounds;
      });
      while (lent.length < 20) {
        const session = await pool.connect();
        session.release();
        lent.push(session);
      }
      const rounds = await Promise.all(crowd);
      expect(Math.max(...rounds)).toBeLessThan(ROUNDS_MAX);
    }));

  it('give sessions back when nobody needs them', () =>
    withPool(4, async (pool) => {
      const lanes = lanesOf(pool);
      await Promise.all(Array.from({ length: 4 }, () => lanes.query(pid)));
      await vi.waitFor(() => expect(pool.idleCount).toBe(pool.totalCount));
    }));

  it('fail those that waited too long, and no others', () =>
    withPool(1, async (pool) => {
      const lanes = lanesOf(pool, 30);
      const held = await pool.connect();
      await expect(lanes.query(pid)).rejects.toThrow('waiting for a database session');
      const later = lanes.query(pid);
      held.release();
      expect((await later).rowCount).toBe(1);
    }));

  it('tell of a refusal as the driver does, and take another session', () =>
    withPool(1, async (pool) => {
      const lanes = lanesOf(pool);
      const divide = (by: number) =>
        lanes.query({ name: 'divide', text: 'SELECT 1 / $1::int', values: [by] });
      const before = (await lanes.query(pid)).rows[0]?.['pid'];
      await expect(divide(0)).rejects.toMatchObject({ code: '22012' });
      expect((await divide(1)).rowCount).toBe(1);
      expect((await lanes.query(pid)).rows[0]?.['pid']).not.toBe(before);
      await expect(lanes.query({ name: 'wrong', text: 'SELEC' })).rejects.toMatchObject({ code: '42601' });
      await expect(lanes.query({ ...pid, values: [Symbol('no text')] })).rejects.toThrow('has no text');
      expect((await lanes.query(pid)).rowCount).toBe(1);
      await expect(lanes.query({ ...pid, text: 'SELECT 2' })).rejects.toThrow('another prepared statement');
      expect((await lanes.query(pid)).rowCount).toBe(1);
    }));

  it('fail what runs on a session that ends, and go on with another', () =>
    withPool(2, async (pool) => {
      pool.on('error', () => undefined);
      const lanes = lanesOf(pool);
      const killer = new pg.Client(database.connection);
      await killer.connect();
      const asleep = lanes.query({ text: "SELECT pg_sleep(60), 'asleep'" });
      const ended = expect(asleep).rejects.toThrow();
      await vi.waitFor(async () => {
        const { rowCount } = await killer.query(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%''asleep''%' AND pid <> pg_backend_pid() AND state = 'active'",
        );
        expect(rowCount).toBe(1);
      });
      await ended;
      expect((await lanes.query(pid)).rowCount).toBe(1);
      await killer.end();
    }));

  it('fail when no session can be had at all', async () => {
    const pool = new pg.Pool({ ...database.connection, database: 'there_is_none', max: 2 });
    const lanes = lanesOf(pool);
    const all = await Promise.allSettled(Array.from({ length: 6 }, () => lanes.query(pid)));
    expect(all.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 'rejected'));
    await pool.end();
  });
});
