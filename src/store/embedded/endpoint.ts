/**
 * Where clients reach the embedded PostgreSQL. The socket lies in the data folder; a socket's path is cut at about 100
 * characters by the system, so a longer one is reached through a short link in a folder of our own.
 */
import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, readFileSync, readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StartError } from '../../kernel/start-error.js';
import { OWNER, SOCKET_PORT, type Cluster, type Listening } from './cluster.js';

/** The smallest limit of the supported systems is 104 bytes, with the closing zero. */
const SOCKET_PATH_MAX_BYTES = 100;

export type Connection = {
  /** A folder that holds the socket, or a loopback address. */
  readonly host: string;
  readonly port: number;
  readonly user: string;
  /** Absent over the socket, which only PostgreSQL's user, us and root can open. */
  readonly password?: string;
  readonly database: string;
};

const socketIn = (folder: string): string => join(folder, `.s.PGSQL.${SOCKET_PORT}`);

export function connectionTo(cluster: Cluster, listening: Listening, database: string): Connection {
  if (listening.over === 'tcp') {
    const password = readFileSync(cluster.passwordFile, 'utf8').trim();
    return { host: '127.0.0.1', port: listening.port, user: OWNER, password, database };
  }
  const short = Buffer.byteLength(socketIn(cluster.folder)) <= SOCKET_PATH_MAX_BYTES;
  return {
    host: short ? cluster.folder : makeShortcut(cluster.folder),
    port: SOCKET_PORT,
    user: OWNER,
    database,
  };
}

/** Every process that shares the folder finds the same names, and any of them may make the link again. */
function shortcutFolders(folder: string): string[] {
  const name = `slipway-${process.getuid?.() ?? 0}-${createHash('sha256').update(folder).digest('hex').slice(0, 12)}`;
  return [...new Set([tmpdir(), '/tmp'])].map((place) => join(place, name));
}

function makeShortcut(folder: string): string {
  for (const parent of shortcutFolders(folder)) {
    const link = join(parent, 'pg');
    if (Buffer.byteLength(socketIn(link)) > SOCKET_PATH_MAX_BYTES) continue;
    mkdirSync(parent, { recursive: true, mode: 0o700 });
    if (!isOurs(parent)) continue;
    pointTo(link, folder);
    return link;
  }
  throw new StartError(
    `The path of ${folder} is too long for a socket, and no short link to it can be made in ${tmpdir()}. Set SLIPWAY_DATA_DIR to a shorter path.`,
  );
}

/** Anyone can make a folder of that name in a shared place: connections must not be led elsewhere. */
function isOurs(folder: string): boolean {
  const stats = lstatSync(folder, { throwIfNoEntry: false });
  return (
    stats !== undefined &&
    stats.isDirectory() &&
    stats.uid === process.getuid?.() &&
    (stats.mode & 0o022) === 0
  );
}

export function removeShortcuts(cluster: Cluster): void {
  for (const parent of shortcutFolders(cluster.folder)) {
    if (isOurs(parent)) rmSync(parent, { recursive: true, force: true });
  }
}

function pointTo(link: string, folder: string): void {
  try {
    if (readlinkSync(link) === folder) return;
  } catch {
    // There is none yet, or something else is in its place: the rename below settles both.
  }
  const fresh = `${link}-${process.pid}`;
  rmSync(fresh, { force: true });
  symlinkSync(folder, fresh);
  renameSync(fresh, link);
}

/** Whether the file system of the data folder carries sockets: a folder shared from another system often does not. */
export async function socketsWorkFor(cluster: Cluster): Promise<boolean> {
  if (process.platform === 'win32') return false;
  const probe = join(connectionTo(cluster, { over: 'socket' }, '').host, '.probe');
  rmSync(probe, { force: true });
  const server = createServer();
  const works = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(probe, () => {
      resolve(true);
    });
  });
  if (works) await close(server);
  return works;
}

/** Whether anything accepts connections there, even from another container that shares the folder. */
export async function answers(connection: Connection): Promise<boolean> {
  const isPath = connection.host.startsWith('/');
  const socket = isPath ? connect(socketIn(connection.host)) : connect(connection.port, connection.host);
  const result = await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
  });
  socket.destroy();
  return result;
}

/** `preferred` when it is free, so that a restart keeps the address that pools already use. */
export async function freePort(preferred: number | undefined): Promise<number> {
  for (const candidate of preferred === undefined ? [0] : [preferred, 0]) {
    const server = createServer();
    const port = await new Promise<number | undefined>((resolve) => {
      server.once('error', () => resolve(undefined));
      server.listen(candidate, '127.0.0.1', () => {
        const address = server.address();
        resolve(typeof address === 'object' && address !== null ? address.port : undefined);
      });
    });
    if (port === undefined) continue;
    await close(server);
    return port;
  }
  throw new Error('no free loopback port');
}

async function close(server: Server): Promise<void> {
  await new Promise((resolve) => {
    server.close(resolve);
  });
}
