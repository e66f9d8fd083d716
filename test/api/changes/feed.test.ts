import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { StandbyError } from '../../../src/changes/epoch.js';
import { BOOKMARK_MS } from '../../../src/changes/stream.js';
import { SNAPSHOT_MAX_ROWS } from '../../../src/changes/shared-snapshots.js';
import { silentLog, type Log } from '../../../src/kernel/log.js';
import { startEmbedded } from '../../../src/store/embedded.js';
import { migrate } from '../../../src/store/migrate.js';
import { createDatabase, makeTestFolder, withClient, type TestDatabase } from '../../support/database.js';
import {
  endOf,
  everyDeployment,
  makeFeed,
  nameOf,
  quietHead,
  readDeployments,
  Reading,
  startFeed,
  takeChanges,
  watchDeployments,
  type TestFeed,
} from '../../support/feeds.js';
import { bump, seedDeployments } from '../../support/log-writers.js';
import { ManualClock } from '../../support/manual-clock.js';
import { waitFor } from '../../support/wait-for.js';

describe('the feed', () => {
  let database: TestDatabase;
  let client: pg.Client;
  const open: TestFeed[] = [];
  beforeEach(async () => {
    database = await createDatabase();
    client = new pg.Client(database.connection);
    await client.connect();
  });
  afterEach(async () => {
    for (const feed of open.splice(0)) await feed.close();
    await client.end();
    await database.drop();
  });
  const start = async (options: Parameters<typeof startFeed>[1] = {}): Promise<TestFeed> => {
    const made = await startFeed(database.connection, options);
    open.push(made);
    return made;
  };

  it('tells a bulk write whole and in order, to those who were there and to those who come in the middle', async () => {
    const { feed } = await start();
    const reading = new Reading(
      feed.open(
        everyDeployment(null, { matches: (_kind, object) => 'name' in object && /7$/.test(object.name) }),
      ),
    );
    const [seed = ''] = await seedDeployments(client, 1);
    await waitFor(() => feed.stats.changes === 2, 'the seed is told');
    await client.query(
      `insert into deployment (id, namespace, name, app, runtime_id) select 'dep_' || i, 'bulk', 'bulk-' || i, 'shop', runtime_id
       from generate_series(1, 12345) i, (select runtime_id from deployment where id = $1) d`,
      [seed],
    );
    feed.wake();
    const late: Reading[] = [];
    await waitFor(
      () => {
        if (feed.stats.changes > 2 && feed.stats.changes < 12_347 && late.length < 20) {
          late.push(new Reading(feed.open(everyDeployment(null))));
        }
        return feed.stats.changes === 12_347;
      },
      'the bulk is told',
      20_000,
    );
    await waitFor(() => reading.changes.length >= 1_234, 'the reader has its part');
    const seqs = reading.changes.map(({ change }) => change.seq);
    expect(seqs).toEqual([...seqs].sort((a, b) => (a < b ? -1 : 1)));
    expect(reading.changes.filter(({ change }) => change.namespace === 'bulk')).toHaveLength(1_234);
    for (const one of [reading, ...late]) await one.close();

    // Resuming inside of it, where the ring does not reach.
    const middle = reading.changes[600];
    if (!middle) throw new Error('a change in the middle');
    const again = feed.open(everyDeployment(middle.cursor));
    const rest = await takeChanges(again, 2_000);
    again.close();
    expect(rest[0]?.change.seq).toBe(middle.change.seq + 1n);
    expect(new Set(rest.map(({ change }) => nameOf(change))).size).toBe(2_000);
  });

  it('whole for who listens from the middle of a bulk write on', async () => {
    const { feed } = await start();
    const [seed = ''] = await seedDeployments(client, 1);
    await waitFor(() => feed.stats.changes === 2, 'the seed is told');
    let late: Reading | undefined;
    let lateAt = 0;
    feed.listen(['DEPLOYMENT'], (change) => {
      if (change.objectId === 'dep_1500' && !late) {
        lateAt = feed.stats.changes;
        late = new Reading(feed.open(everyDeployment(null)));
      }
    });
    await client.query(
      `insert into deployment (id, namespace, name, app, runtime_id) select 'dep_' || i, 'bulk', 'bulk-' || i, 'shop', runtime_id
       from generate_series(1, 3000) i, (select runtime_id from deployment where id = $1) d`,
      [seed],
    );
    feed.wake();
    await waitFor(() => (late?.changes.length ?? 0) >= 3_000, 'it is told the whole step');
    expect(lateAt).toBeLessThan(3_000);
    expect(new Set(late?.changes.map(({ change }) => change.objectId)).size).toBe(3_000);
    await late?.close();
  });

  it('tells its listeners before any stream, and survives one that throws', async () => {
    const errors: unknown[] = [];
    const log: Log = { ...silentLog, error: (fields) => errors.push(fields) };
    const { feed } = await start({ log });
    const told: string[] = [];
    feed.listen(['DEPLOYMENT'], () => {
      throw new Error('a bug');
    });
    const off = feed.listen(['DEPLOYMENT'], ({ objectId }) => told.push(objectId));
    feed.listen(['TOKEN'], () => told.push('a token'));
    const reading = new Reading(
      feed.open(everyDeployment(null, { matches: (_kind, { id }) => told.includes(id) })),
    );
    const [id = ''] = await seedDeployments(client, 1);
    await waitFor(() => reading.changes.length === 1, 'the change is told');
    expect(told).toEqual([id]);
    expect(errors).toHaveLength(1);
    off();
    await bump(client, id);
    await waitFor(() => reading.changes.length === 2, 'the change is told');
    expect(told).toEqual([id]);
    await reading.close();
  });

  it('stands still at a row that it cannot read, says which, and goes on when it can', async () => {
    const errors: string[] = [];
    const log: Log = {
      ...silentLog,
      error: (fields) => errors.push(String((fields as { err?: Error }).err)),
    };
    const { feed } = await start({ log });
    const cursor = await feed.head();
    const reading = new Reading(feed.open(everyDeployment(null)));
    await client.query('begin');
    const [a = ''] = await seedDeployments(client, 1);
    await client.query(
      "update change_payload p set after = jsonb_set(after, '{createdAt}', '17') from change c where c.seq = p.seq and c.object_id = $1",
      [a],
    );
    await client.query('commit');
    const { rows } = await client.query<{ seq: string }>('select seq from change where object_id = $1', [a]);
    await waitFor(() => reading.ended, 'the streams end');
    expect(reading.ended).toMatchObject({ code: 'UNAVAILABLE' });
    expect([feed.current, feed.stats.badRows, errors.length]).toEqual([false, 1, 1]);
    expect(errors[0]).toContain(`row ${rows[0]?.seq}`);
    expect(errors[0]).toContain(a);
    expect((await endOf(feed.open(everyDeployment(cursor)))).error.code).toBe('UNAVAILABLE');
    await bump(client, a);

    await client.query(
      "update change_payload p set after = jsonb_set(after, '{createdAt}', after->'updatedAt') from change c where c.seq = p.seq and c.object_id = $1",
      [a],
    );
    await waitFor(() => feed.current, 'the feed goes on');
    const stream = feed.open(everyDeployment(cursor));
    expect((await takeChanges(stream, 2)).map(({ change }) => nameOf(change))).toEqual([`${a}@1`, `${a}@2`]);
    stream.close();
  });

  it('loses its session without losing a change', async () => {
    const { feed } = await start();
    const reading = new Reading(feed.open(everyDeployment(null)));
    const [id = ''] = await seedDeployments(client, 1);
    for (let i = 0; i < 5; i += 1) {
      await client.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name like 'slipway %'",
      );
      await bump(client, id);
    }
    await waitFor(() => reading.changes.length === 6, 'all are told');
    expect(reading.changes.map(({ change }) => change.version)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(feed.stats.reconnects).toBeGreaterThan(0);
    await reading.close();
  });

  it('sends a bookmark after silence, from which a reader resumes', async () => {
    const clock = new ManualClock();
    const { feed } = await start({ clock });
    const stream = feed.open(everyDeployment(null));
    const waiting = stream.next();
    await waitFor(() => feed.stats.attached === 1, 'it listens');
    clock.advance(BOOKMARK_MS * 1.2 + 1_000);
    const bookmark = await waiting;
    expect(bookmark).toMatchObject({ type: 'bookmark', at: clock.now() });
    const [id] = await seedDeployments(client, 1);
    feed.wake();
    stream.close();
    const again = feed.open(everyDeployment(bookmark?.cursor ?? null));
    const [item] = await takeChanges(again, 1);
    expect(item?.change.objectId).toBe(id);
    again.close();
  });

  it('keeps cursors short and still while nothing is written, however many transactions pass', async () => {
    const { feed } = await start();
    await seedDeployments(client, 1);
    await waitFor(() => feed.stats.changes === 2, 'the seed is told');
    const before = await quietHead(feed);
    for (let i = 0; i < 50; i += 1) await client.query('select pg_current_xact_id()');
    expect(await feed.head()).toBe(before);
    expect(before.length).toBeLessThan(60);
  });

  it('refuses a second read of one stream while the first waits', async () => {
    const { feed } = await start();
    const stream = feed.open(everyDeployment(null));
    const first = stream.next();
    await expect(stream.next()).rejects.toThrow(/another call/);
    stream.close();
    expect(await first).toBeUndefined();
  });

  it('refuses a snapshot of more objects than it can hold, by name', async () => {
    const { feed } = await start();
    await seedDeployments(client, 1);
    const [row] = await readDeployments(client);
    if (!row) throw new Error('one was seeded');
    const snapshot = {
      key: 'huge',
      kind: 'DEPLOYMENT' as const,
      read: () => Promise.resolve(Array<typeof row>(SNAPSHOT_MAX_ROWS + 1).fill(row)),
    };
    const { error } = await endOf(feed.open(watchDeployments(null, { snapshot })));
    expect(error.code).toBe('SNAPSHOT_TOO_LARGE');
  });

  it('is current while it reads', async () => {
    const clock = new ManualClock();
    const made = makeFeed(database.connection, { clock });
    open.push(made);
    expect(made.feed.current).toBe(false);
    expect((await endOf(made.feed.open(everyDeployment(null)))).error.code).toBe('UNAVAILABLE');
    await made.feed.start();
    expect(made.feed.current).toBe(true);
    await made.feed.stop();
    expect(made.feed.current).toBe(false);
  });
});

