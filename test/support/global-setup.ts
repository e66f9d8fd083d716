import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { silentLog } from '../../src/kernel/log.js';
import { startEmbedded, type Connection } from '../../src/store/embedded.js';
import { migrate } from '../../src/store/migrate.js';
import { TEMPLATE, TEST_SETTINGS } from './test-server.js';
import { makeRunFolder, removeRunFolder, removeStaleRunFolders } from './run-folder.js';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The run's PostgreSQL, and the folder that everything a test writes belongs into. */
    postgres: { readonly connection: Connection; readonly runFolder: string };
  }
}

/** Starts the run's PostgreSQL with a migrated template database, once for all workers. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await removeStaleRunFolders();
  const runFolder = makeRunFolder();
  try {
    const embedded = await startEmbedded({
      dataDir: join(runFolder, 'main'),
      log: silentLog,
      settings: TEST_SETTINGS,
    });
    await makeTemplate(embedded.connection);
    project.provide('postgres', { connection: embedded.connection, runFolder });
    return async () => {
      await embedded.stop();
      await removeRunFolder(runFolder);
    };
  } catch (error) {
    await removeRunFolder(runFolder);
    throw error;
  }
}

async function makeTemplate(connection: Connection): Promise<void> {
  const admin = new pg.Client(connection);
  await admin.connect();
  await admin.query(`create database ${TEMPLATE}`);
  const directory = fileURLToPath(new URL('../../prisma/migrations', import.meta.url));
  if (existsSync(directory)) {
    const client = new pg.Client({ ...connection, database: TEMPLATE });
    await client.connect();
    await migrate(client, { directory });
    await client.end();
  }
  // A session in the template would make every copy of it fail.
  await admin.query(`alter database ${TEMPLATE} with is_template true allow_connections false`);
  await admin.end();
}
