/**
 * One run of PostgreSQL on a cluster: found, started, stopped. The callers hold the members' lock, so nothing here races
 * with another Slipway process; PostgreSQL itself and its killers may do anything at any time.
 */
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, openSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../../kernel/log.js';
import { StartError } from '../../kernel/start-error.js';
import {
  cannotRun,
  dataFolderArgument,
  oneLine,
  SOCKET_PORT,
  spawnOptions,
  type Cluster,
} from './cluster.js';
import { alive, identify, worksIn, type ProcessIdentity } from './process-identity.js';

const POLL_MILLISECONDS = 10;
/** Recovery after a crash replays the log since the last checkpoint: at most some gigabytes. */
const START_WAIT_MILLISECONDS = 120_000;
/** After a postmaster was killed, its children notice at their next wait, and hold the shared memory until then. */
const ORPHANS_WAIT_MILLISECONDS = 20_000;
const FAST_STOP_WAIT_MILLISECONDS = 60_000;
const LOG_MAX_BYTES = 5 * 1024 * 1024;

export type Postmaster = { readonly identity: ProcessIdentity; readonly pid: number };

type PidFile = { readonly pid: number; readonly port: number; readonly status: string };

const pidFilePath = (cluster: Cluster): string => join(cluster.folder, 'postmaster.pid');

/** PostgreSQL's layout: pid, data folder, start time, port, socket folder, address, shared memory, status. */
function readPidFile(cluster: Cluster): PidFile | undefined {
  let text: string;
  try {
    text = readFileSync(pidFilePath(cluster), 'utf8');
  } catch {
    return undefined;
  }
  const lines = text.split('\n').map((line) => line.trim());
  const pid = Number(lines[0]);
  if (!Number.isSafeInteger(pid) || pid <= 0) return undefined;
  return { pid, port: Number(lines[3]), status: lines[7] ?? '' };
}

export const portOf = (cluster: Cluster): number | undefined => readPidFile(cluster)?.port;

/**
 * The PostgreSQL that runs on this cluster, once it accepts connections. A pid file that names a process of somebody
 * else, or none, is removed, because PostgreSQL would take that process for itself and refuse to start.
 */
export async function findRunning(cluster: Cluster): Promise<Postmaster | undefined> {
  const file = readPidFile(cluster);
  if (file === undefined) return undefined;
  const identity = identify(file.pid);
  // A dead process that nobody has reaped counts as running for PostgreSQL. The memory that its children may still hold
  // is found by PostgreSQL without this file.
  if (identity === undefined || !isPostmasterOf(cluster, file.pid)) {
    rmSync(pidFilePath(cluster), { force: true });
    return undefined;
  }
  const postmaster = { identity, pid: file.pid };
  await until(START_WAIT_MILLISECONDS, () => isReady(cluster, postmaster) || !alive(identity));
  if (isReady(cluster, postmaster)) return postmaster;
  if (!alive(identity)) return undefined;
  throw new StartError(
    `PostgreSQL (process ${file.pid}) runs on ${cluster.folder} but has not accepted connections for ${START_WAIT_MILLISECONDS / 1_000} s. See ${cluster.logFile}.`,
  );
}

function isPostmasterOf(cluster: Cluster, pid: number): boolean {
  const here = worksIn(pid, cluster.folder);
  if (here !== undefined) return here;
  if (process.platform === 'linux') return looksLikePostmasterOf(cluster, pid);
  const { status } = spawnSync(join(cluster.binaries.bin, 'pg_ctl'), ['status', '-D', cluster.folder], {
    ...spawnOptions(cluster),
    stdio: 'ignore',
  });
  return status === 0;
}

/** Containers commonly let root see no working folder of another user's process. */
function looksLikePostmasterOf(cluster: Cluster, pid: number): boolean {
  try {
    const sameUser = statSync(`/proc/${pid}`).uid === statSync(cluster.folder).uid;
    return sameUser && readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'postgres';
  } catch {
    return false; // It ended meanwhile.
  }
}

function isReady(cluster: Cluster, postmaster: Postmaster): boolean {
  const file = readPidFile(cluster);
  // A standby answers too, so that whoever made it one is told so, and not that nothing answers.
  const accepts = file?.status === 'ready' || file?.status === 'standby';
  return accepts && file.pid === postmaster.pid && alive(postmaster.identity);
}

