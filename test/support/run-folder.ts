/**
 * One folder for each run of the suite. It holds every data folder, and its name says which process made it, so that the
 * next run removes what a crashed one left, with the PostgreSQL processes that still work in it.
 */
import { chmodSync, mkdirSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { alive, identify, parseIdentity } from '../../src/store/embedded/process-identity.js';

const PREFIX = 'slipway-test-';

export function makeRunFolder(): string {
  const folder = join(realpathSync(tmpdir()), `${PREFIX}${identify(process.pid)}`);
  mkdirSync(folder, { recursive: true });
  chmodSync(folder, 0o755);
  return folder;
}

/** Ends what works below the folder, and removes it. */
export async function removeRunFolder(folder: string): Promise<void> {
  for (const pid of processesIn(folder)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It ended by itself.
    }
  }
  // Vitest's own waiting is not available to a global setup.
  while (processesIn(folder).length > 0) await delay(10);
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

export async function removeStaleRunFolders(): Promise<void> {
  const parent = realpathSync(tmpdir());
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(PREFIX)) continue;
    const maker = parseIdentity(name.slice(PREFIX.length));
    if (maker !== undefined && !alive(maker)) await removeRunFolder(join(parent, name));
  }
}

export function processesIn(folder: string): number[] {
  return process.platform === 'linux' ? linuxProcessesIn(folder) : postmastersIn(folder);
}

function linuxProcessesIn(folder: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const cwd = readlinkSync(`/proc/${pid}/cwd`);
        return (
          pid !== process.pid &&
          identify(pid) !== undefined &&
          (cwd === folder || cwd.startsWith(folder + sep))
        );
      } catch {
        return false;
      }
    });
}

function postmastersIn(folder: string): number[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('postmaster.pid'))
    .map((path) => Number.parseInt(readFileSync(join(folder, path), 'utf8'), 10))
    .filter((pid) => identify(pid) !== undefined);
}
