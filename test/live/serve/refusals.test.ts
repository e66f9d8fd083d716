import { once } from 'node:events';
import { chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { silentLog } from '../../../src/kernel/log.js';
import { startEmbedded } from '../../../src/store/embedded.js';
import { chooseRunAs } from '../../../src/store/embedded/run-as.js';
import {
  createDatabase,
  createEmptyDatabase,
  makeTestFolder,
  withClient,
  type TestDatabase,
} from '../../support/database.js';
import { processesIn } from '../../support/run-folder.js';
import { refused } from './served.js';

async function emptyDatabase(): Promise<TestDatabase> {
  const database = await createEmptyDatabase();
  onTestFinished(() => database.drop());
  return database;
}

async function migratedDatabase(): Promise<TestDatabase> {
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  return database;
}

const execute = (database: TestDatabase, sql: string) =>
  withClient(database.connection, (client) => client.query(sql));

/** Where a refused start must not have got to. */
const untouched = () => join(makeTestFolder('untouched'), 'data');

describe('a configuration that is not right', () => {
  it('is refused with the variable, what it must be and the default', async () => {
    const { message } = await refused({ env: { SLIPWAY_PORT: '99999', SLIPWAY_DATA_DIR: untouched() } });
    expect(message).toBe(
      'SLIPWAY_PORT must be a whole number from 0 to 65535: "99999" is not. Default: 4000.',
    );
  });

  it('is refused with the variable that was mistyped, and the one that was meant', async () => {
    const { message } = await refused({ env: { SLIPWAY_PROT: '4000', SLIPWAY_DATA_DIR: untouched() } });
    expect(message).toBe('SLIPWAY_PROT is not a setting of Slipway. Did you mean SLIPWAY_PORT?');
  });

  it('is refused without repeating a secret', async () => {
    const { message, output } = await refused({ databaseUrl: 'mysql://root:hunter2@localhost/slipway' });
    expect(message).toContain('DATABASE_URL must be a URL `postgresql://');
    expect(output).not.toContain('hunter2');
  });
});

describe('an address that cannot be listened on', () => {
  it('is named when another program has the port', async () => {
    const database = await migratedDatabase();
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    onTestFinished(() => void other.close());
    const { port } = other.address() as AddressInfo; // it listens on TCP
    const { message } = await refused({ databaseUrl: database.url, env: { SLIPWAY_PORT: String(port) } });
    expect(message).toBe(
      `Cannot listen on 127.0.0.1:${port}: another program has this port. Set SLIPWAY_PORT, or stop the other one.`,
    );
  });

  it('is named when this machine does not have it, or no name server knows it', async () => {
    const database = await migratedDatabase();
    const env = { SLIPWAY_BOOTSTRAP_TOKEN: `slp_${'a'.repeat(40)}` };
    const elsewhere = await refused({
      databaseUrl: database.url,
      env: { ...env, SLIPWAY_HOST: '192.0.2.1' },
    });
    expect(elsewhere.message).toBe(
      'Cannot listen on 192.0.2.1:0: this machine has no such address. Set SLIPWAY_HOST.',
    );
    const nowhere = await refused({
      databaseUrl: database.url,
      env: { ...env, SLIPWAY_HOST: 'nowhere.invalid' },
    });
    // Without any name server the answer is that it cannot be asked.
    expect(nowhere.message).toMatch(
      /^Cannot listen on nowhere\.invalid:0: this host name (is not known|cannot be looked up) here\. Set SLIPWAY_HOST\.$/,
    );
  });
});

describe('a server that others could reach', () => {
  it('does not start without access control', async () => {
    const database = await migratedDatabase();
    const { message } = await refused({ databaseUrl: database.url, env: { SLIPWAY_HOST: '0.0.0.0' } });
    expect(message).toContain('SLIPWAY_HOST is 0.0.0.0');
    expect(message).toContain('there is no ADMIN token. Set SLIPWAY_BOOTSTRAP_TOKEN');
    const off = await refused({
      databaseUrl: database.url,
      env: { SLIPWAY_HOST: '0.0.0.0', SLIPWAY_AUTH: 'none' },
    });
    expect(off.message).toContain('SLIPWAY_AUTH must not be `none` while SLIPWAY_HOST is 0.0.0.0');
  });
});

describe('a data folder that is not ours to use', () => {
  it('is refused when it holds something else', async () => {
    const dataDir = makeTestFolder('thesis');
    writeFileSync(join(dataDir, 'thesis.txt'), 'mine');
    const { message } = await refused({ env: { SLIPWAY_DATA_DIR: dataDir } });
    expect(message).toBe(
      `${dataDir} holds other files (thesis.txt) and is not a data folder of Slipway. Set SLIPWAY_DATA_DIR to a new or empty folder.`,
    );
  });

  it('is refused when a newer PostgreSQL made it', async () => {
    const dataDir = makeTestFolder('newer');
    writeFileSync(join(dataDir, 'slipway-data-folder'), '');
    const postgres = join(dataDir, 'postgres');
    mkdirSync(postgres);
    writeFileSync(join(postgres, 'PG_VERSION'), '19\n');
    const runAs = chooseRunAs(join(dataDir, 'absent'));
    if (runAs !== undefined) chownSync(postgres, runAs.uid, runAs.gid);
    const { message } = await refused({ env: { SLIPWAY_DATA_DIR: dataDir } });
    expect(message).toMatch(
      /was made by PostgreSQL 19, and this Slipway brings PostgreSQL 18\. Start the Slipway that made it/,
    );
  });

  it('is refused when it cannot be written to', async () => {
    const folder = makeTestFolder('file');
    writeFileSync(join(folder, 'data'), '');
    const { message } = await refused({ env: { SLIPWAY_DATA_DIR: join(folder, 'data') } });
    expect(message).toBe(
      `The data folder ${join(folder, 'data')} cannot be used (EEXIST). Set SLIPWAY_DATA_DIR to a folder that this user can write to.`,
    );
  });
});

describe('a database that cannot be used', () => {
  it('is refused when nothing answers there', async () => {
    const { message, output } = await refused({
      databaseUrl: 'postgresql://someone:hunter2@127.0.0.1:1/slipway',
    });
    expect(message).toBe(
      'The database cannot be reached (ECONNREFUSED): check DATABASE_URL, and that PostgreSQL runs and admits this user.',
    );
    expect(output).not.toContain('hunter2');
  });

  it('is refused when it does not exist, or does not admit the user', async () => {
    const database = await emptyDatabase();
    const missing = await refused({ databaseUrl: database.url.replace(database.name, 'no_such_database') });
    expect(missing.message).toContain('The database cannot be reached (3D000)');
    const stranger = await refused({ databaseUrl: database.url.replace('//slipway', '//no_such_user') });
    expect(stranger.message).toContain('The database cannot be reached (28000)');
  });

  it('is refused when it belongs to something else', async () => {
    const database = await emptyDatabase();
    await execute(database, 'create table customers (id int)');
    const { message } = await refused({ databaseUrl: database.url });
    expect(message).toBe(
      'This database holds tables of something else (public.customers) and was never migrated by Slipway. Set DATABASE_URL to a database of its own.',
    );
  });

  it('is refused when an applied migration was changed since', async () => {
    const database = await migratedDatabase();
    await execute(database, `update _prisma_migrations set checksum = repeat('0', 64)`);
    const { message } = await refused({ databaseUrl: database.url });
    expect(message).toMatch(/^The migration \d+_\w+ was changed after it was applied to this database\. /);
  });

  it('is refused when a newer Slipway has migrated it', async () => {
    const database = await migratedDatabase();
    await execute(
      database,
      `insert into _prisma_migrations (id, checksum, migration_name, finished_at, applied_steps_count)
       values ('x', repeat('0', 64), '99991231000000_from_the_future', now(), 1)`,
    );
    const { message } = await refused({ databaseUrl: database.url });
    expect(message).toContain(
      'This database has the migration 99991231000000_from_the_future, which this Slipway does not know',
    );
  });

  it('is refused when it is a standby', async () => {
    const dataDir = makeTestFolder('standby');
    const primary = await startEmbedded({ dataDir, log: silentLog, settings: { fsync: 'off' } });
    await primary.stop();
    const signal = join(dataDir, 'postgres', 'standby.signal');
    writeFileSync(signal, '');
    const { message } = await refused({ env: { SLIPWAY_DATA_DIR: dataDir } });
    expect(message).toBe(
      'This PostgreSQL is a standby, which takes no writes. Set DATABASE_URL to the primary.',
    );
    expect(processesIn(dataDir)).toEqual([]);
  });
});
