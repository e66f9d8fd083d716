import { spawn, spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, openSync, closeSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { freePort } from '../../src/store/embedded/endpoint.js';
import { chooseRunAs } from '../../src/store/embedded/run-as.js';
import type { Connection } from '../../src/store/embedded.js';
import { TEST_SETTINGS } from './test-server.js';

const BIN = '/usr/lib/postgresql/15/bin';

export type DebianServer = { readonly connection: Connection; stop(): Promise<void> };

/** The oldest PostgreSQL that we support, as Debian 12 brings it. Undefined where it is not installed. */
export async function startDebianPostgres(runFolder: string): Promise<DebianServer | undefined> {
  if (!existsSync(join(BIN, 'postgres'))) return undefined;
  const folder = mkdtempSync(join(runFolder, 'debian-'));
  const runAs = chooseRunAs(join(folder, 'absent'));
  if (runAs !== undefined) chownSync(folder, runAs.uid, runAs.gid);
  const options = { cwd: folder, env: { LC_ALL: 'C', TZ: 'UTC' }, ...runAs };
  const made = spawnSync(
    join(BIN, 'initdb'),
    ['-D', folder, '-U', 'slipway', '-E', 'UTF8', '--auth=trust', '--no-sync'],
    {
      ...options,
      encoding: 'utf8',
    },
  );
  expect(made.status, made.stderr).toBe(0);
  const port = await freePort(undefined);
  const settings = {
    ...TEST_SETTINGS,
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
  };
  const output = openSync(join(folder, 'log'), 'a');
  const child = spawn(
    join(BIN, 'postgres'),
    ['-D', folder, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    { ...options, detached: true, stdio: ['ignore', output, output] },
  );
  closeSync(output);
  child.unref();
  await vi.waitFor(
    () => expect(readFileSync(join(folder, 'postmaster.pid'), 'utf8')).toMatch(/^ready\s*$/m),
    { timeout: 20_000 },
  );
  return {
    connection: { host: '127.0.0.1', port, user: 'slipway', database: 'postgres' },
    async stop() {
      child.kill('SIGINT');
      await vi.waitFor(() => expect(child.exitCode).not.toBeNull(), { timeout: 20_000 });
    },
  };
}
