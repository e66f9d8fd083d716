import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { rotateEpoch } from '../../../src/changes/epoch.js';
import { decodeCursor, encodeCursor } from '../../../src/kernel/cursor.js';
import { createDatabase, withClient, type TestDatabase } from '../../support/database.js';
import {
  endOf,
  everyDeployment,
  nameOf,
  readDeployments,
  Reading,
  startFeed,
  takeChanges,
  watchDeployments,
  type ChangeItem,
  type TestFeed,
} from '../../support/feeds.js';
import { bump, seedDeployments, startWriters } from '../../support/log-writers.js';
import { waitFor } from '../../support/wait-for.js';

describe('resuming from a cursor', () => {
  let database: TestDatabase;
  let client: pg.Client;
  let old: TestFeed;
  beforeAll(async () => {
    database = await createDatabase();
    client = new pg.Client(database.connection);
    await client.connect();
    old = await startFeed(database.connection);
  });
  afterAll(async () => {
    await client.end();
    await old.close();
    await database.drop();
  });

  it('gives exactly what lies behind each cursor, from the ring as from the log', async () => {
    const ids = await seedDeployments(client, 20);
    const reading = new Reading(old.feed.open(everyDeployment(await old.feed.head())));
    const writers = startWriters(database.connection, {
      writers: 8,
      ids,
      transactions: 25,
      maxStallMs: 5,
      onCommit: () => old.feed.wake(),
    });
    await writers.done;
    await waitFor(() => reading.changes.length >= writers.committed.size, 'every change is told');
    await reading.close();
    const all = reading.changes;
    const fresh = await startFeed(database.connection); // its ring holds none of this
    try {
      for (const [i, { cursor }] of all.entries()) {
        if (i % 7 !== 0 || i === all.length - 1) continue;
        const wanted = all.slice(i + 1).map(({ change }) => nameOf(change));
        for (const { feed } of [old, fresh]) {
          const stream = feed.open(everyDeployment(cursor));
          const told = await takeChanges(stream, wanted.length);
          stream.close();
          expect(told.map(({ change }) => nameOf(change)).sort()).toEqual([...wanted].sort());
          expectVersionsInOrder(told);
        }
      }
      expect(old.feed.stats.ringResumes).toBeGreaterThan(0);
      expect(fresh.feed.stats.logResumes).toBeGreaterThan(0);
    } finally {
      await fresh.close();
    }
  });

  it('asks the database for nothing while the ring reaches back', async () => {
    const cursor = await old.feed.head();
    const ids = await seedDeployments(client, 3);
    await waitFor(() => old.feed.stats.ringChanges > 0 && old.feed.stats.changes > 0, 'the feed has read');
    const before = old.feed.stats.logResumes;
    const first = old.feed.open(everyDeployment(cursor));
    const [change] = await takeChanges(first, 1);
    first.close();
    const ringBefore = old.feed.stats.ringResumes;
    const second = old.feed.open(everyDeployment(change?.cursor ?? null));
    const told = await takeChanges(second, 2);
    second.close();
    expect(told.map(({ change: { objectId } }) => objectId)).toEqual(ids.slice(1));
    expect(old.feed.stats.ringResumes).toBe(ringBefore + 1);
    expect(old.feed.stats.logResumes - before).toBeLessThanOrEqual(1);
  });

  it('tells a list and what follows it without a gap or a repeat, whatever commits in between', async () => {
    const ids = await seedDeployments(client, 10, 'exact');
    const writers = startWriters(database.connection, {
      writers: 8,
      ids,
      maxStallMs: 5,
      onCommit: () => old.feed.wake(),
    });
    try {
      for (let round = 0; round < 15; round += 1) {
        const { rows, asOf } = await listOf(old);
        const held = new Map(rows.map((row) => [row.id, row.version]));
        const stream = old.feed.open(
          everyDeployment(old.feed.cursorOf(asOf), { namespaces: new Set(['exact']) }),
        );
        for (const { change } of await takeChanges(stream, 20)) {
          expect(change.version).toBe((held.get(change.objectId) ?? 0) + 1);
          held.set(change.objectId, change.version);
        }
        stream.close();
      }
    } finally {
      await writers.stop();
    }
  });

  it('goes on when the writer of the next change is still open at the cursor', async () => {
    const [a = '', b = ''] = await seedDeployments(client, 2);
    await withClient(database.connection, async (slow) => {
      await slow.query('begin');
      await bump(slow, a);
      await bump(client, b);
      const cursor = await old.feed.head(); // sees b, not a
      const stream = old.feed.open(everyDeployment(cursor));
      const next = takeChanges(stream, 1);
      await slow.query('commit');
      const [item] = await next;
      expect(item && nameOf(item.change)).toBe(`${a}@2`);
      stream.close();
    });
  });

  describe('a cursor that cannot be honoured', () => {
    const within = 50;
    const named = async (cursor: string, code: string) => {
      for (const open of [
        everyDeployment,
        (after: string) => watchDeployments(after, { onExpired: 'ERROR' }),
      ]) {
        const stream = old.feed.open(open(cursor));
        const { error, ms } = await endOf(stream);
        expect(error.code).toBe(code);
        expect(ms).toBeLessThan(within * 10); // the bar of 50 ms is measured in bench; here the machine is shared
        expect(await stream.next()).toBeUndefined();
      }
      await expect(
        old.feed.page({ kinds: ['DEPLOYMENT'], namespaces: 'all', after: cursor, limit: 10 }),
      ).rejects.toMatchObject({ code });
    };

    it('is CURSOR_INVALID when it was tampered with', async () => {
      const cursor = await old.feed.head();
      await named(`${cursor.slice(0, -1)}${cursor.endsWith('A') ? 'B' : 'A'}`, 'CURSOR_INVALID');
      await named('garbage', 'CURSOR_INVALID');
      await named('', 'CURSOR_INVALID');
    });

    it('is CURSOR_INVALID when it lies in the future', async () => {
      const now = decodeCursor(await old.feed.head());
      if (now?.form !== 'at') throw new Error('head is a plain cursor');
      const future = encodeCursor({ ...now, at: { xmax: now.at.xmax + 1_000_000n, xip: [] } });
      await named(future, 'CURSOR_INVALID');
      await named(
        encodeCursor({ ...now, form: 'within', from: { xmax: now.at.xmax + 9n, xip: [] }, seq: 1n }),
        'CURSOR_INVALID',
      );
    });

    it('is CURSOR_EXPIRED when it is of another history', async () => {
      const now = decodeCursor(await old.feed.head());
      if (now?.form !== 'at') throw new Error('head is a plain cursor');
      await named(encodeCursor({ ...now, epoch: 'f'.repeat(32) }), 'CURSOR_EXPIRED');
    });

    it('is answered with a Reset and a snapshot where the reader asked for that', async () => {
      const now = decodeCursor(await old.feed.head());
      if (now?.form !== 'at') throw new Error('head is a plain cursor');
      const foreign = encodeCursor({ ...now, epoch: 'f'.repeat(32) });
      const reading = new Reading(old.feed.open(watchDeployments(foreign)));
      await waitFor(
        () => reading.items.some(({ type }) => type === 'snapshotEnd'),
        'the snapshot is complete',
      );
      expect(reading.items[0]).toMatchObject({ type: 'reset', reason: 'CURSOR_EXPIRED' });
      expect(reading.items.filter(({ type }) => type === 'object').length).toBeGreaterThan(0);
      await reading.close();
    });
  });

  it('ends with CURSOR_EXPIRED, for those who listen too, when the history changes under them', async () => {
    const cursor = await old.feed.head();
    const live = new Reading(old.feed.open(everyDeployment(null)));
    const watch = new Reading(old.feed.open(watchDeployments(null)));
    await waitFor(() => watch.items.some(({ type }) => type === 'snapshotEnd'), 'the snapshot is complete');
    await rotateEpoch(old.database);
    await waitFor(() => live.ended, 'the stream ends');
    expect(live.ended).toMatchObject({ code: 'CURSOR_EXPIRED' });
    await waitFor(
      () => watch.items.filter(({ type }) => type === 'snapshotEnd').length === 2,
      'a new snapshot follows',
      15_000,
    );
    expect(watch.items.find(({ type }) => type === 'reset')).toMatchObject({ reason: 'CURSOR_EXPIRED' });
    await watch.close();
    expect((await endOf(old.feed.open(everyDeployment(cursor)))).error.code).toBe('CURSOR_EXPIRED');

    const after = await old.feed.head();
    const [id = ''] = await seedDeployments(client, 1);
    const stream = old.feed.open(everyDeployment(after));
    const [item] = await takeChanges(stream, 1);
    expect(item?.change.objectId).toBe(id);
    stream.close();
  });

  async function listOf(feed: TestFeed): Promise<{ rows: { id: string; version: number }[]; asOf: string }> {
    return feed.database.inTransaction(async (tx) => {
      const { rows: moment } = await tx.query<{ s: string }>('select pg_current_snapshot()::text as s');
      const rows = (await readDeployments(tx)) as { id: string; version: number; namespace: string }[]; // rows of deployments
      return { rows: rows.filter(({ namespace }) => namespace === 'exact'), asOf: moment[0]?.s ?? '' };
    }, 'REPEATABLE READ');
  }
});

function expectVersionsInOrder(items: readonly ChangeItem[]): void {
  const last = new Map<string, number>();
  for (const { change } of items) {
    const before = last.get(change.objectId);
    if (before !== undefined) expect(change.version).toBe(before + 1);
    last.set(change.objectId, change.version);
  }
}
