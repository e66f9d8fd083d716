/**
 * Brings a database to the migrations of this build, at every start. Forward only: the way back is a backup. Writes the
 * table, checksums and lock of Prisma, so that `prisma migrate deploy` and this can take turns on one database.
 *
 * Guarantees: each migration is applied in one transaction together with its row, once, however many processes start at
 * the same time. Needs a session of its own: not through a pooler that shares sessions between transactions.
 */
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { silentLog, type Log } from '../kernel/log.js';
import { StartError } from '../kernel/start-error.js';

/** The key that Prisma locks while it migrates. */
const PRISMA_LOCK = 72_707_369;
const LOCK_WAIT_SECONDS = 600;
const OLDEST_SERVER_VERSION = 150_000;

/** Prisma's own text, column for column. */
const CREATE_TABLE = `
  create table if not exists public._prisma_migrations (
    id varchar(36) primary key not null,
    checksum varchar(64) not null,
    finished_at timestamptz,
    migration_name varchar(255) not null,
    logs text,
    rolled_back_at timestamptz,
    started_at timestamptz not null default now(),
    applied_steps_count integer not null default 0
  )`;

export type MigrateOptions = {
  /** `prisma/migrations`: a folder `<timestamp>_<name>` with a `migration.sql` for each migration. */
  readonly directory: string;
  readonly log?: Log;
};

type Migration = { readonly name: string; readonly sql: string };
type AppliedRow = {
  readonly migration_name: string;
  readonly checksum: string;
  readonly finished_at: Date | null;
};

/** Applies what is missing; `applied` names it in order. A pool lends one session, which is closed afterwards. */
export async function migrate(
  database: pg.Pool | pg.Client,
  options: MigrateOptions,
): Promise<{ applied: string[] }> {
  const migrations = readMigrations(options.directory);
  if (database instanceof pg.Client) return migrateSession(database, migrations, options.log ?? silentLog);
  const client = await database.connect();
  try {
    return await migrateSession(client, migrations, options.log ?? silentLog);
  } finally {
    // The session has other timeouts now, and may hold the lock after a failure: it must not go back to the pool.
    client.release(true);
  }
}

function readMigrations(directory: string): Migration[] {
  return readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort()
    .map((name) => {
      const file = join(directory, name, 'migration.sql');
      if (!existsSync(file)) {
        throw new StartError(
          `The migration ${name} in ${directory} has no migration.sql: this installation is incomplete.`,
        );
      }
      return { name, sql: readFileSync(file, 'utf8') };
    });
}

async function migrateSession(
  client: pg.ClientBase,
  migrations: readonly Migration[],
  log: Log,
): Promise<{ applied: string[] }> {
  await refuseUnfitServer(client);
  await client.query(`set statement_timeout = 0`);
  await client.query(`set idle_in_transaction_session_timeout = 0`);
  await lock(client, log);
  try {
    const pending = pendingOf(migrations, await readApplied(client));
    for (const migration of pending) {
      log.info({ migration: migration.name }, 'Applying a migration');
      await apply(client, migration);
    }
    return { applied: pending.map(({ name }) => name) };
  } finally {
    await evenIfBroken(client.query('select pg_advisory_unlock($1)', [PRISMA_LOCK]));
  }
}

async function refuseUnfitServer(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ version: number; name: string; standby: boolean }>(
    `select current_setting('server_version_num')::int as version, current_setting('server_version') as name,
            pg_is_in_recovery() as standby`,
  );
  const [server] = rows;
  if (server === undefined) throw new Error('PostgreSQL did not say what it is');
  if (server.version < OLDEST_SERVER_VERSION) {
    throw new StartError(
      `Slipway needs PostgreSQL 15 or newer, and this is ${server.name}. Set DATABASE_URL to a newer server.`,
    );
  }
  if (server.standby) {
    throw new StartError(
      'This PostgreSQL is a standby, which takes no writes. Set DATABASE_URL to the primary.',
    );
  }
}

