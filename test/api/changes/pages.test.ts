import { readTurns } from '../../../src/kernel/read-turns.js';
import { silentLog } from '../../../src/kernel/log.js';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { ChangePage, LogEntry, PageRequest } from '../../../src/changes/feed.js';
import { newId } from '../../../src/kernel/ids.js';
import { publicReads } from '../../../src/store/public-reads.js';
import type { TimelineResult } from '../../../src/store/public-types.js';
import { insertRow } from '../../../src/store/versioned.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { everyDeployment, nameOf, startFeed, takeChanges, type TestFeed } from '../../support/feeds.js';
import { bump, seedDeployments, STAMP, startWriters } from '../../support/log-writers.js';

describe('pages of the change log', () => {
  let database: TestDatabase;
  let client: pg.Client;
  let replica: TestFeed;
  let one: string[];
  let two: string[];
  beforeAll(async () => {
    database = await createDatabase();
    client = new pg.Client(database.connection);
    await client.connect();
    replica = await startFeed(database.connection);
    one = await seedDeployments(client, 5, 'one');
    two = await seedDeployments(client, 5, 'two');
    await insertRow(client, 'agent', newId('AGENT'), { name: 'a', topic: 'a', serviceTypes: [] }, STAMP);
    for (let i = 0; i < 6; i += 1) for (const id of [...one, ...two]) await bump(client, id, `round ${i}`);
  });
  afterAll(async () => {
    await replica.close();
    await client.end();
    await database.drop();
  });
  const all = (over: Partial<PageRequest> = {}): PageRequest => ({
    kinds: ['DEPLOYMENT'],
    namespaces: 'all',
    after: null,
    limit: 7,
    ...over,
  });
  const walk = async (request: PageRequest): Promise<LogEntry[]> => {
    const entries: LogEntry[] = [];
    let page: ChangePage;
    let { after } = request;
    do {
      page = await replica.feed.page({ ...request, after });
      expect(page.entries.length).toBeLessThanOrEqual(request.limit);
      entries.push(...page.entries);
      after = page.cursor;
    } while (page.hasMore);
    expect((await replica.feed.page({ ...request, after })).entries).toEqual([]);
    return entries;
  };

  it('go through everything in the filter once, in order', async () => {
    const entries = await walk(all());
    expect(entries).toHaveLength(70);
    expect(new Set(entries.map(nameOf)).size).toBe(70);
    expect(entries.slice(0, 5).map(({ objectId, version, op }) => [objectId, version, op])).toEqual(
      one.map((id) => [id, 1, 'INSERT']),
    );
    expect(entries.at(-1)).toMatchObject({
      message: 'round 5',
      actor: 'system:test',
      from: 'PENDING',
      to: 'PENDING',
    });
    expect(
      (await walk(all({ namespaces: new Set(['two']) }))).every(({ namespace }) => namespace === 'two'),
    ).toBe(true);
    expect(await walk(all({ objectId: two[0] ?? '', limit: 2 }))).toHaveLength(7);
    expect(await walk(all({ kinds: ['AGENT'], namespaces: new Set() }))).toHaveLength(1);
    expect(await walk(all({ namespaces: new Set(['three']) }))).toEqual([]);
  });

  it('have a cursor at each row, from which a page or a stream goes on', async () => {
    const entries = await walk(all());
    for (const [i, { cursor }] of entries.entries()) {
      if (i % 9 !== 0) continue;
      const rest = entries.slice(i + 1).map(nameOf);
      expect((await walk(all({ after: cursor, limit: 500 }))).map(nameOf)).toEqual(rest);
      const stream = replica.feed.open(everyDeployment(cursor));
      expect((await takeChanges(stream, rest.length)).map(({ change }) => nameOf(change))).toEqual(rest);
      stream.close();
    }
  });

  it('miss nothing that commits while they are read', async () => {
    const start = await replica.feed.head();
    const writers = startWriters(database.connection, {
      writers: 8,
      ids: [...one, ...two],
      transactions: 25,
      maxStallMs: 5,
    });
    const told: LogEntry[] = [];
    let after = start;
    for (let page: ChangePage | undefined; writers.running || page?.hasMore !== false;) {
      page = await replica.feed.page(all({ after, limit: 5 }));
      told.push(...page.entries);
      after = page.cursor;
    }
    await writers.done;
    told.push(...(await walk(all({ after, limit: 500 }))));
    expect(told.map(nameOf).sort()).toEqual([...writers.committed].sort());
  });

  it('of one object come newest first, by version, and can be resumed from', async () => {
    const objectId = one[0] ?? '';
    const pool = new pg.Pool(database.connection);
    const timeline = async (beforeVersion: number | null) => {
      const below = [{ kind: 'timeline', key: 'changes', take: 4, beforeVersion }] as const;
      const read = await publicReads({ readPool: pool }, silentLog).beside({ id: objectId }, { table: 'deployment', columns: [], below }, readTurns()); // prettier-ignore
      return replica.feed.timelineOf(read['changes'] as TimelineResult, 3);
    };
    const first = await timeline(null);
    const versions = first.entries.map(({ version }) => version);
    expect(versions).toEqual([...versions].sort((a, b) => b - a));
    expect(first.hasMore).toBe(true);
    const next = await timeline(versions.at(-1) ?? 0);
    expect(next.entries[0]?.version).toBe((versions.at(-1) ?? 0) - 1);
    expect((await timeline(1)).entries).toEqual([]);

    await pool.end();

    const last = first.entries[0];
    const stream = replica.feed.open(
      everyDeployment(last?.cursor ?? null, { objectIds: new Set([objectId]) }),
    );
    await bump(client, objectId);
    const [item] = await takeChanges(stream, 1);
    expect(item?.change.version).toBe((last?.version ?? 0) + 1);
    stream.close();
  });
});
