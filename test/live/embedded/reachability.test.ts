import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, lstatSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { silentLog } from '../../../src/kernel/log.js';
import { startEmbedded } from '../../../src/store/embedded.js';
import {
  findBinaryPackage,
  prepareBinaries,
  type Binaries,
  type BinaryPackage,
} from '../../../src/store/embedded/binaries.js';
import { chooseRunAs } from '../../../src/store/embedded/run-as.js';
import { makeTestFolder, withClient } from '../../support/database.js';

/** As npm leaves the package when it runs no install scripts. */
function packageWithoutLinks(folder: string): BinaryPackage {
  const found = findBinaryPackage();
  const native = join(folder, 'native');
  cpSync(found.native, native, { recursive: true, verbatimSymlinks: true });
  const rows = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8')) as { target: string }[]; // The package's own file.
  for (const { target } of rows) rmSync(join(folder, target), { force: true });
  return { ...found, version: `${found.version}-test-${process.pid}`, native };
}

function versionOf(binaries: Binaries, as: object = {}): string {
  const { stdout, stderr } = spawnSync(join(binaries.bin, 'postgres'), ['--version'], {
    ...as,
    env: { ...binaries.env },
    encoding: 'utf8',
  });
  return stdout + stderr;
}

describe('the binaries', () => {
  it('run although npm made no links, and the package is left as it was', () => {
    const folder = makeTestFolder('links');
    const found = packageWithoutLinks(folder);
    expect(versionOf({ ...prepareBinaries(found, undefined, join(folder, 'links')) })).toContain(
      '(PostgreSQL) 18',
    );
    expect(existsSync(join(found.native, 'lib', 'libpq.so.5'))).toBe(false);
    expect(versionOf({ bin: join(found.native, 'bin'), env: {}, majorVersion: 18 })).toContain(
      'cannot open shared object file',
    );
  });

  it('are copied once where the user of PostgreSQL cannot reach them, and repaired', () => {
    const folder = makeTestFolder('closed');
    const runAs = chooseRunAs(join(folder, 'absent'));
    const closed = join(folder, 'closed');
    mkdirSync(closed);
    const found = packageWithoutLinks(closed);
    chmodSync(closed, 0o700);

    const binaries = prepareBinaries(found, runAs, join(folder, 'links'));
    if (runAs === undefined) {
      // PostgreSQL runs as us, who can reach whatever we start it from.
      expect(binaries.bin).toBe(join(found.native, 'bin'));
      return;
    }
    const copy = join(binaries.bin, '..');
    onTestFinished(() => rmSync(copy, { recursive: true, force: true }));
    expect(versionOf(binaries, runAs)).toContain('(PostgreSQL) 18');
    expect(lstatSync(copy)).toMatchObject({ uid: 0 });
    expect(lstatSync(copy).mode & 0o777).toBe(0o755);

    const { ino } = statSync(copy);
    prepareBinaries(found, runAs, join(folder, 'links'));
    expect(statSync(copy).ino).toBe(ino);

    rmSync(join(copy, 'lib', 'libxml2.so.2'));
    expect(versionOf(prepareBinaries(found, runAs, join(folder, 'links')), runAs)).toContain(
      '(PostgreSQL) 18',
    );
    expect(existsSync(join(copy, 'replaced'))).toBe(false);
  });
});

describe('the data folder', () => {
  it('may lie below a folder that nobody else can enter', async () => {
    const closed = makeTestFolder('root-only');
    chmodSync(closed, 0o700);
    const dataDir = join(closed, 'checkout', '.slipway');
    const embedded = await startEmbedded({ dataDir, log: silentLog, settings: { fsync: 'off' } });
    onTestFinished(() => embedded.stop());
    expect(statSync(join(dataDir, 'postgres')).uid).not.toBe(0);
    await withClient(embedded.connection, (client) =>
      client.query('create table t as select 1 as n; checkpoint'),
    );
    const second = await startEmbedded({ dataDir, log: silentLog });
    expect(second).toMatchObject({ adopted: true, pid: embedded.pid });
    await second.stop();
  });
});
