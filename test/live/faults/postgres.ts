/** A PostgreSQL of the harness's own, over TCP, that it may stop as hard as it likes. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import pg from 'pg';

import { silentLog } from '../../../src/kernel/log.js';
import { startEmbedded, type Connection } from '../../../src/store/embedded.js';
import { migrate } from '../../../src/store/migrate.js';
import {
  createDatabaseOn,
  TEMPLATE,
  TEST_SETTINGS,
  withClient,
  type TestDatabase,
} from '../../support/test-server.js';
import { waitFor } from '../../support/wait-for.js';

export interface Postgres {
  readonly connection: Connection;
  readonly pid: number;
  createDatabase(): Promise<TestDatabase>;
  /** `SIGQUIT` is PostgreSQL's immediate shutdown, `SIGKILL` leaves it no word. It is started again at once. */
  crash(signal: 'SIGQUIT' | 'SIGKILL'): Promise<void>;
  stop(): Promise<void>;
}

const MIGRATIONS = fileURLToPath(new URL('../../../prisma/migrations', import.meta.url));

export async function startPostgres(folder: string): Promise<Postgres> {
  const embedded = await startEmbedded({
    dataDir: join(folder, 'postgres'),
    log: silentLog,
    listen: 'tcp',
    // A crash then loses what no commit has carried to the disk, such as the ids of transactions that were rolled back.
    settings: { ...TEST_SETTINGS, wal_writer_delay: '10s' },
  });
  const { connection } = embedded;
  await withClient(connection, (admin) => admin.query(`create database ${TEMPLATE}`));
  await withClient({ ...connection, database: TEMPLATE }, (client) =>
    migrate(client, { directory: MIGRATIONS }),
  );
  return {
    connection,
    get pid() {
      return embedded.pid;
    },
    createDatabase: () => createDatabaseOn(connection, TEMPLATE),
    async crash(signal) {
      const { pid } = embedded;
      process.kill(pid, signal);
      await waitFor(() => embedded.pid !== pid, 'PostgreSQL is started again', 60_000);
      await waitFor(() => answers(connection), 'PostgreSQL answers', 60_000);
    },
    stop: () => embedded.stop(),
  };
}

async function answers(connection: Connection): Promise<boolean> {
  const client = new pg.Client(connection);
  client.on('error', () => undefined); // it may be killed again
  try {
    await client.connect();
    await client.query('select 1');
    await client.end();
    return true;
  } catch {
    return false;
  }
}
