/**
 * Databases for tests, on the PostgreSQL that `global-setup.ts` started for the run. A test file makes one, or several,
 * and drops them in `afterAll`; what is left goes with the run.
 */
import { mkdirSync, mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';
import { silentLog } from '../../src/kernel/log.js';
import { startEmbedded, type Connection } from '../../src/store/embedded.js';
import { startDebianPostgres, type DebianServer } from './debian-postgres.js';
import { createDatabaseOn, TEMPLATE, TEST_SETTINGS, type TestDatabase } from './test-server.js';

export { withClient, type TestDatabase } from './test-server.js';

/** A database with all migrations applied, in about 50 ms. */
export const createDatabase = (): Promise<TestDatabase> =>
  createDatabaseOn(inject('postgres').connection, TEMPLATE);

/** A database without anything in it. */
export const createEmptyDatabase = (): Promise<TestDatabase> =>
  createDatabaseOn(inject('postgres').connection, 'template0');

/** A new folder below the run's: PostgreSQL that still works in it after the run is ended, and all is removed. */
export function makeTestFolder(name: string): string {
  const { runFolder } = inject('postgres');
  mkdirSync(runFolder, { recursive: true });
  return mkdtempSync(join(runFolder, `${name}-`));
}

export type ExternalPostgres = {
  readonly connection: Connection;
  createEmptyDatabase(): Promise<TestDatabase>;
};

let external: Promise<ExternalPostgres> | undefined;

/** A second PostgreSQL, over TCP with a password: what an operator gives as DATABASE_URL. One for all workers. */
export function externalPostgres(): Promise<ExternalPostgres> {
  external ??= (async () => {
    const dataDir = join(inject('postgres').runFolder, 'external');
    const { connection } = await startEmbedded({
      dataDir,
      log: silentLog,
      listen: 'tcp',
      settings: TEST_SETTINGS,
    });
    return { connection, createEmptyDatabase: () => createDatabaseOn(connection, 'template0') };
  })();
  return external;
}

/** PostgreSQL 15 of this system, started for the caller, who stops it. Undefined where it is not installed. */
export const debianPostgres = (): Promise<DebianServer | undefined> =>
  startDebianPostgres(inject('postgres').runFolder);
