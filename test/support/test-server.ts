import { randomBytes } from 'node:crypto';
import pg from 'pg';
import type { Connection } from '../../src/store/embedded.js';

export const TEMPLATE = 'slipway_template';

/** What makes tests fast and only matters when the machine loses power. */
export const TEST_SETTINGS = { fsync: 'off', full_page_writes: 'off', max_connections: '400' };

export type TestDatabase = {
  readonly name: string;
  readonly connection: Connection;
  /** The same as a `DATABASE_URL`. */
  readonly url: string;
  /** Ends all sessions in it. */
  drop(): Promise<void>;
};

function urlOf(connection: Connection): string {
  const { host, port, user, password, database } = connection;
  const login = password === undefined ? user : `${user}:${encodeURIComponent(password)}`;
  return host.startsWith('/')
    ? `postgresql://${login}@localhost:${port}/${database}?host=${encodeURIComponent(host)}`
    : `postgresql://${login}@${host}:${port}/${database}`;
}

export async function withClient<T>(
  connection: pg.ClientConfig,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client(connection);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

export async function createDatabaseOn(server: Connection, template: string): Promise<TestDatabase> {
  const name = `test_${randomBytes(6).toString('hex')}`;
  await withClient(server, (client) => client.query(`create database ${name} template ${template}`));
  const connection = { ...server, database: name };
  return {
    name,
    connection,
    url: urlOf(connection),
    async drop() {
      await withClient(server, (client) => client.query(`drop database if exists ${name} with (force)`));
    },
  };
}
