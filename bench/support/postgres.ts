/**
 * PostgreSQL for one run: an embedded one in a folder of its own, or the one of `--database-url`. Every contender works
 * on its own database of one cluster, so that none pays for what another writes.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';

import { silentLog } from '../../src/kernel/log.js';
import { startEmbedded, type Connection } from '../../src/store/embedded.js';
import { migrate } from '../../src/store/migrate.js';
import { createDatabaseOn, withClient, type TestDatabase } from '../../test/support/test-server.js';
import type { Closing } from './closing.js';

const MIGRATIONS = fileURLToPath(new URL('../../prisma/migrations', import.meta.url));

export interface Postgres {
  /** A migrated database with what `seed` puts in. Dropped with the cluster. */
  createDatabase(seed: (client: pg.Client) => Promise<unknown>): Promise<TestDatabase>;
}

export async function embeddedPostgres(closing: Closing, listen: 'socket' | 'tcp'): Promise<Postgres> {
  const dataDir = mkdtempSync(join(tmpdir(), 'slipway-bench-'));
  closing.add(() => rmSync(dataDir, { recursive: true, force: true }));
  const embedded = await startEmbedded({ dataDir, log: silentLog, listen });
  closing.add(() => embedded.stop());
  return postgresOn(closing, embedded.connection);
}

/** The user of `url` must be allowed to create databases; they are dropped at the end. */
export function externalPostgres(closing: Closing, url: string): Promise<Postgres> {
  const { hostname, port, username, password, pathname } = new URL(url);
  return postgresOn(closing, {
    host: hostname,
    port: Number(port || 5432),
    user: decodeURIComponent(username),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
    database: decodeURIComponent(pathname.slice(1)),
  });
}

async function postgresOn(closing: Closing, server: Connection): Promise<Postgres> {
  const create = async (template: string) => {
    const database = await createDatabaseOn(server, template);
    closing.add(() => database.drop());
    return database;
  };
  const template = await create('template0');
  await withClient(template.connection, (client) => migrate(client, { directory: MIGRATIONS }));
  return {
    async createDatabase(seed) {
      const database = await create(template.name);
      await withClient(database.connection, async (client) => {
        await seed(client);
        await client.query('vacuum analyze');
      });
      return database;
    },
  };
}
