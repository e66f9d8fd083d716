import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { rotateEpoch } from '../../../src/changes/epoch.js';
import { createRetention, type RetentionDeps } from '../../../src/changes/retention.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import {
  endOf,
  everyDeployment,
  nameOf,
  quietHead,
  startFeed,
  takeChanges,
  type TestFeed,
} from '../../support/feeds.js';
import { bump, seedDeployments } from '../../support/log-writers.js';

describe('retention of the change log', () => {
  let database: TestDatabase;
  let client: pg.Client;
  let replica: TestFeed;
  let id: string;
  beforeEach(async () => {
    database = await createDatabase();
    client = new pg.Client(database.connection);
    await client.connect();
    replica = await startFeed(database.connection);
    id = (await seedDeployments(client, 1))[0] ?? '';
  });
  afterEach(async () => {
    await replica.close();
    await client.end();
    await database.drop();
  });
  const prune = (over: Partial<RetentionDeps> = {}) =>
    createRetention({ database: replica.database, ...over }).run();
  /** As if what was written so far had been written so many hours ago. */
  const age = (hours: number) =>
    client.query('update change set at = at - make_interval(hours => $1)', [hours]);
  const counts = async () => {
    const { rows } = await client.query<{ rows: number; payloads: number; floor: string }>(
      'select (select count(*) from change)::int as rows, (select count(*) from change_payload)::int as payloads, floor_seq as floor from log_state',
    );
    return rows[0];
  };

  it('takes payloads after their age, and remembers that nothing before them can be resumed from', async () => {
    const fresh = await startFeed(database.connection);
    const early = await fresh.feed.head();
    await bump(client, id);
    const aged = await quietHead(fresh.feed);
    await age(8 * 24);
    await bump(client, id);
    expect(await prune()).toEqual({ payloads: 3, rows: 0, more: false });
    expect(await counts()).toMatchObject({ rows: 4, payloads: 1 });
    await fresh.close();

    const late = await startFeed(database.connection);
    try {
      expect((await endOf(late.feed.open(everyDeployment(early)))).error.code).toBe('CURSOR_EXPIRED');
      const stream = late.feed.open(everyDeployment(aged));
      expect((await takeChanges(stream, 1)).map(({ change }) => nameOf(change))).toEqual([`${id}@3`]);
      stream.close();
      // The slim rows are still there to be paged through, and those behind the floor to be resumed from.
      const page = await late.feed.page({ kinds: ['DEPLOYMENT'], namespaces: 'all', after: null, limit: 10 });
      expect(page.entries.map(nameOf)).toEqual([`${id}@1`, `${id}@2`, `${id}@3`]);
      expect((await endOf(late.feed.open(everyDeployment(page.entries[0]?.cursor ?? null)))).error.code).toBe(
        'CURSOR_EXPIRED',
      );
      const behind = late.feed.open(everyDeployment(page.entries[1]?.cursor ?? null));
      expect((await takeChanges(behind, 1)).map(({ change }) => nameOf(change))).toEqual([`${id}@3`]);
      behind.close();
    } finally {
      await late.close();
    }
  });

  it('leaves what is younger than 48 hours, whatever it is told', async () => {
    await age(47);
    expect(await prune({ payloadDays: 0, rowDays: 0 })).toEqual({ payloads: 0, rows: 0, more: false });
    await age(2);
    expect(await prune({ payloadDays: 0, rowDays: 0 })).toEqual({ payloads: 2, rows: 2, more: false });
    expect(await counts()).toMatchObject({ rows: 0, payloads: 0 });
  });

  it('takes rows after their own age, and never lets the floor go back', async () => {
    const early = await replica.feed.head();
    await bump(client, id);
    await age(401 * 24);
    await bump(client, id);
    expect(await prune()).toEqual({ payloads: 3, rows: 3, more: false });
    // Nothing of the lost row is left to stumble over: the floor alone tells that there was one.
    const late = await startFeed(database.connection);
    expect((await endOf(late.feed.open(everyDeployment(early)))).error.code).toBe('CURSOR_EXPIRED');
    await late.close();
    const before = await counts();
    expect(before).toMatchObject({ rows: 1, payloads: 1 });
    expect(await prune()).toEqual({ payloads: 0, rows: 0, more: false });
    expect(await counts()).toEqual(before);
  });

  it('works in batches, one replica at a time', async () => {
    await client.query(
      `insert into deployment (id, namespace, name, app, runtime_id) select 'dep_' || i, 'bulk', 'bulk-' || i, 'shop', runtime_id
       from generate_series(1, 4500) i, (select runtime_id from deployment where id = $1) d`,
      [id],
    );
    await age(8 * 24);
    const passes = await Promise.all([prune(), prune(), prune()]);
    const removed = passes.reduce((sum, { payloads }) => sum + payloads, 0) + (await prune()).payloads;
    expect(removed).toBe(4_502);
    expect((await counts())?.payloads).toBe(0);
  });

  it('says when a pass ended before the end, and goes on with the next', async () => {
    await client.query('delete from change_payload');
    await client.query('delete from change');
    await client.query(
      `insert into change (kind, object_id, op, version, actor, at)
       select 'RUNTIME', 'rt_' || i, 'INSERT', 1, 'system:test', now() - interval '500 days' from generate_series(1, 100500) i`,
    );
    expect(await prune()).toEqual({ payloads: 0, rows: 100_000, more: true });
    expect(await prune()).toEqual({ payloads: 0, rows: 500, more: false });
  });

  it('ends a stream that reads too slowly with CURSOR_EXPIRED, never with a gap', async () => {
    const early = await replica.feed.head();
    await client.query(
      `insert into deployment (id, namespace, name, app, runtime_id) select 'dep_' || i, 'bulk', 'bulk-' || i, 'shop', runtime_id
       from generate_series(1, 1500) i, (select runtime_id from deployment where id = $1) d`,
      [id],
    );
    const late = await startFeed(database.connection);
    const stream = late.feed.open(everyDeployment(early));
    await takeChanges(stream, 10);
    await age(8 * 24);
    await prune();
    const rest = takeChanges(stream, 1_490);
    await expect(rest).rejects.toMatchObject({ code: 'CURSOR_EXPIRED' });
    await late.close();
  });

  it('begins again below a rotated epoch, where rows of another history hold no place in the new one', async () => {
    await age(8 * 24);
    await prune();
    // As a restored dump has them: transactions far ahead of those of this cluster.
    await client.query("update change set xid = '900000000000'");
    await client.query("update log_state set floor_xid = '900000000001'");
    await rotateEpoch(replica.database);
    const feed = await startFeed(database.connection);
    const stream = feed.feed.open(everyDeployment(await feed.feed.head()));
    await bump(client, id);
    expect((await takeChanges(stream, 1)).map(({ change }) => nameOf(change))).toEqual([`${id}@2`]);
    const page = await feed.feed.page({ kinds: ['DEPLOYMENT'], namespaces: 'all', after: null, limit: 10 });
    expect(page.entries.map(nameOf)).toEqual([`${id}@1`, `${id}@2`]);
    // Only what lies behind the last pruned row has its payload.
    const behind = feed.feed.open(everyDeployment(page.entries[0]?.cursor ?? null));
    expect((await takeChanges(behind, 1)).map(({ change }) => nameOf(change))).toEqual([`${id}@2`]);
    behind.close();
    stream.close();
    await feed.close();
  });
});
