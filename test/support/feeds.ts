/** Feeds for tests, each as a server process would have its own, and readers that keep what they were told. */
import { expect } from 'vitest';

import type { Change, Projection } from '../../src/changes/types.js';
import {
  createFeed,
  StreamEnded,
  type ChangeStream,
  type Feed,
  type StreamItem,
  type StreamRequest,
} from '../../src/changes/feed.js';
import { decodeCursor } from '../../src/kernel/cursor.js';
import { systemClock, type Clock } from '../../src/kernel/clock.js';
import { silentLog, type Log } from '../../src/kernel/log.js';
import { openDatabase, type Database, type Queryable } from '../../src/store/database.js';
import type { Connection } from '../../src/store/embedded.js';
import { makePool } from '../../src/store/pool.js';
import { sessionsLike, type OpenSession } from '../../src/store/session.js';
import { columnList } from '../../src/store/tables.js';
import { waitFor } from './wait-for.js';

export interface TestFeed {
  readonly feed: Feed;
  readonly database: Database;
  close(): Promise<void>;
}

export interface TestFeedOptions {
  /** Where the LISTEN session goes, if not to the database itself: a proxy, say. */
  readonly listenThrough?: Connection;
  readonly clock?: Clock;
  readonly log?: Log;
  readonly role?: string;
}

export async function startFeed(connection: Connection, options: TestFeedOptions = {}): Promise<TestFeed> {
  const made = makeFeed(connection, options);
  try {
    await made.feed.start();
    return made;
  } catch (error) {
    await made.close();
    throw error;
  }
}

export function makeFeed(connection: Connection, options: TestFeedOptions = {}): TestFeed {
  const log = options.log ?? silentLog;
  const poolOf = (to: Connection, size: number, role?: string) =>
    makePool({
      database: { connection: to },
      size,
      applicationName: 'test',
      log,
      ...(role === undefined ? {} : { role }),
    });
  const database = openDatabase({
    pool: poolOf(connection, 8),
    readPool: poolOf(connection, 4, options.role),
  });
  const direct = sessionsLike(database.pool);
  const proxied = options.listenThrough ? poolOf(options.listenThrough, 1) : undefined;
  const openSession: OpenSession = (purpose, timeoutMs) =>
    (purpose === 'listen' && proxied ? sessionsLike(proxied) : direct)(purpose, timeoutMs);
  const feed = createFeed({ database, openSession, clock: options.clock ?? systemClock, log });
  const off = database.onCommit(() => feed.wake());
  return {
    feed,
    database,
    async close() {
      off();
      await feed.stop();
      await proxied?.end();
      await database.close();
    },
  };
}

const everything = (): boolean => true;

export function everyDeployment(after: string | null, over: Partial<StreamRequest> = {}): StreamRequest {
  return {
    kinds: ['DEPLOYMENT'],
    namespaces: 'all',
    mode: 'EVERY',
    matches: everything,
    after,
    onExpired: 'ERROR',
    ...over,
  };
}

export function watchDeployments(after: string | null, over: Partial<StreamRequest> = {}): StreamRequest {
  return {
    kinds: ['DEPLOYMENT'],
    namespaces: 'all',
    mode: 'LATEST',
    matches: everything,
    after,
    onExpired: 'SNAPSHOT',
    snapshot: { key: 'all deployments', kind: 'DEPLOYMENT', read: readDeployments },
    ...over,
  };
}

export async function readDeployments(tx: Queryable): Promise<Projection[]> {
  const { rows } = await tx.query<Projection>({
    text: `select ${columnList('deployment')} from deployment where deleted_at is null order by created_at, id`,
  });
  return rows;
}

export type ChangeItem = Extract<StreamItem, { type: 'change' }>;
export const nameOf = ({ objectId, version }: Pick<Change, 'objectId' | 'version'>): string =>
  `${objectId}@${version}`;

/** Reads a stream to its end in the background. */
export class Reading {
  readonly items: StreamItem[] = [];
  readonly stream: ChangeStream;
  readonly done: Promise<void>;
  ended: StreamEnded | 'closed' | undefined;

  constructor(stream: ChangeStream) {
    this.stream = stream;
    this.done = this.#run();
  }

  get changes(): ChangeItem[] {
    return this.items.filter((item) => item.type === 'change');
  }

  async #run(): Promise<void> {
    try {
      for (;;) {
        const item = await this.stream.next();
        if (item === undefined) break;
        this.items.push(item);
      }
      this.ended = 'closed';
    } catch (error) {
      if (!(error instanceof StreamEnded)) throw error;
      this.ended = error;
    }
  }

  async close(): Promise<void> {
    this.stream.close();
    await this.done;
  }
}

/**
 * A cursor of now that no running transaction stands in: tests share a server, whose snapshots tell the transactions of
 * other databases too.
 */
export function quietHead(feed: Feed): Promise<string> {
  return waitFor(async () => {
    const head = await feed.head();
    const cursor = decodeCursor(head);
    return cursor?.form === 'at' && cursor.at.xip.length === 0 && head;
  }, 'no transaction is running');
}

/** The next so many changes of a stream; other items are left out. */
export async function takeChanges(stream: ChangeStream, count: number): Promise<ChangeItem[]> {
  const taken: ChangeItem[] = [];
  while (taken.length < count) {
    const item = await stream.next();
    if (item === undefined) throw new Error(`the stream ended after ${taken.length} changes`);
    if (item.type === 'change') taken.push(item);
  }
  return taken;
}

/** The named end of a stream, and how long it took. */
export async function endOf(stream: ChangeStream): Promise<{ error: StreamEnded; ms: number }> {
  const started = performance.now();
  const error: unknown = await stream.next().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StreamEnded);
  return { error: error as StreamEnded, ms: performance.now() - started }; // checked on the line above
}

/** Every committed change exactly once, each object's versions in order without a gap. */
export function expectWhole(items: readonly ChangeItem[], committed: ReadonlySet<string>): void {
  const told = items.map(({ change }) => nameOf(change));
  expect(new Set(told).size, 'told twice').toBe(told.length);
  expect([...committed].filter((name) => !told.includes(name)).slice(0, 5), 'lost').toEqual([]);
  const last = new Map<string, number>();
  for (const { change } of items) {
    const before = last.get(change.objectId);
    if (before !== undefined) expect(change.version, `order of ${change.objectId}`).toBe(before + 1);
    last.set(change.objectId, change.version);
  }
}
