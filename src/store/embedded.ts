/**
 * PostgreSQL without anything to install: starts the one that npm brought, in `<dataDir>/postgres`, or joins the one that
 * already runs there. Several Slipway processes may share one data folder; the last one that stops also stops PostgreSQL,
 * and a process that was killed does not count. Called by the composition root when there is no `DATABASE_URL`.
 *
 * Does not guard against a second machine or a second container runtime that mounts the same folder over a network.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import type { Log } from '../kernel/log.js';
import { StartError } from '../kernel/start-error.js';
import { findBinaryPackage, prepareBinaries } from './embedded/binaries.js';
import {
  checkCluster,
  createCluster,
  writeConfiguration,
  type Cluster,
  type Listening,
} from './embedded/cluster.js';
import { claimDataFolder } from './embedded/data-folder.js';
import {
  answers,
  connectionTo,
  freePort,
  removeShortcuts,
  socketsWorkFor,
  type Connection,
} from './embedded/endpoint.js';
import { joinMembers, type Membership } from './embedded/members.js';
import {
  diesWithin,
  findRunning,
  portOf,
  startPostmaster,
  stopPostmaster,
  type Postmaster,
} from './embedded/postmaster.js';
import { alive } from './embedded/process-identity.js';
import { chooseRunAs } from './embedded/run-as.js';

const DATABASE = 'slipway';
const WATCH_MILLISECONDS = 1_000;
const BRING_UP_ATTEMPTS = 3;
const DEATH_WAIT_MILLISECONDS = 2_000;

export type { Connection } from './embedded/endpoint.js';

export type EmbeddedOptions = {
  /** `SLIPWAY_DATA_DIR`, absolute. Made if absent. */
  readonly dataDir: string;
  readonly log: Log;
  /** `socket` (the default) falls back to `tcp` where there are no sockets. */
  readonly listen?: 'socket' | 'tcp';
  /** More settings of PostgreSQL, over ours. */
  readonly settings?: Readonly<Record<string, string>>;
};

export interface EmbeddedPostgres {
  /** Stays valid when PostgreSQL is restarted. */
  readonly connection: Connection;
  /** Whether it already ran when we came. */
  readonly adopted: boolean;
  /** `server_version`, for example `18.4`. */
  readonly version: string;
  /** Process id of PostgreSQL now. */
  readonly pid: number;
  /** Ends PostgreSQL unless another live process shares it. Close all pools first. Safe to call twice. */
  stop(): Promise<void>;
}

type Running = {
  readonly postmaster: Postmaster;
  readonly connection: Connection;
  readonly adopted: boolean;
};

export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const { log } = options;
  const dataDir = claimDataFolder(options.dataDir);
  const folder = join(dataDir, 'postgres');
  const members = joinMembers(join(dataDir, 'servers'));
  try {
    // Read under the lock: before it, the first start of another process may still be making the folder.
    const { cluster, running, version } = await members.locked(async () => {
      const runAs = chooseRunAs(folder);
      const binaries = prepareBinaries(findBinaryPackage(), runAs, join(dataDir, 'postgres-libraries'));
      const found: Cluster = {
        folder,
        binaries,
        runAs,
        logFile: join(dataDir, 'postgres.log'),
        passwordFile: join(dataDir, 'postgres-password'),
      };
      const ready = await bringUp(found, options);
      members.setUsing(true);
      return { cluster: found, ...ready };
    });
    log.info(
      { folder, pid: running.postmaster.pid, version, adopted: running.adopted },
      'Embedded PostgreSQL is ready',
    );
    return supervise(cluster, options, members, running, version);
  } catch (error) {
    members.leave();
    throw error;
  }
}

/** A PostgreSQL that was just killed still looks alive for a moment, and breaks the connection: look again then. */
async function bringUp(
  cluster: Cluster,
  options: EmbeddedOptions,
): Promise<{ running: Running; version: string }> {
  for (let attempt = 1; ; attempt += 1) {
    const running = await adoptOrStart(cluster, options);
    try {
      return { running, version: await ensureDatabase(running.connection) };
    } catch (error) {
      if (attempt === BRING_UP_ATTEMPTS || !(await diesWithin(running.postmaster, DEATH_WAIT_MILLISECONDS))) {
        throw error;
      }
    }
  }
}

