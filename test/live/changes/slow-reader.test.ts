import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { EVERY_MAX_CHANGES } from '../../../src/changes/mailbox.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import {
  endOf,
  everyDeployment,
  nameOf,
  Reading,
  startFeed,
  takeChanges,
  watchDeployments,
  type TestFeed,
} from '../../support/feeds.js';
import { bump, seedDeployments } from '../../support/log-writers.js';
import { waitFor } from '../../support/wait-for.js';

describe('a reader that does not read', () => {
  let database: TestDatabase;
  let replica: TestFeed;
  let client: pg.Client;
  let ids: string[];
  beforeAll(async () => {
    database = await createDatabase();
    replica = await startFeed(database.connection);
    client = new pg.Client(database.connection);
    await client.connect();
    ids = await seedDeployments(client, 600);
    replica.feed.wake();
    await waitFor(() => replica.feed.stats.changes >= 601, 'the objects are told');
  });
  afterAll(async () => {
    await replica.close();
    await client.end();
    await database.drop();
  });
  const bumpAll = async () => {
    await client.query(
      "update deployment set version = version + 1, changed_by = 'system:test', change_token = gen_random_uuid()::text",
    );
    replica.feed.wake();
  };

  it('ends alone with SLOW_CONSUMER and its last cursor, from which it resumes without a loss', async () => {
    const healthy = new Reading(replica.feed.open(everyDeployment(null)));
    const slow = replica.feed.open(everyDeployment(null));
    await bumpAll();
    const taken = await takeChanges(slow, 5);
    for (let i = 0; i < 2; i += 1) await bumpAll();
    await waitFor(() => healthy.changes.length === 1_800, 'the healthy reader is told everything');
    expect(healthy.ended).toBeUndefined();

    const { error } = await endOf(slow);
    expect(error).toMatchObject({ code: 'SLOW_CONSUMER', cursor: taken.at(-1)?.cursor });
    expect(await slow.next()).toBeUndefined();
    expect(slow.size).toBe(0);

    const again = replica.feed.open(everyDeployment(error.cursor));
    const rest = await takeChanges(again, 1_795);
    again.close();
    const told = [...taken, ...rest].map(({ change }) => nameOf(change));
    expect(told.sort()).toEqual(healthy.changes.map(({ change }) => nameOf(change)).sort());
    await healthy.close();
  });

  it('keeps a bounded mailbox, however much is told', async () => {
    const slow = replica.feed.open(everyDeployment(null));
    await bumpAll();
    await waitFor(() => slow.size === 600, 'the mailbox fills');
    expect(slow.size).toBeLessThanOrEqual(EVERY_MAX_CHANGES);
    slow.close();
  });

  it('of the latest objects is reset, told so, and given a new snapshot', async () => {
    const slow = replica.feed.open(watchDeployments(null));
    let item = await slow.next();
    while (item && item.type !== 'snapshotEnd') item = await slow.next();
    const reading = slow.next(); // reaches the live feed
    await bump(client, ids[0] ?? '');
    replica.feed.wake();
    expect(await reading).toMatchObject({ type: 'change', had: true, has: true });
    const resets = replica.feed.stats.resets;
    await bumpAll();
    await waitFor(() => replica.feed.stats.slowConsumers > 1, 'the mailbox overflows');
    expect(slow.size).toBe(0);

    expect(await slow.next()).toMatchObject({ type: 'reset', reason: 'SLOW_CONSUMER' });
    const versions = new Map<string, number>();
    for (item = await slow.next(); item && item.type !== 'snapshotEnd'; item = await slow.next()) {
      if (item.type === 'object' && 'version' in item.object) {
        versions.set(item.object.id, item.object.version);
      }
    }
    expect(versions.size).toBe(600);
    const { rows } = await client.query<{ id: string; version: number }>(
      'select id, version from deployment',
    );
    for (const row of rows) expect(versions.get(row.id)).toBe(row.version);
    expect(replica.feed.stats.resets).toBe(resets + 1);
    slow.close();
  });

  it('of the latest objects without a snapshot to fall back on ends', async () => {
    const { snapshot: _none, ...request } = watchDeployments(await replica.feed.head());
    const slow = replica.feed.open(request);
    const first = slow.next();
    await bump(client, ids[0] ?? '');
    replica.feed.wake();
    await first;
    await bumpAll();
    await waitFor(
      () => slow.cursor !== null && replica.feed.stats.slowConsumers > 2,
      'the mailbox overflows',
    );
    expect((await endOf(slow)).error.code).toBe('SLOW_CONSUMER');
  });
});
