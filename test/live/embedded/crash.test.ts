import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { silentLog } from '../../../src/kernel/log.js';
import { startEmbedded } from '../../../src/store/embedded.js';
import { makeTestFolder, withClient } from '../../support/database.js';
import { processesIn } from '../../support/run-folder.js';
import { startServer, type ServerProcess } from './start-server.js';

const start = (dataDir: string) => startEmbedded({ dataDir, log: silentLog, settings: { fsync: 'off' } });

function server(dataDir: string): ServerProcess {
  const started = startServer(dataDir);
  onTestFinished(async () => {
    try {
      started.kill('SIGKILL');
    } catch {
      // It has ended.
    }
    await started.ended;
  });
  return started;
}

const gone = (pid: number) =>
  vi.waitFor(() => expect(existsSync(`/proc/${pid}`)).toBe(false), { timeout: 10_000 });

describe('the embedded PostgreSQL', () => {
  it('outlives a killed server, and the next one joins it and stops it', async () => {
    const dataDir = makeTestFolder('adopt');
    const killed = server(dataDir);
    const { pid } = await killed.said('ready');
    killed.kill('SIGKILL');
    await killed.ended;

    const next = await start(dataDir);
    expect(next).toMatchObject({ adopted: true, pid });
    expect(readdirSync(join(dataDir, 'servers'))).toHaveLength(1);
    await next.stop();
    expect(processesIn(dataDir)).toEqual([]);
  });

  it('starts after it and its server were both killed, with what was committed', async () => {
    const dataDir = makeTestFolder('both');
    const killed = server(dataDir);
    const { pid, connection } = await killed.said('ready');
    await withClient(connection, (client) => client.query('create table kept as select 7 as answer'));
    killed.kill('SIGKILL');
    process.kill(pid, 'SIGKILL');
    await killed.ended;

    const next = await start(dataDir);
    expect(next.adopted).toBe(false);
    const { rows } = await withClient(next.connection, (client) => client.query('table kept'));
    expect(rows).toEqual([{ answer: 7 }]);
    await next.stop();
  });

  it('starts while busy sessions of a killed one still hold its memory', async () => {
    const dataDir = makeTestFolder('orphans');
    const killed = server(dataDir);
    const { pid, connection } = await killed.said('ready');
    const busy = withClient(connection, (client) => {
      client.on('error', () => undefined);
      return client.query(`do $$ begin perform count(*) from generate_series(1, 6000000); end $$`);
    }).catch(() => undefined);
    await vi.waitFor(async () => {
      const { rows } = await withClient(connection, (client) =>
        client.query(`select 1 from pg_stat_activity where state = 'active' and query like 'do %'`),
      );
      expect(rows).toHaveLength(1);
    });
    killed.kill('SIGKILL');
    process.kill(pid, 'SIGKILL');
    const next = await start(dataDir);
    expect(next.adopted).toBe(false);
    await next.stop();
    await busy;
  });

  it('is started again by its server when it is killed', async () => {
    const dataDir = makeTestFolder('revive');
    const embedded = await start(dataDir);
    const first = embedded.pid;
    process.kill(first, 'SIGKILL');
    await vi.waitFor(() => expect(embedded.pid).not.toBe(first), { timeout: 20_000 });
    await withClient(embedded.connection, (client) => client.query('select 1'));
    await embedded.stop();
    expect(processesIn(dataDir)).toEqual([]);
  });

  it('starts over a stale pid file whose number now is another process', async () => {
    const dataDir = makeTestFolder('reused');
    const embedded = await start(dataDir);
    const pidFile = join(dataDir, 'postgres', 'postmaster.pid');
    const [, ...rest] = readFileSync(pidFile, 'utf8').split('\n');
    await embedded.stop();
    // PostgreSQL only takes processes of its own user for itself.
    const { uid, gid } = statSync(join(dataDir, 'postgres'));
    const stranger = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], {
      uid,
      gid,
      stdio: 'ignore',
    });
    onTestFinished(() => void stranger.kill('SIGKILL'));
    writeFileSync(pidFile, [stranger.pid, ...rest].join('\n'));

    const next = await start(dataDir);
    expect(next.adopted).toBe(false);
    expect(next.pid).not.toBe(stranger.pid);
    await next.stop();
    expect(stranger.exitCode ?? stranger.signalCode).toBeNull();
  });

  it('serves the drain after a Ctrl-C in the terminal', async () => {
    const dataDir = makeTestFolder('ctrl-c');
    const interrupted = server(dataDir);
    const { pid } = await interrupted.said('ready');
    interrupted.kill('SIGINT', 'group');
    expect(await interrupted.said('draining')).toMatchObject({ answer: 'served' });
    expect(await interrupted.ended).toBe(0);
    await gone(pid);
  });

  it('is started once by two servers that start at the same time', async () => {
    const dataDir = makeTestFolder('twice');
    const servers = [server(dataDir), server(dataDir), server(dataDir)];
    const ready = await Promise.all(servers.map((one) => one.said('ready')));
    expect(new Set(ready.map(({ pid }) => pid)).size).toBe(1);
    expect(ready.map(({ adopted }) => adopted).sort()).toEqual([false, true, true]);
    for (const one of servers) one.kill('SIGINT');
    expect(await Promise.all(servers.map((one) => one.ended))).toEqual([0, 0, 0]);
    expect(processesIn(dataDir)).toEqual([]);
  });

  it('is made anew when its first start was killed halfway, whoever held the lock', async () => {
    const dataDir = makeTestFolder('halfway');
    const killed = server(dataDir);
    await killed.said('log', 'Making the embedded database');
    killed.kill('SIGKILL', 'group');
    await killed.ended;
    const next = await start(dataDir);
    expect(next.adopted).toBe(false);
    await next.stop();
    expect(existsSync(join(dataDir, 'postgres.unfinished'))).toBe(false);
  });
});
