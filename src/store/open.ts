/**
 * From a configuration to a database that is ready: started or reached, migrated, with its pools, and with the read
 * role entered where that can be. Called once by each process, before it listens.
 */
import type { Pool } from 'pg';

import { StartError } from '../kernel/start-error.js';
import type { Log } from '../kernel/log.js';
import { openDatabase, type Database } from './database.js';
import { startEmbedded, type EmbeddedPostgres } from './embedded.js';
import { migrate } from './migrate.js';
import { makePool, type PoolOptions } from './pool.js';

const READ_ROLE = 'slipway_read';

export type StoreOptions = {
  /** `DATABASE_URL`; undefined: the embedded PostgreSQL in `dataDir`. */
  readonly url: string | undefined;
  /** `SLIPWAY_READ_DATABASE_URL`: a login of its own for reads. */
  readonly readUrl: string | undefined;
  /** Sessions in each of the two pools. */
  readonly poolSize: number;
  readonly dataDir: string;
  /** How long a request may take. */
  readonly requestMs: number;
  /** `prisma/migrations`. */
  readonly migrations: string;
  readonly log: Log;
};

export interface Store {
  readonly database: Database;
  /** How to reach it with a session of one's own (LISTEN, NOTIFY). */
  readonly address: PoolOptions['database'];
  /** For example `18.4`. */
  readonly serverVersion: string;
  readonly embedded: boolean;
  /** Names of the migrations that this start applied. */
  readonly applied: readonly string[];
  /** Closes the pools; ends an embedded PostgreSQL that no other process uses. */
  close(): Promise<void>;
}

export async function openStore(options: StoreOptions): Promise<Store> {
  const { log, poolSize, requestMs } = options;
  const embedded =
    options.url === undefined ? await startEmbedded({ dataDir: options.dataDir, log }) : undefined;
  const address: PoolOptions['database'] =
    options.url === undefined ? { connection: connectionOf(embedded) } : { url: options.url };
  const pool = makePool({
    database: address,
    size: poolSize,
    applicationName: 'slipway',
    requestMs,
    log,
  });
  let readPool: Pool | undefined;
  try {
    const serverVersion = await reach(pool);
    const { applied } = await migrate(pool, { directory: options.migrations, log });
    readPool = await openReadPool(pool, address, options);
    const database = openDatabase({ pool, readPool });
    return {
      database,
      address,
      serverVersion,
      embedded: embedded !== undefined,
      applied,
      async close() {
        await database.close();
        await embedded?.stop();
      },
    };
  } catch (error) {
    await Promise.allSettled([pool.end(), readPool?.end()]);
    await embedded?.stop();
    throw error;
  }
}

function connectionOf(embedded: EmbeddedPostgres | undefined) {
  if (!embedded) throw new Error('no embedded PostgreSQL was started');
  return embedded.connection;
}

/** The first statement of a start: what keeps it from an answer is said in one line, without address or password. */
async function reach(pool: Pool): Promise<string> {
  try {
    const result = await pool.query<{ server_version: string }>('SHOW server_version');
    return result.rows[0]?.server_version ?? 'unknown';
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : '';
    throw new StartError(
      `The database cannot be reached${code}: check DATABASE_URL, and that PostgreSQL runs and admits this user.`,
      { cause },
    );
  }
}

/**
 * Reads enter the read role at connect. Where that cannot be (no right to make roles, options filtered by a pooler), they
 * run with the second URL, or as the owner; the latter takes one wall away, which is said once.
 */
async function openReadPool(
  pool: Pool,
  address: PoolOptions['database'],
  options: StoreOptions,
): Promise<Pool> {
  const { log } = options;
  const common = {
    size: options.poolSize,
    requestMs: options.requestMs,
    applicationName: 'slipway-read',
    log,
  };
  if (options.readUrl !== undefined) {
    const second = makePool({ ...common, database: { url: options.readUrl } });
    await reach(second).catch(async (error: unknown) => {
      await second.end();
      throw error;
    });
    return second;
  }
  if (await mayEnter(pool, READ_ROLE)) {
    const asReader = makePool({ ...common, database: address, role: READ_ROLE });
    const entered = await asReader
      .query<{ role: string }>('SELECT current_user AS role')
      .then((result) => result.rows[0]?.role === READ_ROLE)
      .catch((error: unknown) => {
        log.warn({ err: error }, `A session with the role ${READ_ROLE} was refused`);
        return false;
      });
    if (entered) return asReader;
    await asReader.end();
  }
  log.warn(
    {},
    `Reads run as the owner of the database: the role ${READ_ROLE} could not be made or entered, so the database itself ` +
      'does not keep them off internal tables. Grant the right to create roles, or give SLIPWAY_READ_DATABASE_URL.',
  );
  return makePool({ ...common, database: address });
}

async function mayEnter(pool: Pool, role: string): Promise<boolean> {
  const result = await pool.query<{ may: boolean }>({
    text: `SELECT pg_has_role(current_user, r.oid, 'MEMBER') AS may FROM pg_roles r WHERE r.rolname = $1`,
    values: [role],
  });
  return result.rows[0]?.may === true;
}
