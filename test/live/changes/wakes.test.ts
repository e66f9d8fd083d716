import { join } from 'node:path';

import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { createWakes, PROOF_INTERVAL_MS, PROOF_TIMEOUT_MS, type Wakes } from '../../../src/changes/wakes.js';
import { silentLog } from '../../../src/kernel/log.js';
import { makePool } from '../../../src/store/pool.js';
import { sessionsLike, type OpenSession } from '../../../src/store/session.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { startFaultProxy, type FaultProxy } from '../../support/fault-proxy.js';
import { everyDeployment, Reading, startFeed, type TestFeed } from '../../support/feeds.js';
import { bump, seedDeployments } from '../../support/log-writers.js';
import { ManualClock } from '../../support/manual-clock.js';
import { waitFor } from '../../support/wait-for.js';

describe('waking', () => {
  let database: TestDatabase;
  let proxy: FaultProxy;
  let client: pg.Client;
  const open: { close(): Promise<unknown> }[] = [];
  beforeEach(async () => {
    database = await createDatabase();
    const { host, port } = database.connection;
    proxy = await startFaultProxy(
      host.startsWith('/') ? { path: join(host, `.s.PGSQL.${port}`) } : { host, port },
    );
    client = new pg.Client(database.connection);
    await client.connect();
  });
  afterEach(async () => {
    for (const part of open.splice(0)) await part.close();
    await client.end();
    await proxy.close();
    await database.drop();
  });
  const through = () => ({ ...database.connection, host: proxy.host, port: proxy.port });
  const feed = async (options: Parameters<typeof startFeed>[1] = {}): Promise<TestFeed> => {
    const made = await startFeed(database.connection, options);
    open.push(made);
    return made;
  };

  it('another process hears of a commit without waiting for its poll', async () => {
    // A clock that stands still never polls: only the notification can bring the change.
    const listener = await feed({ clock: new ManualClock() });
    const writer = await feed();
    const reading = new Reading(listener.feed.open(everyDeployment(null)));
    await waitFor(async () => (await listening(client)) === 2, 'both feeds listen');
    await seedDeployments(writer.database.pool, 1);
    writer.feed.wake();
    await waitFor(() => reading.changes.length === 1, 'the change is told');
    await reading.close();
  });

  it('a process hears of its own commits at once', async () => {
    const [id = ''] = await seedDeployments(client, 1);
    const { feed: own, database: store } = await feed({ clock: new ManualClock() });
    const reading = new Reading(own.open(everyDeployment(null)));
    await store.inTransaction((tx) => bump(tx, id));
    await waitFor(() => reading.changes.length === 1, 'the change is told');
    await reading.close();
  });

  it('many commits become few notifications, and none is sent inside a writer’s transaction', async () => {
    const writer = await feed();
    let heard = 0;
    client.on('notification', () => (heard += 1));
    await client.query('listen slipway_change');
    const started = performance.now();
    for (let i = 0; i < 500; i += 1) writer.feed.wake();
    await waitFor(() => heard > 0, 'a notification comes');
    const [id = ''] = await seedDeployments(writer.database.pool, 1);
    for (let i = 0; i < 200; i += 1) {
      await bump(writer.database.pool, id);
      writer.feed.wake();
    }
    // One each 5 ms at most, and the one that was under way.
    expect(heard).toBeLessThanOrEqual((performance.now() - started) / 5 + 2);
    const { rows } = await client.query<{ n: number }>(
      "select count(*)::int as n from pg_proc p where p.pronamespace = 'public'::regnamespace and p.prosrc ~* 'notify'",
    );
    expect(rows[0]?.n).toBe(0);
  });

  it('no change comes later than 1.2 s while the listening session is a black hole', async () => {
    const deaf = await feed({ listenThrough: through() });
    const reading = new Reading(deaf.feed.open(everyDeployment(null)));
    await waitFor(() => proxy.live === 1, 'the feed listens through the proxy');
    const [id = ''] = await seedDeployments(client, 1);
    await waitFor(() => reading.changes.length === 1, 'the object is told');
    expect(proxy.cut('BLACK_HOLE')).toBe(1);
    const delays: number[] = [];
    for (let i = 0; i < 5; i += 1) {
      const committed = performance.now();
      await bump(client, id);
      await waitFor(() => reading.changes.length === i + 2, 'the change is told');
      delays.push(performance.now() - committed);
    }
    expect(Math.max(...delays)).toBeLessThan(1_200);
    await reading.close();
  });

  describe('the listening session', () => {
    const start = (openSession: OpenSession, clock: ManualClock): { wakes: Wakes; count: () => number } => {
      let woken = 0;
      const wakes = createWakes({ openSession, clock, log: silentLog, onWake: () => (woken += 1) });
      wakes.start();
      open.push({ close: () => Promise.resolve(wakes.stop()) });
      return { wakes, count: () => woken };
    };
    const sessions = (): OpenSession => {
      const pool = makePool({
        database: { connection: through() },
        size: 1,
        applicationName: 'test',
        log: silentLog,
      });
      open.push({ close: () => pool.end() });
      return sessionsLike(pool);
    };

    it.each(['BLACK_HOLE', 'RST', 'FIN'] as const)('is opened anew after %s', async (fault) => {
      const clock = new ManualClock();
      const { wakes, count } = start(sessions(), clock);
      await waitFor(() => count() === 1 && clock.waiting.length > 0, 'it listens');
      proxy.cut(fault);
      if (fault === 'BLACK_HOLE') {
        clock.advance(PROOF_INTERVAL_MS);
        clock.advance(PROOF_TIMEOUT_MS);
      }
      await waitFor(() => wakes.reconnects === 1, 'the loss is noticed');
      clock.advance(1_000);
      await waitFor(() => count() === 2, 'it listens again, and wakes for what it may have missed');
      await client.query('notify slipway_change');
      await waitFor(() => count() === 3, 'notifications arrive again');
    });

    it('is left alone while its proof comes back', async () => {
      const clock = new ManualClock();
      const { wakes, count } = start(sessions(), clock);
      await waitFor(() => count() === 1 && clock.waiting.length > 0, 'it listens');
      for (let round = 0; round < 3; round += 1) {
        clock.advance(clock.waiting[0] ?? 0); // sends the proof
        await client.query('notify slipway_change');
        await waitFor(() => count() === round + 2, 'what was sent after the proof has come'); // so the proof has, too
        clock.advance(PROOF_TIMEOUT_MS);
      }
      expect(wakes.reconnects).toBe(0);
    });
  });
});

async function listening(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ n: number }>(
    "select count(*)::int as n from pg_stat_activity where application_name = 'slipway listen' and query ilike 'listen slipway_proof%' and datname = current_database()",
  );
  return rows[0]?.n ?? 0;
}
