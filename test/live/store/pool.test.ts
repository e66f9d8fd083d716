import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { silentLog } from '../../../src/kernel/log.js';
import { startEmbedded } from '../../../src/store/embedded.js';
import { makePool, type PoolOptions } from '../../../src/store/pool.js';
import {
  createEmptyDatabase,
  externalPostgres,
  makeTestFolder,
  withClient,
  type TestDatabase,
} from '../../support/database.js';

function pool(options: Partial<PoolOptions> & Pick<PoolOptions, 'database'>): pg.Pool {
  const made = makePool({ size: 3, applicationName: 'slipway test', log: silentLog, ...options });
  onTestFinished(() => made.end());
  return made;
}

describe('makePool', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createEmptyDatabase();
    await withClient(database.connection, (client) =>
      client.query(`alter database ${database.name} set timezone = 'Asia/Kolkata'`),
    );
  });
  afterAll(() => database.drop());

  const SESSION = `select current_setting('timezone') as zone, current_setting('statement_timeout') as timeout,
                          current_setting('application_name') as name, current_user::text as role`;

  it('makes sessions in UTC with a time limit, whatever the database says', async () => {
    const { rows } = await pool({ database: { connection: database.connection } }).query(SESSION);
    expect(rows).toEqual([{ zone: 'UTC', timeout: '1min', name: 'slipway test', role: 'slipway' }]);
  });

  it('gives a statement longer than a request has', async () => {
    const patient = pool({ database: { connection: database.connection }, requestMs: 90_500 });
    const { rows } = await patient.query(SESSION);
    expect(rows).toEqual([expect.objectContaining({ timeout: '95500ms' })]);
  });

  it('enters a role', async () => {
    const role = `reader "${database.name}" \\x`;
    const quoted = pg.escapeIdentifier(role);
    await withClient(database.connection, (client) => client.query(`create role ${quoted} nologin`));
    const { rows } = await pool({ database: { connection: database.connection }, role }).query(SESSION);
    expect(rows).toEqual([expect.objectContaining({ role })]);
    await withClient(database.connection, (client) => client.query(`drop role ${quoted}`));
  });

  it('keeps the options of a URL, and wins over them', async () => {
    const url = `${database.url}${database.url.includes('?') ? '&' : '?'}options=-c%20timezone%3DJapan%20-c%20work_mem%3D3MB`;
    const { rows } = await pool({ database: { url } }).query(
      `select current_setting('timezone') as zone, current_setting('work_mem') as memory`,
    );
    expect(rows).toEqual([{ zone: 'UTC', memory: '3MB' }]);
  });

  it('outlives the end of a session that is lent out, and fails what is asked of it next', async () => {
    const sessions = pool({ database: { connection: database.connection } });
    const lent = await sessions.connect();
    const { rows } = await lent.query<{ pid: number }>('select pg_backend_pid() as pid');
    const ended = new Promise((resolve) => {
      lent.once('end', resolve);
    });
    // Between two statements nobody waits for an answer: the error has nowhere to go, and would end the process.
    await withClient(database.connection, (client) =>
      client.query('select pg_terminate_backend($1)', [rows[0]?.pid]),
    );
    await ended;
    await expect(lent.query('select 1')).rejects.toThrow();
    lent.release(true);
    expect((await sessions.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });

  it('reaches a server over TCP by its URL', async () => {
    const external = await (await externalPostgres()).createEmptyDatabase();
    const { rows } = await makeAndEnd(external.url);
    expect(rows).toEqual([expect.objectContaining({ zone: 'UTC' })]);
    await external.drop();
  });

  async function makeAndEnd(url: string): Promise<pg.QueryResult> {
    const made = makePool({ database: { url }, size: 2, applicationName: 'slipway test', log: silentLog });
    try {
      return await made.query(SESSION);
    } finally {
      await made.end();
    }
  }

  it('fails a request that gets no session, instead of holding it', async () => {
    const full = pool({ database: { connection: database.connection }, size: 1 });
    const held = await full.connect();
    await expect(full.query('select 1')).rejects.toThrow('timeout');
    held.release();
  }, 10_000);

  it('drops sessions that PostgreSQL ended, and connects again', async () => {
    const warn = vi.fn();
    const used = pool({ database: { connection: database.connection }, log: { ...silentLog, warn } });
    await Promise.all([used.query('select pg_sleep(0.01)'), used.query('select pg_sleep(0.01)')]);
    expect(used.idleCount).toBe(2);
    await withClient({ ...database.connection, database: 'postgres' }, (client) =>
      client.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and application_name = 'slipway test'`,
        [database.name],
      ),
    );
    await vi.waitFor(() => expect(used.totalCount).toBe(0));
    expect(warn).toHaveBeenCalledTimes(2);
    expect((await used.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });

  it('works on after the embedded PostgreSQL was killed and started again', async () => {
    const embedded = await startEmbedded({
      dataDir: makeTestFolder('restart'),
      log: silentLog,
      settings: { fsync: 'off' },
    });
    const used = makePool({
      database: { connection: embedded.connection },
      size: 2,
      applicationName: 'slipway test',
      log: silentLog,
    });
    await used.query('select 1');
    const first = embedded.pid;
    process.kill(first, 'SIGKILL');
    await vi.waitFor(() => expect(embedded.pid).not.toBe(first), { timeout: 20_000 });
    await vi.waitFor(async () => expect((await used.query('select 1 as one')).rows).toEqual([{ one: 1 }]), {
      timeout: 20_000,
    });
    await used.end();
    await embedded.stop();
  });
});
