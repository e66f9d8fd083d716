import { createHash } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLog } from '../../../src/kernel/log.js';
import { StartError } from '../../../src/kernel/start-error.js';
import { startEmbedded } from '../../../src/store/embedded.js';
import { migrate } from '../../../src/store/migrate.js';
import { makePool } from '../../../src/store/pool.js';
import {
  createEmptyDatabase,
  debianPostgres,
  makeTestFolder,
  withClient,
  type TestDatabase,
} from '../../support/database.js';

const FIRST = '20260101000000_first';
const SECOND = '20260102000000_second';
const FIRST_SQL = 'create table ship (id int primary key);\ninsert into ship values (1);\n';
const SECOND_SQL = `create function twice(n int) returns int language plpgsql as $$ begin return n * 2; end $$;\n`;

describe('migrate', () => {
  let database: TestDatabase;
  let directory: string;

  const write = (name: string, sql: string): void => {
    mkdirSync(join(directory, name), { recursive: true });
    writeFileSync(join(directory, name, 'migration.sql'), sql);
  };
  const run = (): Promise<{ applied: string[] }> =>
    withClient(database.connection, (client) => migrate(client, { directory }));
  const query = (sql: string): Promise<pg.QueryResult> =>
    withClient(database.connection, (client) => client.query(sql));
  const refusal = async (running: Promise<unknown> = run()): Promise<string> => {
    const error = await running.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(StartError);
    const { publicMessage } = error as StartError; // Just checked.
    expect(publicMessage).not.toContain('\n');
    return publicMessage;
  };

  beforeEach(async () => {
    database = await createEmptyDatabase();
    directory = makeTestFolder('migrations');
    writeFileSync(join(directory, 'migration_lock.toml'), 'provider = "postgresql"\n');
    write(FIRST, FIRST_SQL);
  });
  afterEach(() => database.drop());

  it('applies what is missing, in order, and writes what Prisma would', async () => {
    write(SECOND, SECOND_SQL);
    expect(await run()).toEqual({ applied: [FIRST, SECOND] });
    expect(await run()).toEqual({ applied: [] });
    const { rows } = await query('select * from _prisma_migrations order by migration_name');
    expect(rows).toEqual([
      {
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        checksum: createHash('sha256').update(FIRST_SQL).digest('hex'),
        finished_at: expect.any(Date),
        migration_name: FIRST,
        logs: null,
        rolled_back_at: null,
        started_at: expect.any(Date),
        applied_steps_count: 1,
      },
      expect.objectContaining({ migration_name: SECOND }),
    ]);
  });

  it('applies each migration once, however many processes start', async () => {
    write(SECOND, SECOND_SQL);
    const pools = [1, 2, 3, 4].map(() =>
      makePool({
        database: { connection: database.connection },
        size: 2,
        applicationName: 'migrate-test',
        log: silentLog,
      }),
    );
    const results = await Promise.all(pools.map((pool) => migrate(pool, { directory })));
    expect(results.flatMap(({ applied }) => applied)).toEqual([FIRST, SECOND]);
    for (const pool of pools) {
      expect(pool.totalCount).toBe(0);
      await pool.end();
    }
    expect((await query('select * from ship')).rows).toHaveLength(1);
  });

  it('leaves nothing of a migration that fails, and applies it once it is repaired', async () => {
    write(SECOND, 'create table crew (id int); select 1 / 0;');
    expect(await refusal()).toBe(`The migration ${SECOND} failed and was rolled back: division by zero.`);
    expect((await query(`select to_regclass('crew') as crew`)).rows).toEqual([{ crew: null }]);
    write(SECOND, 'create table crew (id int);');
    expect(await run()).toEqual({ applied: [SECOND] });
  });

  it('refuses a migration that ends its transaction', async () => {
    write(SECOND, 'create table crew (id int); commit; select 1;');
    expect(await refusal()).toContain('it ends the transaction that it runs in');
  });

  it('refuses a migration that was changed since, but not for its line ends', async () => {
    await run();
    write(FIRST, FIRST_SQL.replaceAll('\n', '\r\n'));
    expect(await run()).toEqual({ applied: [] });
    write(FIRST, `${FIRST_SQL}-- later\n`);
    expect(await refusal()).toContain(`The migration ${FIRST} was changed after it was applied`);
  });

  it('refuses a database of a newer build', async () => {
    write(SECOND, SECOND_SQL);
    await run();
    rmSync(join(directory, SECOND), { recursive: true });
    expect(await refusal()).toContain(`has the migration ${SECOND}, which this Slipway does not know`);
  });

  it('refuses a database where Prisma left a migration unfinished', async () => {
    await run();
    await query('update _prisma_migrations set finished_at = null');
    expect(await refusal()).toContain(`${FIRST} was started on this database and never finished`);
    await query('update _prisma_migrations set rolled_back_at = now(); drop table ship');
    expect(await run()).toEqual({ applied: [FIRST] });
  });

  it('refuses a database of something else', async () => {
    await query('create table invoices (id int)');
    expect(await refusal()).toBe(
      'This database holds tables of something else (public.invoices) and was never migrated by Slipway. Set DATABASE_URL to a database of its own.',
    );
    expect((await query(`select to_regclass('_prisma_migrations') as made`)).rows).toEqual([{ made: null }]);
  });

  it('takes a database in which an operator only made extensions', async () => {
    await query('create extension pg_stat_statements');
    expect(await run()).toEqual({ applied: [FIRST] });
  });

  it('refuses a standby', async () => {
    const dataDir = makeTestFolder('standby');
    const options = { dataDir, log: silentLog, settings: { fsync: 'off' } };
    await (await startEmbedded(options)).stop();
    writeFileSync(join(dataDir, 'postgres', 'standby.signal'), '');
    const standby = await startEmbedded(options);
    expect(await refusal(withClient(standby.connection, (client) => migrate(client, { directory })))).toBe(
      'This PostgreSQL is a standby, which takes no writes. Set DATABASE_URL to the primary.',
    );
    await standby.stop();
  });

  it('refuses an installation without the text of a migration', async () => {
    mkdirSync(join(directory, SECOND));
    expect(await refusal()).toContain(`${SECOND} in ${directory} has no migration.sql`);
  });

  it('gives the lock and the session back', async () => {
    await withClient(database.connection, async (client) => {
      await migrate(client, { directory });
      const { rows } = await client.query(
        `select count(*)::int as held from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()`,
      );
      expect(rows).toEqual([{ held: 0 }]);
    });
  });

  it('runs on PostgreSQL 15', async () => {
    const server = await debianPostgres();
    if (server === undefined) return;
    write(SECOND, SECOND_SQL);
    expect(await withClient(server.connection, (client) => migrate(client, { directory }))).toEqual({
      applied: [FIRST, SECOND],
    });
    await server.stop();
  });
});