describe('the feed on a standby', () => {
  it('refuses it, and follows a promoted one under a new epoch', async () => {
    const dataDir = makeTestFolder('feed-standby');
    const options = { dataDir, log: silentLog };
    const primary = await startEmbedded(options);
    await withClient(primary.connection, async (client) => {
      await migrate(client, { directory: 'prisma/migrations' });
      await seedDeployments(client, 1);
    });
    const first = await startFeed(primary.connection);
    const cursor = await first.feed.head();
    await first.close();
    await primary.stop();

    writeFileSync(join(dataDir, 'postgres', 'standby.signal'), '');
    const standby = await startEmbedded(options);
    await expect(startFeed(standby.connection)).rejects.toThrow(StandbyError);
    await withClient(standby.connection, (client) => client.query('select pg_promote(true, 30)'));
    const promoted = await startFeed(standby.connection);
    expect((await endOf(promoted.feed.open(everyDeployment(cursor)))).error.code).toBe('CURSOR_EXPIRED');
    const fresh = promoted.feed.open(everyDeployment(await promoted.feed.head()));
    const [id] = await withClient(standby.connection, (client) => seedDeployments(client, 1, 'after'));
    expect((await takeChanges(fresh, 1))[0]?.change.objectId).toBe(id);
    await promoted.close();
    await standby.stop();
  });
});