export async function startPostmaster(cluster: Cluster, { log }: { readonly log: Log }): Promise<Postmaster> {
  const giveUpAt = performance.now() + ORPHANS_WAIT_MILLISECONDS;
  for (;;) {
    const outcome = await tryStart(cluster);
    if (outcome.started) return outcome.postmaster;
    const orphans = outcome.said.includes('shared memory block') && outcome.said.includes('still in use');
    if (!orphans || performance.now() > giveUpAt) {
      throw new StartError(`PostgreSQL did not start on ${cluster.folder}: ${oneLine(outcome.said)}`);
    }
    log.debug(
      { folder: cluster.folder },
      'Processes of a killed PostgreSQL still hold its memory: trying again',
    );
    await delay(POLL_MILLISECONDS * 10);
  }
}

type StartOutcome =
  | { readonly started: true; readonly postmaster: Postmaster }
  | { readonly started: false; readonly said: string };

async function tryStart(cluster: Cluster): Promise<StartOutcome> {
  // The socket is in the data folder, and the caller found that nothing runs there; PostgreSQL goes by the pid alone.
  rmSync(join(cluster.folder, `.s.PGSQL.${SOCKET_PORT}.lock`), { force: true });
  const logSize = rotateLog(cluster.logFile);
  const output = openSync(cluster.logFile, 'a', 0o600);
  // Detached: a Ctrl-C reaches the whole process group, and PostgreSQL must outlive our drain.
  const child = spawn(join(cluster.binaries.bin, 'postgres'), ['-D', dataFolderArgument(cluster)], {
    ...spawnOptions(cluster),
    detached: true,
    windowsHide: true,
    stdio: ['ignore', output, output],
  });
  closeSync(output);
  let failure: Error | undefined;
  child.once('error', (error) => {
    failure = error;
  });
  child.unref();
  const { pid } = child;
  const identity = pid === undefined ? undefined : identify(pid);
  if (pid !== undefined && identity !== undefined) {
    const postmaster = { identity, pid };
    const ended = (): boolean => child.exitCode !== null || child.signalCode !== null;
    await until(START_WAIT_MILLISECONDS, () => ended() || isReady(cluster, postmaster));
    if (!ended()) {
      if (isReady(cluster, postmaster)) return { started: true, postmaster };
      throw new StartError(
        `PostgreSQL (process ${pid}) has not become ready on ${cluster.folder} for ${START_WAIT_MILLISECONDS / 1_000} s. See ${cluster.logFile}.`,
      );
    }
  } else {
    await until(POLL_MILLISECONDS * 10, () => failure !== undefined);
  }
  if (failure !== undefined) throw cannotRun(cluster, failure);
  return { started: false, said: readFileSync(cluster.logFile, 'utf8').slice(logSize).slice(-1_000) };
}

/** Keeps one older file; PostgreSQL writes little more than its starts and stops there. Returns the size now. */
function rotateLog(file: string): number {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size <= LOG_MAX_BYTES) return size;
  renameSync(file, `${file}.1`);
  return 0;
}

/** Fast shutdown: open transactions are rolled back and a checkpoint is written. Resolves when the process is gone. */
export async function stopPostmaster(cluster: Cluster, postmaster: Postmaster): Promise<void> {
  const gone = (): boolean => !alive(postmaster.identity);
  signal(cluster, postmaster, 'fast');
  await until(FAST_STOP_WAIT_MILLISECONDS, gone);
  if (gone()) return;
  // Nothing that was committed is lost: the next start recovers from the log.
  signal(cluster, postmaster, 'immediate');
  await until(FAST_STOP_WAIT_MILLISECONDS, gone);
}

function signal(cluster: Cluster, postmaster: Postmaster, mode: 'fast' | 'immediate'): void {
  if (process.platform === 'win32') {
    spawnSync(join(cluster.binaries.bin, 'pg_ctl'), ['stop', '-W', '-m', mode, '-D', cluster.folder], {
      ...spawnOptions(cluster),
      stdio: 'ignore',
    });
    return;
  }
  if (!alive(postmaster.identity)) return;
  try {
    process.kill(postmaster.pid, mode === 'fast' ? 'SIGINT' : 'SIGQUIT');
  } catch (error) {
    // It ended between the two lines. `kill` throws system errors only.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

export async function diesWithin(postmaster: Postmaster, milliseconds: number): Promise<boolean> {
  await until(milliseconds, () => !alive(postmaster.identity));
  return !alive(postmaster.identity);
}

async function until(milliseconds: number, condition: () => boolean): Promise<void> {
  const giveUpAt = performance.now() + milliseconds;
  while (!condition() && performance.now() < giveUpAt) await delay(POLL_MILLISECONDS);
}
