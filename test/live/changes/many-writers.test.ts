import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

import {
  createDatabase,
  debianPostgres,
  externalPostgres,
  type TestDatabase,
} from '../../support/database.js';
import { migrate } from '../../../src/store/migrate.js';
import { createDatabaseOn } from '../../support/test-server.js';
import {
  everyDeployment,
  expectWhole,
  nameOf,
  Reading,
  startFeed,
  takeChanges,
  type ChangeItem,
  type TestFeed,
} from '../../support/feeds.js';
import { bump, seedDeployments, startWriters } from '../../support/log-writers.js';
import { waitFor } from '../../support/wait-for.js';
import { afterLastId, afterLastSeqBehindFence } from '../../support/wrong-readers.js';

const MIGRATIONS = 'prisma/migrations';

/** The servers that an operator may have; each gives a migrated database, or undefined where it is not installed. */
const SERVERS: Readonly<
  Record<string, () => Promise<{ database: TestDatabase; stop?: () => Promise<void> } | undefined>>
> = {
  'the embedded PostgreSQL': async () => ({ database: await createDatabase() }),
  'an external PostgreSQL': async () => ({
    database: await migrated(await (await externalPostgres()).createEmptyDatabase()),
  }),
  'the oldest supported PostgreSQL': async () => {
    const server = await debianPostgres();
    if (!server) return undefined;
    return {
      database: await migrated(await createDatabaseOn(server.connection, 'template0')),
      stop: () => server.stop(),
    };
  },
};

async function migrated(database: TestDatabase): Promise<TestDatabase> {
  const client = new pg.Client(database.connection);
  await client.connect();
  await migrate(client, { directory: MIGRATIONS });
  await client.end();
  return database;
}

describe.each(Object.keys(SERVERS))('the feed on %s', (name) => {
  let server: Awaited<ReturnType<(typeof SERVERS)[string]>>;
  const feeds: TestFeed[] = [];
  const clients: pg.Client[] = [];
  const connect = async (): Promise<pg.Client> => {
    const client = new pg.Client(server?.database.connection);
    await client.connect();
    clients.push(client);
    return client;
  };
  beforeAll(async () => {
    server = await SERVERS[name]?.();
    if (!server) return;
    feeds.push(await startFeed(server.database.connection), await startFeed(server.database.connection));
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.end();
  });
  afterAll(async () => {
    for (const feed of feeds) await feed.close();
    await server?.database.drop();
    await server?.stop?.();
  });

  it('tells every committed change once and in order on both replicas, where `id > last` loses some', async () => {
    if (!server) return; // not installed here; another machine runs it
    const ids = await seedDeployments(await connect(), 40);
    const wrong = afterLastId(await connect());
    const readings = feeds.map(({ feed }) => new Reading(feed.open(everyDeployment(null))));
    const writers = startWriters(server.database.connection, { writers: 16, ids, transactions: 60 });
    while (writers.running) await wrong.poll();
    await writers.done;
    await wrong.poll();
    for (const reading of readings) {
      const told = () => reading.changes.filter(({ change }) => change.version > 1);
      await waitFor(() => told().length >= writers.committed.size, 'every change is told');
      expectWhole(told(), writers.committed);
      await reading.close();
    }
    expect([...writers.committed].filter((change) => !wrong.told.has(change)).length).toBeGreaterThan(0);
  });

  it('loses nothing to a reader that is cut again and again and resumes on either replica', async () => {
    if (!server) return; // not installed here; another machine runs it
    const ids = await seedDeployments(await connect(), 40);
    const [first] = feeds;
    if (!first) throw new Error('no feed');
    let cursor = await first.feed.head();
    const writers = startWriters(server.database.connection, { writers: 16, ids, transactions: 60 });
    const told: ChangeItem[] = [];
    for (let cuts = 0; writers.running || told.length < writers.committed.size; cuts += 1) {
      const feed = feeds[cuts % feeds.length];
      const stream = feed?.feed.open(everyDeployment(cursor));
      if (!stream) throw new Error('no feed');
      const missing = Math.max(1, writers.committed.size - told.length);
      const part = await takeChanges(
        stream,
        writers.running ? 1 : Math.min(missing, 1 + Math.floor(Math.random() * 40)),
      );
      stream.close();
      told.push(...part);
      cursor = part.at(-1)?.cursor ?? cursor;
    }
    expectWhole(told, writers.committed);
  });
});

describe('an older number in a newer transaction', () => {
  let database: TestDatabase;
  let replica: TestFeed;
  const clients: pg.Client[] = [];
  beforeAll(async () => {
    database = await createDatabase();
    replica = await startFeed(database.connection);
    for (let i = 0; i < 4; i += 1) {
      const client = new pg.Client(database.connection);
      await client.connect();
      clients.push(client);
    }
  });
  afterAll(async () => {
    await replica.close();
    for (const client of clients) await client.end();
    await database.drop();
  });

  it('is told by the feed, and lost by `seq > last` even behind a fence', async () => {
    const [one, two, seeder, poller] = clients;
    if (!one || !two || !seeder || !poller) throw new Error('four clients were made');
    const [a = '', b = ''] = await seedDeployments(seeder, 2);
    const wrong = afterLastSeqBehindFence(poller);
    const reading = new Reading(replica.feed.open(everyDeployment(await replica.feed.head())));

    await one.query('begin');
    await one.query('select pg_current_xact_id()'); // the older transaction
    await two.query('begin');
    await bump(two, b); // the newer one draws the lower number
    await bump(one, a);
    await one.query('commit');
    await wrong.poll();
    await waitFor(() => reading.changes.length === 1, 'the first commit is told');
    await two.query('commit');
    await wrong.poll();
    await waitFor(() => reading.changes.length === 2, 'the second commit is told');

    expect(reading.changes.map(({ change }) => nameOf(change))).toEqual([`${a}@2`, `${b}@2`]);
    expect(BigInt(reading.changes[1]?.change.seq ?? 0)).toBeLessThan(reading.changes[0]?.change.seq ?? 0n);
    expect(wrong.told.has(`${a}@2`)).toBe(true);
    expect(wrong.told.has(`${b}@2`)).toBe(false);
    await reading.close();
  });
});
