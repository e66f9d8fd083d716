import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createDatabase,
  debianPostgres,
  externalPostgres,
  withClient,
  type TestDatabase,
} from '../support/database.js';

describe('test databases', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createDatabase();
  });
  afterAll(() => database.drop());

  it('are reached by their connection and by their url', async () => {
    for (const address of [database.connection, { connectionString: database.url }]) {
      const { rows } = await withClient(address, (client) =>
        client.query('select current_database() as name'),
      );
      expect(rows).toEqual([{ name: database.name }]);
    }
  });

  it('come from one external server over TCP', async () => {
    const [one, two] = await Promise.all([externalPostgres(), externalPostgres()]);
    expect(one).toBe(two);
    const external = await one.createEmptyDatabase();
    expect(new URL(external.url).hostname).toBe('127.0.0.1');
    const { rows } = await withClient({ connectionString: external.url }, (client) =>
      client.query('select current_database() as name'),
    );
    expect(rows).toEqual([{ name: external.name }]);
    await external.drop();
  });

  it('come from PostgreSQL 15 where it is installed', async () => {
    const server = await debianPostgres();
    if (server === undefined) return;
    const { rows } = await withClient(server.connection, (client) =>
      client.query(`select current_setting('server_version') as version`),
    );
    expect(rows).toEqual([{ version: expect.stringMatching(/^15\./) }]);
    await server.stop();
  });
});
