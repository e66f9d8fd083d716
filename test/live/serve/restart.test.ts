import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { SOCKET_PORT } from '../../../src/store/embedded/cluster.js';
import { makeTestFolder, withClient } from '../../support/database.js';
import { processesIn } from '../../support/run-folder.js';
import { spawnServer, startServerProcess } from '../../support/server.js';
import { waitFor } from '../../support/wait-for.js';
import { probe, refused, served } from './served.js';

/** Beside the server, over its own socket. */
const sql = (dataDir: string, text: string) =>
  withClient(
    { host: join(dataDir, 'postgres'), port: SOCKET_PORT, user: 'slipway', database: 'slipway' },
    (client) => client.query<Record<string, unknown>>(text),
  );

const keep = (dataDir: string, name: string) =>
  sql(
    dataDir,
    `insert into runtime (id, namespace, name, type) values ('${name}', 'default', '${name}', 'external')`,
  );

const kept = async (dataDir: string) =>
  (
    await sql(
      dataDir,
      `select name, (select count(*)::int from change c where c.object_id = r.id) as changes from runtime r order by name`,
    )
  ).rows;

const pidOf = async (dataDir: string) =>
  Number(
    (await sql(dataDir, `select pg_read_file('postmaster.pid') as text`)).rows[0]?.['text']
      ?.toString()
      .split('\n')[0],
  );

describe('a server with the embedded database', () => {
  let prepared: string;
  beforeAll(async () => {
    prepared = makeTestFolder('prepared');
    await (await startServerProcess({ env: { SLIPWAY_DATA_DIR: prepared } })).stop();
  });

  /** As a first start leaves it, in a tenth of the time. */
  function usedFolder(name: string): string {
    const folder = makeTestFolder(name);
    execFileSync('cp', ['-a', `${prepared}/.`, folder]);
    return folder;
  }

  it('starts in an empty folder, and again with what it held', async () => {
    const dataDir = join(makeTestFolder('again'), 'not', 'there', 'yet');
    const env = { SLIPWAY_DATA_DIR: dataDir };
    const first = await served({ env });
    expect(first.output.stdout).toContain('PostgreSQL 18.');
    await keep(dataDir, 'a');
    expect(await first.stop()).toEqual({ code: 0, signal: null });
    expect(processesIn(dataDir)).toEqual([]);

    const second = await served({ env });
    expect(await kept(dataDir)).toEqual([{ name: 'a', changes: 1 }]);
    expect(await probe(second, '/readyz')).toBe('200 ready');
    expect(await second.stop()).toEqual({ code: 0, signal: null });
    expect(processesIn(dataDir)).toEqual([]);
  });

  it('starts after kill -9 on the database that lived on, and ends it with itself', async () => {
    const dataDir = usedFolder('orphan');
    const env = { SLIPWAY_DATA_DIR: dataDir };
    const killed = await served({ env });
    const postgres = await pidOf(dataDir);
    await keep(dataDir, 'a');
    killed.kill('SIGKILL');
    await killed.exited;
    await keep(dataDir, 'b');

    const next = await served({ env: { ...env, SLIPWAY_PORT: String(killed.port) } });
    expect(await pidOf(dataDir)).toBe(postgres);
    expect(await kept(dataDir)).toEqual([
      { name: 'a', changes: 1 },
      { name: 'b', changes: 1 },
    ]);
    expect(await next.stop()).toMatchObject({ code: 0 });
    expect(processesIn(dataDir)).toEqual([]);
  });

  it('starts after kill -9 of itself and of the database', async () => {
    const dataDir = usedFolder('both');
    const env = { SLIPWAY_DATA_DIR: dataDir };
    const killed = await served({ env });
    await keep(dataDir, 'a');
    const postgres = await pidOf(dataDir);
    killed.kill('SIGKILL');
    process.kill(postgres, 'SIGKILL');
    await killed.exited;
    const next = await served({ env });
    expect(await kept(dataDir)).toEqual([{ name: 'a', changes: 1 }]);
    expect(await next.stop()).toMatchObject({ code: 0 });
  });

  it('shares its folder with a second one, and the last one ends the database', async () => {
    const dataDir = usedFolder('two');
    const env = { SLIPWAY_DATA_DIR: dataDir };
    const [one, other] = await Promise.all([served({ env }), served({ env })]);
    await keep(dataDir, 'a');
    expect(await one.stop()).toMatchObject({ code: 0 });
    expect(await probe(other, '/readyz')).toBe('200 ready');
    expect(await kept(dataDir)).toHaveLength(1);
    expect(await other.stop()).toMatchObject({ code: 0 });
    expect(processesIn(dataDir)).toEqual([]);
  });

  it('is not disturbed by a second one that finds its port taken', async () => {
    const dataDir = usedFolder('twice');
    const env = { SLIPWAY_DATA_DIR: dataDir };
    const first = await served({ env });
    const second = await refused({ env: { ...env, SLIPWAY_PORT: String(first.port) } });
    expect(second.message).toContain('another program has this port');
    expect(await probe(first, '/readyz')).toBe('200 ready');
    expect(await first.stop()).toMatchObject({ code: 0 });
    expect(processesIn(dataDir)).toEqual([]);
  });

  it('ends in order after a Ctrl-C in its terminal', async () => {
    const dataDir = usedFolder('ctrl-c');
    const server = await served({ env: { SLIPWAY_DATA_DIR: dataDir }, ownGroup: true });
    // A terminal sends it to all of the group.
    process.kill(-server.pid, 'SIGINT');
    expect(await server.exited).toEqual({ code: 0, signal: null });
    expect(processesIn(dataDir)).toEqual([]);
  });

  it('leaves nothing behind after a Ctrl-C in its first start', async () => {
    const dataDir = makeTestFolder('early');
    const { child, exited, output } = spawnServer({ env: { SLIPWAY_DATA_DIR: dataDir }, ownGroup: true });
    onTestFinished(() => void child.kill('SIGKILL'));
    await waitFor(
      () => existsSync(join(dataDir, 'postgres', 'postmaster.pid')),
      'PostgreSQL is being started',
    );
    process.kill(-(child.pid ?? 0), 'SIGINT');
    expect(await exited).toEqual({ code: 0, signal: null });
    expect(output.stdout).toBe('');
    expect(processesIn(dataDir)).toEqual([]);
    expect(readdirSync(join(dataDir, 'servers'))).toEqual([]);
  });

  it('lives on when its database is killed, not ready while it is away', async () => {
    const dataDir = usedFolder('revive');
    const server = await served({ env: { SLIPWAY_DATA_DIR: dataDir } });
    await keep(dataDir, 'a');
    const postgres = await pidOf(dataDir);
    process.kill(postgres, 'SIGKILL');
    await waitFor(async () => (await probe(server, '/readyz')).startsWith('503'), 'it is not ready');
    expect(await probe(server, '/livez')).toBe('200 live');
    await waitFor(async () => (await probe(server, '/readyz')) === '200 ready', 'it is ready again', 20_000);
    expect(await pidOf(dataDir)).not.toBe(postgres);
    expect(await kept(dataDir)).toEqual([{ name: 'a', changes: 1 }]);
    expect(await server.stop()).toMatchObject({ code: 0 });
    expect(processesIn(dataDir)).toEqual([]);
  });
});