async function adoptOrStart(cluster: Cluster, options: EmbeddedOptions): Promise<Running> {
  const { exists } = checkCluster(cluster);
  if (exists) {
    const postmaster = await findRunning(cluster);
    if (postmaster !== undefined) {
      return {
        postmaster,
        connection: connectionTo(cluster, listeningNow(cluster), DATABASE),
        adopted: true,
      };
    }
    await refuseInvisibleServer(cluster);
  } else {
    options.log.info({ folder: cluster.folder }, 'Making the embedded database');
    await createCluster(cluster);
  }
  const listening = await chooseListening(cluster, options);
  writeConfiguration(cluster, listening, options.settings ?? {});
  rememberListening(cluster, listening);
  const postmaster = await startPostmaster(cluster, options);
  return { postmaster, connection: connectionTo(cluster, listening, DATABASE), adopted: false };
}

const listeningFile = (cluster: Cluster): string => `${cluster.folder}-port`;

/** Present only while PostgreSQL listens on TCP. */
function rememberListening(cluster: Cluster, listening: Listening): void {
  if (listening.over === 'tcp') writeFileSync(listeningFile(cluster), `${listening.port}\n`, { mode: 0o600 });
  else rmSync(listeningFile(cluster), { force: true });
}

function listeningNow(cluster: Cluster): Listening {
  const port = existsSync(listeningFile(cluster)) ? portOf(cluster) : undefined;
  return port === undefined ? { over: 'socket' } : { over: 'tcp', port };
}

async function chooseListening(cluster: Cluster, options: EmbeddedOptions): Promise<Listening> {
  if (options.listen !== 'tcp' && (await socketsWorkFor(cluster))) return { over: 'socket' };
  const last = existsSync(listeningFile(cluster))
    ? Number(readFileSync(listeningFile(cluster), 'utf8'))
    : undefined;
  return { over: 'tcp', port: await freePort(last) };
}

/**
 * Two PostgreSQL on one folder destroy it, and PostgreSQL's own check cannot see a process of another container. A socket
 * in the folder works across containers, so it can tell.
 */
async function refuseInvisibleServer(cluster: Cluster): Promise<void> {
  if (process.platform === 'win32') return;
  const connection = connectionTo(cluster, { over: 'socket' }, DATABASE);
  if (!(await answers(connection))) return;
  throw new StartError(
    `A PostgreSQL that this process cannot see runs on ${cluster.folder}, probably in another container. Give every replica one DATABASE_URL, or each its own data folder.`,
  );
}

async function ensureDatabase(connection: Connection): Promise<string> {
  const client = new pg.Client({ ...connection, database: 'postgres', connectionTimeoutMillis: 10_000 });
  // A PostgreSQL that dies between two statements is told by the next one; unheard it would end this process.
  client.on('error', () => undefined);
  await client.connect();
  try {
    const { rows } = await client.query<{ version: string; present: boolean }>(
      `select current_setting('server_version') as version,
              exists (select from pg_database where datname = $1) as present`,
      [connection.database],
    );
    if (rows[0]?.present !== true) await client.query(`create database "${connection.database}"`);
    return rows[0]?.version ?? '';
  } finally {
    await client.end();
  }
}

/** Starts PostgreSQL again when it dies under us: without it nothing works, and nobody else would. */
function supervise(
  cluster: Cluster,
  options: EmbeddedOptions,
  members: Membership,
  first: Running,
  version: string,
): EmbeddedPostgres {
  const { log } = options;
  let running = first;
  let stopped: Promise<void> | undefined;
  let reviving = false;

  const revive = async (): Promise<void> => {
    if (reviving || stopped !== undefined || alive(running.postmaster.identity)) return;
    reviving = true;
    log.error(
      { folder: cluster.folder, pid: running.postmaster.pid },
      'The embedded PostgreSQL died: starting it again',
    );
    try {
      await members.locked(async () => {
        if (stopped === undefined) ({ running } = await bringUp(cluster, options));
      });
      log.info({ pid: running.postmaster.pid }, 'The embedded PostgreSQL runs again');
    } catch (error) {
      log.error({ err: error }, 'The embedded PostgreSQL does not start: trying again');
    } finally {
      reviving = false;
    }
  };
  const watch = setInterval(() => void revive(), WATCH_MILLISECONDS);
  watch.unref();

  const stop = async (): Promise<void> => {
    clearInterval(watch);
    await members.locked(async () => {
      members.setUsing(false);
      if (members.othersUsing()) {
        log.info(
          { pid: running.postmaster.pid },
          'Another Slipway process uses the embedded PostgreSQL: leaving it running',
        );
        return;
      }
      // Ask again: it may have been restarted by a process that has left since.
      const now = await findRunning(cluster);
      if (now !== undefined) await stopPostmaster(cluster, now);
      removeShortcuts(cluster);
    });
    members.leave();
  };

  return {
    connection: first.connection,
    adopted: first.adopted,
    version,
    get pid() {
      return running.postmaster.pid;
    },
    stop: () => (stopped ??= stop()),
  };
}
