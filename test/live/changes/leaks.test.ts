import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { systemClock, type Clock } from '../../../src/kernel/clock.js';
import { createDatabase, withClient, type TestDatabase } from '../../support/database.js';
import { everyDeployment, startFeed, watchDeployments, type TestFeed } from '../../support/feeds.js';
import { seedDeployments } from '../../support/log-writers.js';
import { waitFor } from '../../support/wait-for.js';

const CYCLES = 3_000;

describe('opening and closing streams', () => {
  let database: TestDatabase;
  let replica: TestFeed;
  const timers = new Set<object>();
  const clock: Clock = {
    now: () => systemClock.now(),
    monotonicMs: () => systemClock.monotonicMs(),
    after(ms, run) {
      const timer = {};
      timers.add(timer);
      const cancel = systemClock.after(ms, () => {
        timers.delete(timer);
        run();
      });
      return () => {
        timers.delete(timer);
        cancel();
      };
    },
  };
  beforeAll(async () => {
    database = await createDatabase();
    replica = await startFeed(database.connection, { clock });
    await withClient(database.connection, (client) => seedDeployments(client, 20));
    replica.feed.wake();
    await waitFor(() => replica.feed.stats.changes === 21, 'the objects are told');
  });
  afterAll(async () => {
    await replica.close();
    await database.drop();
  });

  it('leaves no stream, mailbox, listener or timer behind, wherever it was closed', async () => {
    const { feed } = replica;
    const cursor = await feed.head();
    const foreign = `${cursor.slice(0, -2)}AA`;
    const asked: Promise<unknown>[] = [];
    for (let cycle = 0; cycle < CYCLES; cycle += 1) {
      const request = [
        everyDeployment(null),
        everyDeployment(cursor),
        watchDeployments(null),
        watchDeployments(cursor),
        everyDeployment(foreign),
        everyDeployment(null, { objectIds: new Set(['dep_a', 'dep_b']) }),
        everyDeployment(null, { namespaces: new Set(['a', 'b']) }),
      ][cycle % 7];
      if (!request) throw new Error('seven requests');
      const stream = feed.open(request);
      const unlisten = feed.listen(['DEPLOYMENT'], () => undefined);
      // Some close before the first read, some while it is under way, some after it.
      if (cycle % 3 > 0) {
        const next = stream.next().catch(() => undefined);
        asked.push(next);
        if (cycle % 3 === 2 && request.after === null && request.mode === 'LATEST') await next;
      }
      stream.close();
      stream.close();
      unlisten();
      unlisten();
      if (cycle % 500 === 0) await Promise.all(asked.splice(0));
    }
    await Promise.all(asked);
    await waitFor(() => timers.size <= 3, 'only the poll, the tick and the proof wait');
    expect(feed.stats).toMatchObject({ streams: 0, attached: 0, pendingItems: 0, listeners: 0, waiting: 0 });
  });

  it('ends what is open when the feed stops, and every session and timer with it', async () => {
    const own = await startFeed(database.connection, { clock });
    const before = timers.size;
    const streams = [
      everyDeployment(null),
      watchDeployments(null),
      everyDeployment(await own.feed.head()),
    ].map((request) => own.feed.open(request));
    const ends = streams.map((stream) =>
      (async () => {
        while (await stream.next());
      })().catch((error: unknown) => error),
    );
    await waitFor(() => own.feed.stats.attached === 3, 'all have reached the live feed');
    await own.close();
    for (const end of await Promise.all(ends)) expect(end).toMatchObject({ code: 'UNAVAILABLE' });
    expect(own.feed.stats).toMatchObject({ streams: 0, attached: 0, pendingItems: 0, waiting: 0 });
    expect(own.feed.current).toBe(false);
    expect(timers.size).toBeLessThan(before);
    await withClient(database.connection, async (client) => {
      await waitFor(async () => {
        const { rows } = await client.query<{ n: number }>(
          "select count(*)::int as n from pg_stat_activity where datname = current_database() and application_name like 'slipway %'",
        );
        return (rows[0]?.n ?? 9) <= 3; // those of the other feed
      }, 'its sessions are gone');
    });
  });
});