async function lock(client: pg.ClientBase, log: Log): Promise<void> {
  const { rows } = await client.query<{ free: boolean }>('select pg_try_advisory_lock($1) as free', [
    PRISMA_LOCK,
  ]);
  if (rows[0]?.free === true) return;
  log.info({}, 'Another process migrates this database: waiting for it');
  await client.query(`set lock_timeout = '${LOCK_WAIT_SECONDS}s'`);
  try {
    await client.query('select pg_advisory_lock($1)', [PRISMA_LOCK]);
  } catch (cause) {
    if (!(cause instanceof pg.DatabaseError) || cause.code !== '55P03') throw cause;
    throw new StartError(
      `Another session has held the migration lock of this database for more than ${LOCK_WAIT_SECONDS} s. Look for it in pg_locks (advisory, objid ${PRISMA_LOCK}), and start again once it has ended.`,
      { cause },
    );
  }
  // A migration may have to wait for a lock on a table that is in use.
  await client.query('set lock_timeout = 0');
}

async function readApplied(client: pg.ClientBase): Promise<AppliedRow[]> {
  const { rows } = await client.query<{ known: boolean; stranger: string | null }>(
    `select to_regclass('public._prisma_migrations') is not null as known,
            (select c.relname from pg_class c
              where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
                and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
              order by c.relname limit 1) as stranger`,
  );
  const [found] = rows;
  if (found?.known !== true && typeof found?.stranger === 'string') {
    throw new StartError(
      `This database holds tables of something else (public.${found.stranger}) and was never migrated by Slipway. Set DATABASE_URL to a database of its own.`,
    );
  }
  if (found?.known !== true) await client.query(CREATE_TABLE);
  const applied = await client.query<AppliedRow>(
    `select migration_name, checksum, finished_at from public._prisma_migrations
      where rolled_back_at is null order by started_at, migration_name`,
  );
  return applied.rows;
}

/** Throws when the rows are not a part of what this build knows. */
function pendingOf(migrations: readonly Migration[], applied: readonly AppliedRow[]): Migration[] {
  const known = new Map(migrations.map((migration) => [migration.name, migration]));
  for (const row of applied) {
    const migration = known.get(row.migration_name);
    if (row.finished_at === null) {
      throw new StartError(
        `The migration ${row.migration_name} was started on this database and never finished. Repair it by hand and mark it with \`prisma migrate resolve\`, or restore a backup.`,
      );
    }
    if (migration === undefined) {
      throw new StartError(
        `This database has the migration ${row.migration_name}, which this Slipway does not know: it was made by a newer one, or by something else. Start the newer Slipway, or restore a backup.`,
      );
    }
    if (!checksumsOf(migration.sql).includes(row.checksum)) {
      throw new StartError(
        `The migration ${row.migration_name} was changed after it was applied to this database. Restore its migration.sql; what it should do now belongs in a new migration.`,
      );
    }
  }
  const done = new Set(applied.map((row) => row.migration_name));
  return migrations.filter(({ name }) => !done.has(name));
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** The first is the one to write. A checkout on Windows may have other line ends, as Prisma also allows for. */
function checksumsOf(sql: string): string[] {
  const unix = sql.replaceAll('\r\n', '\n');
  return [sql, unix, unix.replaceAll('\n', '\r\n')].map((text) => sha256(text));
}

async function apply(client: pg.ClientBase, migration: Migration): Promise<void> {
  await client.query('begin');
  try {
    const before = await transactionId(client);
    await client.query(migration.sql);
    if ((await transactionId(client)) !== before) throw new Error('it ends the transaction that it runs in');
    await client.query(
      `insert into public._prisma_migrations (id, checksum, migration_name, started_at, finished_at, applied_steps_count)
       values ($1, $2, $3, clock_timestamp(), clock_timestamp(), 1)`,
      [randomUUID(), checksumsOf(migration.sql)[0], migration.name],
    );
    await client.query('commit');
  } catch (cause) {
    await evenIfBroken(client.query('rollback'));
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new StartError(`The migration ${migration.name} failed and was rolled back: ${reason}.`, { cause });
  }
}

async function transactionId(client: pg.ClientBase): Promise<string | undefined> {
  const { rows } = await client.query<{ id: string }>('select pg_current_xact_id()::text as id');
  return rows[0]?.id;
}

/** A broken session has rolled back and unlocked by breaking, and its own error must stay the one that is told. */
async function evenIfBroken(query: Promise<unknown>): Promise<void> {
  await query.catch(() => undefined);
}
