/** The folder that PostgreSQL owns: made once by initdb, checked at each start, configured at each start. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  appendFileSync,
  chownSync,
  closeSync,
  existsSync,
  fchownSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { StartError } from '../../kernel/start-error.js';
import type { Binaries } from './binaries.js';
import type { RunAs } from './run-as.js';

export type Cluster = {
  /** PGDATA. */
  readonly folder: string;
  readonly passwordFile: string;
  readonly logFile: string;
  readonly binaries: Binaries;
  readonly runAs: RunAs;
};

export const OWNER = 'slipway';
const CONFIGURATION = 'slipway.conf';
const ERROR_TAIL_CHARACTERS = 600;

/**
 * How PostgreSQL's programs are told their data folder. Below a folder that only root can enter, the user that they run
 * as cannot follow the path, but it can use the working folder that we enter for it before the change of user.
 */
export function dataFolderArgument(cluster: Cluster): string {
  return cluster.runAs !== undefined && process.platform === 'linux' ? '/proc/self/cwd' : cluster.folder;
}

/** What every program of the cluster is spawned with. */
export function spawnOptions(
  cluster: Cluster,
  folder = cluster.folder,
): { cwd: string; env: NodeJS.ProcessEnv; uid?: number; gid?: number } {
  return { cwd: folder, env: { ...cluster.binaries.env }, ...cluster.runAs };
}

/** Throws unless the folder is absent, or a cluster that these binaries can run. */
export function checkCluster(cluster: Cluster): { exists: boolean } {
  const { folder } = cluster;
  if (!existsSync(folder)) return { exists: false };
  const versionFile = join(folder, 'PG_VERSION');
  if (!existsSync(versionFile)) {
    throw new StartError(
      `${folder} is not a data folder of PostgreSQL (it has no PG_VERSION). Move it away, or set SLIPWAY_DATA_DIR to another folder.`,
    );
  }
  const major = Number.parseInt(readFileSync(versionFile, 'utf8'), 10);
  if (major !== cluster.binaries.majorVersion) {
    throw new StartError(
      `${folder} was made by PostgreSQL ${major}, and this Slipway brings PostgreSQL ${cluster.binaries.majorVersion}. Start the Slipway that made it, or restore a dump of it into a new SLIPWAY_DATA_DIR.`,
    );
  }
  return { exists: true };
}

/** Must not run twice at the same time on one cluster. */
export async function createCluster(cluster: Cluster): Promise<void> {
  // Under another name until it is whole: initdb may be killed at any point.
  const unfinished = `${cluster.folder}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { mode: 0o700 });
  own(cluster, unfinished);
  writeFileSync(cluster.passwordFile, `${randomBytes(24).toString('base64url')}\n`, { mode: 0o600 });
  const password = openSync(cluster.passwordFile, 'r');
  try {
    // initdb opens the file again by its descriptor, which asks for the right to read it but not to reach it.
    if (cluster.runAs !== undefined) fchownSync(password, cluster.runAs.uid, cluster.runAs.gid);
    await runInitdb(cluster, unfinished, password);
  } finally {
    closeSync(password);
  }
  appendFileSync(
    join(unfinished, 'postgresql.conf'),
    `\n# Slipway writes the included file at each start. Settings below this line win over it.\ninclude '${CONFIGURATION}'\n`,
  );
  renameSync(unfinished, cluster.folder);
}

async function runInitdb(cluster: Cluster, folder: string, password: number): Promise<void> {
  const windows = process.platform === 'win32';
  const data = dataFolderArgument({ ...cluster, folder });
  const args = [
    ['-D', data, '-U', OWNER],
    [
      '--encoding=UTF8',
      '--locale=C',
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      '--data-checksums',
    ],
    ['--auth-local=trust', '--auth-host=scram-sha-256', '--no-instructions'],
    [`--pwfile=${windows ? cluster.passwordFile : '/dev/fd/0'}`],
  ].flat();
  const child = spawn(join(cluster.binaries.bin, 'initdb'), args, {
    ...spawnOptions(cluster, folder),
    stdio: [password, 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-ERROR_TAIL_CHARACTERS);
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', (cause) => reject(cannotRun(cluster, cause)));
    child.once('close', resolve);
  });
  if (code !== 0) {
    throw new StartError(`PostgreSQL could not make its data folder ${cluster.folder}: ${oneLine(errors)}`);
  }
}

export function cannotRun(cluster: Cluster, cause: Error): StartError {
  const as = cluster.runAs === undefined ? '' : ` as user ${cluster.runAs.uid}`;
  return new StartError(
    `The embedded PostgreSQL in ${cluster.binaries.bin} does not run${as} (${cause.message}). Start Slipway as an ordinary user on a supported system, or set DATABASE_URL.`,
    { cause },
  );
}

export const oneLine = (text: string): string =>
  text.trim().replaceAll(/\s*\n\s*/g, ' | ') || 'it said nothing';

function own(cluster: Cluster, path: string): void {
  if (cluster.runAs !== undefined) chownSync(path, cluster.runAs.uid, cluster.runAs.gid);
}

/**
 * Settings of a small control plane that promises durability: what touches it (`fsync`, `synchronous_commit`,
 * `full_page_writes`) is said although it is the default, so that it is seen here.
 */
const SETTINGS = {
  max_connections: '200',
  shared_buffers: '64MB',
  max_wal_size: '512MB',
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  jit: 'off',
  // Worker processes for asynchronous reads pay off on data that does not fit into memory.
  io_method: 'sync',
  timezone: 'UTC',
  log_timezone: 'UTC',
  lc_messages: 'C',
  // Statement errors are answers to our own code, which logs them; here they would fill the disk.
  log_min_messages: 'log',
  log_checkpoints: 'off',
  // `.` is the data folder: only PostgreSQL's own user and root can open the socket there, and it moves with the folder.
  unix_socket_directories: '.',
  unix_socket_permissions: '0700',
};

export type Listening = { readonly over: 'socket' } | { readonly over: 'tcp'; readonly port: number };

export const SOCKET_PORT = 5432;

export function writeConfiguration(
  cluster: Cluster,
  listening: Listening,
  extra: Readonly<Record<string, string>>,
): void {
  const listen =
    listening.over === 'socket'
      ? { listen_addresses: '', port: String(SOCKET_PORT) }
      : { listen_addresses: '127.0.0.1', port: String(listening.port), unix_socket_directories: '' };
  const lines = Object.entries({ ...SETTINGS, ...listen, ...extra }).map(
    ([name, value]) => `${name} = '${value.replaceAll("'", "''")}'`,
  );
  const temporary = join(cluster.folder, `${CONFIGURATION}.new`);
  writeFileSync(temporary, `${lines.join('\n')}\n`, { mode: 0o600 });
  own(cluster, temporary);
  renameSync(temporary, join(cluster.folder, CONFIGURATION));
}
