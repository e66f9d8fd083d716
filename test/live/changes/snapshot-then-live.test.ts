import { setImmediate as turn } from 'node:timers/promises';

import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { ChangeStream, StreamRequest } from '../../../src/changes/feed.js';
import { newId } from '../../../src/kernel/ids.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { readDeployments, startFeed, watchDeployments, type TestFeed } from '../../support/feeds.js';
import { seedDeployments } from '../../support/log-writers.js';
import { waitFor } from '../../support/wait-for.js';

type Held = Map<string, number>;
type Row = { id: string; version: number; app: string };

describe('a snapshot and the changes behind it', () => {
  let database: TestDatabase;
  let replica: TestFeed;
  const clients: pg.Client[] = [];
  const connect = async () => {
    const client = new pg.Client(database.connection);
    await client.connect();
    clients.push(client);
    return client;
  };
  beforeAll(async () => {
    database = await createDatabase();
    replica = await startFeed(database.connection);
  });
  afterAll(async () => {
    await replica.close();
    for (const client of clients) await client.end();
    await database.drop();
  });

  /** Objects in the filter `app = shop`, as the reader of one stream holds them. */
  class Holder {
    readonly held: Held = new Map();
    readonly stream: ChangeStream;
    readonly problems: string[] = [];
    readonly done: Promise<void>;
    readonly #slow: boolean;
    snapshots = 0;
    resets = 0;

    constructor(request: StreamRequest, slow: boolean) {
      this.stream = replica.feed.open(request);
      this.#slow = slow;
      this.done = this.#run();
    }

    async #run(): Promise<void> {
      for (let item = await this.stream.next(); item; item = await this.stream.next()) {
        if (item.type === 'object') {
          this.held.set(item.object.id, 'version' in item.object ? item.object.version : 0);
        } else if (item.type === 'snapshotEnd') this.snapshots += 1;
        else if (item.type === 'reset') this.held.clear();
        else if (item.type === 'change') this.#apply(item);
        if (item.type === 'reset') this.resets += 1;
        if (this.#slow) for (let i = 0; i < Math.random() * 30; i += 1) await turn();
      }
    }

    #apply({
      change,
      had,
      has,
    }: {
      change: { objectId: string; version: number };
      had: boolean;
      has: boolean;
    }): void {
      const { objectId, version } = change;
      if (had !== this.held.has(objectId)) this.problems.push(`${objectId}@${version}: had ${had}`);
      if (version <= (this.held.get(objectId) ?? 0)) {
        this.problems.push(`${objectId}@${version}: told already`);
      }
      if (has) this.held.set(objectId, version);
      else this.held.delete(objectId);
    }
  }

  const inShop = (object: object): boolean => 'app' in object && object.app === 'shop';
  const shop = (): StreamRequest =>
    watchDeployments(null, {
      matches: (_kind, object) => inShop(object),
      snapshot: {
        key: 'shop',
        kind: 'DEPLOYMENT',
        read: async (tx) => (await readDeployments(tx)).filter(inShop),
      },
    });

  it('hold together without a differing object, however fast the writers and slow the readers are', async () => {
    const client = await connect();
    const ids = await seedDeployments(client, 60);
    const { rows } = await client.query<{ runtime_id: string }>('select runtime_id from deployment limit 1');
    const stop = new AbortController();
    const write = async (writer: pg.Client) => {
      while (!stop.signal.aborted) {
        await writer.query('begin');
        for (let i = 0; i < 3; i += 1) {
          await writeOne(writer, ids, rows[0]?.runtime_id ?? '').catch(() => undefined);
        }
        await writer.query(Math.random() < 0.1 ? 'rollback' : 'commit');
        replica.feed.wake();
      }
    };
    const writers = [write(await connect()), write(await connect()), write(await connect())];
    const holders: Holder[] = [];
    for (let i = 0; i < 60; i += 1) {
      const holder = new Holder(shop(), i % 3 === 0);
      holders.push(holder);
      await waitFor(() => holder.snapshots > 0, 'a snapshot is complete');
    }
    stop.abort();
    await Promise.all(writers);
    const head = await client.query<Row>(
      "select id, version, app from deployment where deleted_at is null and app = 'shop'",
    );
    const truth = new Map(head.rows.map(({ id, version }) => [id, version]));
    for (const holder of holders) {
      await waitFor(
        () => sameMap(holder.held, truth),
        `the reader holds the truth: ${difference(holder.held, truth)}`,
      );
      expect(holder.problems).toEqual([]);
      holder.stream.close();
      await holder.done;
    }
  });

  it('share one read where equal requests come together', async () => {
    const before = replica.feed.stats.snapshotReads;
    const holders = Array.from({ length: 50 }, () => new Holder(shop(), false));
    for (const holder of holders) {
      await waitFor(() => holder.snapshots > 0, 'a snapshot is complete');
      holder.stream.close();
      await holder.done;
    }
    expect(replica.feed.stats.snapshotReads - before).toBeLessThanOrEqual(3);
  });

  it('begin again from a cursor inside a snapshot, which alone is of no use', async () => {
    const stream = replica.feed.open(shop());
    const row = await stream.next();
    stream.close();
    expect(row?.type).toBe('object');
    const again = replica.feed.open({ ...shop(), after: row?.cursor ?? null, onExpired: 'ERROR' });
    expect(await again.next()).toMatchObject({ type: 'reset', reason: 'CURSOR_EXPIRED' });
    expect(await again.next()).toMatchObject({ type: 'object' });
    again.close();
  });
});

async function writeOne(client: pg.Client, ids: string[], runtimeId: string): Promise<void> {
  const stamp = "version = version + 1, changed_by = 'system:test', change_token = gen_random_uuid()::text";
  const id = ids[Math.floor(Math.random() * ids.length)];
  const dice = Math.random();
  if (dice < 0.5) {
    await client.query(
      `update deployment set ${stamp}, observed_generation = observed_generation + 1 where id = $1`,
      [id],
    );
  } else if (dice < 0.85) {
    await client.query(
      `update deployment set ${stamp}, app = case app when 'shop' then 'other' else 'shop' end where id = $1`,
      [id],
    );
  } else if (dice < 0.95) {
    const made = newId('DEPLOYMENT');
    await client.query(
      "insert into deployment (id, namespace, name, app, runtime_id) values ($1, 'default', $2, 'shop', $3)",
      [made, made.slice(4), runtimeId],
    );
    ids.push(made);
  } else {
    await client.query(
      `update deployment set ${stamp}, phase = 'DELETED', deleted_at = now() where id = $1 and deleted_at is null`,
      [id],
    );
  }
}

function sameMap(a: Held, b: Held): boolean {
  return a.size === b.size && [...a].every(([id, version]) => b.get(id) === version);
}

function difference(a: Held, b: Held): string {
  const ids = [...new Set([...a.keys(), ...b.keys()])].filter((id) => a.get(id) !== b.get(id));
  return ids
    .slice(0, 3)
    .map((id) => `${id} ${a.get(id)} instead of ${b.get(id)}`)
    .join(', ');
}
