import { kill } from 'node:process';

import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { silentLog } from '../../../src/kernel/log.js';
import { decodeCursor } from '../../../src/kernel/cursor.js';
import { parseSnapshot, visible } from '../../../src/kernel/snapshot.js';
import { startEmbedded, type EmbeddedPostgres } from '../../../src/store/embedded.js';
import { migrate } from '../../../src/store/migrate.js';
import { makeTestFolder, withClient } from '../../support/database.js';
import {
  everyDeployment,
  nameOf,
  Reading,
  startFeed,
  takeChanges,
  type TestFeed,
} from '../../support/feeds.js';
import { bump, seedDeployments } from '../../support/log-writers.js';
import { waitFor } from '../../support/wait-for.js';

describe('a crash of the database', () => {
  let server: EmbeddedPostgres;
  let replica: TestFeed;
  beforeAll(async () => {
    server = await startEmbedded({ dataDir: makeTestFolder('crash'), log: silentLog });
    await withClient(server.connection, (client) => migrate(client, { directory: 'prisma/migrations' }));
    replica = await startFeed(server.connection);
  });
  afterAll(async () => {
    await replica.close();
    await server.stop();
  });
  const crash = async () => {
    const { pid } = server;
    kill(pid, 'SIGKILL');
    await waitFor(() => server.pid !== pid, 'the database is started again', 30_000);
    await waitFor(
      () => withClient(server.connection, () => Promise.resolve(true)).catch(() => false),
      'the database answers',
      30_000,
    );
  };

  it('gives transaction ids out again that nobody may have counted as ended', async () => {
    const [id = ''] = await withClient(server.connection, (client) => seedDeployments(client, 1));
    const aborted = new pg.Client(server.connection);
    aborted.on('error', () => undefined); // it is killed below
    await aborted.connect();
    await aborted.query('begin');
    await bump(aborted, id);
    const { rows } = await aborted.query<{ xid: string }>('select pg_current_xact_id()::text as xid');
    const xid = BigInt(rows[0]?.xid ?? 0);
    await aborted.query('rollback');
    const naive = await withClient(server.connection, (client) =>
      client.query<{ s: string }>('select pg_current_snapshot()::text as s'),
    );
    const cursor = await replica.feed.head();
    const decoded = decodeCursor(cursor);
    // What a cursor made of the plain snapshot says of the id that was rolled back, and what ours says.
    expect(visible(xid, parseSnapshot(naive.rows[0]?.s ?? ''))).toBe(true);
    expect(decoded && visible(xid, decoded.at)).toBe(false);
    await crash();

    const reading = new Reading(replica.feed.open(everyDeployment(cursor)));
    await withClient(server.connection, async (client) => {
      for (let i = 0; i < 5; i += 1) await bump(client, id);
    });
    await waitFor(() => reading.changes.length === 5 || reading.ended, 'all are told', 20_000);
    expect(reading.changes.map(({ change }) => change.version)).toEqual([2, 3, 4, 5, 6]);
    await reading.close();
  });

  it('loses no change that was committed, for who listens and for who resumes', async () => {
    const [id = ''] = await withClient(server.connection, (client) => seedDeployments(client, 1));
    await waitFor(() => replica.feed.current, 'the feed is current', 20_000);
    const cursor = await replica.feed.head();
    const live = new Reading(replica.feed.open(everyDeployment(cursor)));
    const committed: string[] = [];
    for (let round = 0; round < 2; round += 1) {
      await withClient(server.connection, async (client) => {
        for (let i = 0; i < 10; i += 1) {
          await bump(client, id);
          committed.push(`${id}@${committed.length + 2}`);
        }
      });
      await crash();
    }
    await waitFor(() => live.changes.length === committed.length || live.ended, 'all are told', 20_000);
    expect(live.changes.map(({ change }) => nameOf(change))).toEqual(committed);
    await live.close();
    const again = replica.feed.open(everyDeployment(cursor));
    expect((await takeChanges(again, committed.length)).map(({ change }) => nameOf(change))).toEqual(
      committed,
    );
    again.close();
  });
});
