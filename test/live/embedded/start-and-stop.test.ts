import { chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { silentLog } from '../../../src/kernel/log.js';
import { StartError } from '../../../src/kernel/start-error.js';
import { startEmbedded, type EmbeddedOptions, type EmbeddedPostgres } from '../../../src/store/embedded.js';
import { chooseRunAs } from '../../../src/store/embedded/run-as.js';
import { makeTestFolder, withClient } from '../../support/database.js';
import { processesIn } from '../../support/run-folder.js';
import { startServer } from './start-server.js';

const asRoot = process.getuid?.() === 0;

async function start(dataDir: string, options: Partial<EmbeddedOptions> = {}): Promise<EmbeddedPostgres> {
  const embedded = await startEmbedded({ dataDir, log: silentLog, settings: { fsync: 'off' }, ...options });
  onTestFinished(() => embedded.stop());
  return embedded;
}

async function refusal(start: Promise<unknown>): Promise<string> {
  const error = await start.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(StartError);
  const { publicMessage } = error as StartError; // Just checked.
  expect(publicMessage).not.toContain('\n');
  return publicMessage;
}

describe('startEmbedded', () => {
  it('makes a database at first, and finds what was written at the next start', async () => {
    const dataDir = makeTestFolder('warm');
    const first = await start(dataDir);
    expect(first).toMatchObject({ adopted: false, version: expect.stringMatching(/^18\./) });
    await withClient(first.connection, (client) => client.query('create table kept as select 42 as answer'));
    await first.stop();
    await first.stop();
    expect(processesIn(dataDir)).toEqual([]);

    const second = await start(dataDir);
    expect(second).toMatchObject({ adopted: false, connection: first.connection });
    const { rows } = await withClient(second.connection, (client) => client.query('table kept'));
    expect(rows).toEqual([{ answer: 42 }]);
  });

  it('keeps what durability and the adapter need', async () => {
    const embedded = await start(makeTestFolder('settings'), { settings: {} });
    const { rows } = await withClient(embedded.connection, (client) =>
      client.query(`select name, setting from pg_settings where name in
        ('fsync', 'full_page_writes', 'synchronous_commit', 'data_checksums', 'TimeZone', 'server_encoding', 'listen_addresses')`),
    );
    expect(Object.fromEntries(rows.map((row) => [row.name, row.setting]))).toEqual({
      fsync: 'on',
      full_page_writes: 'on',
      synchronous_commit: 'on',
      data_checksums: 'on',
      TimeZone: 'UTC',
      server_encoding: 'UTF8',
      listen_addresses: '',
    });
  });

  it('lets the second server join, and stops PostgreSQL with the last', async () => {
    const dataDir = makeTestFolder('shared');
    const first = await start(dataDir);
    const second = await start(dataDir);
    expect(second).toMatchObject({ adopted: true, pid: first.pid, connection: first.connection });
    await first.stop();
    await withClient(second.connection, (client) => client.query('select 1'));
    await second.stop();
    expect(processesIn(dataDir)).toEqual([]);
  });

  it('listens on loopback with a password where sockets do not work, and keeps its port', async () => {
    const dataDir = makeTestFolder('tcp');
    const first = await start(dataDir, { listen: 'tcp' });
    expect(first.connection).toMatchObject({
      host: '127.0.0.1',
      password: expect.stringMatching(/^[\w-]{32}$/),
    });
    await expect(
      withClient({ ...first.connection, password: 'guess' }, (client) => client.query('select 1')),
    ).rejects.toThrow('password');
    await first.stop();
    const second = await start(dataDir, { listen: 'tcp' });
    expect(second.connection).toEqual(first.connection);
    await withClient(second.connection, (client) => client.query('select 1'));
  });

  it('works in a folder whose path is too long for a socket', async () => {
    const dataDir = join(makeTestFolder('long'), ...Array.from({ length: 4 }, () => 'x'.repeat(60)));
    const embedded = await start(dataDir);
    expect(embedded.connection.host.length).toBeLessThan(90);
    await withClient(embedded.connection, (client) => client.query('select 1'));
  });

  it('refuses a folder that holds something else', async () => {
    const dataDir = makeTestFolder('foreign');
    writeFileSync(join(dataDir, 'thesis.txt'), 'mine');
    expect(await refusal(start(dataDir))).toBe(
      `${dataDir} holds other files (thesis.txt) and is not a data folder of Slipway. Set SLIPWAY_DATA_DIR to a new or empty folder.`,
    );
  });

  it('refuses a data folder that cannot be made', async () => {
    const folder = makeTestFolder('blocked');
    writeFileSync(join(folder, 'file'), '');
    expect(await refusal(start(join(folder, 'file', 'data')))).toContain('cannot be used (ENOTDIR)');
  });

  it('refuses the data of another PostgreSQL, and leaves it alone', async () => {
    const dataDir = makeTestFolder('newer');
    await (await start(dataDir)).stop();
    const versionFile = join(dataDir, 'postgres', 'PG_VERSION');
    writeFileSync(versionFile, '19\n');
    expect(await refusal(start(dataDir))).toContain(
      'was made by PostgreSQL 19, and this Slipway brings PostgreSQL 18',
    );
    expect(readFileSync(versionFile, 'utf8')).toBe('19\n');
  });

  it('refuses a folder in place of its cluster that is none', async () => {
    const dataDir = makeTestFolder('odd');
    await (await start(join(dataDir, 'made'))).stop();
    mkdirSync(join(dataDir, 'data'));
    writeFileSync(join(dataDir, 'data', 'slipway-data-folder'), '');
    mkdirSync(join(dataDir, 'data', 'postgres'));
    if (asRoot) chownSync(join(dataDir, 'data', 'postgres'), 65534, 65534);
    expect(await refusal(start(join(dataDir, 'data')))).toContain('has no PG_VERSION');
  });

  it('refuses data that belongs to another user', async () => {
    if (!asRoot) {
      expect(() => chooseRunAs('/')).toThrow('/ belongs to user 0 and Slipway runs as user');
      return;
    }
    expect(() => chooseRunAs('/')).toThrow('/ belongs to root, which PostgreSQL does not run as');
    const dataDir = makeTestFolder('owner');
    mkdirSync(join(dataDir, 'postgres'));
    chownSync(join(dataDir, 'postgres'), 65533, 65533);
    writeFileSync(join(dataDir, 'slipway-data-folder'), '');
    chownSync(dataDir, 65534, 65534);
    const server = startServer(dataDir, { uid: 65534, gid: 65534 });
    expect((await server.said('refused')).reason).toContain(
      'belongs to user 65533 and Slipway runs as user 65534',
    );
  });
});
