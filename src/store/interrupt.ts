/**
 * Puts failpoints around the ways to the database, for tests. Without hooks everything is handed on as it is: a server in
 * production runs the very code that it would run if this file did not exist.
 */
import type { Failpoint, Failpoints } from '../kernel/failpoints.js';
import type { Database, Queryable } from './database.js';
import { sessionsLike, type OpenSession } from './session.js';

export function interruptible(database: Database, failpoints: Failpoints | undefined): Database {
  if (!failpoints) return database;
  const writer: Queryable = {
    async query(statement) {
      await failpoints.reach('write.before');
      const result = await database.writer.query<never>(statement);
      await failpoints.reach('write.after');
      return result;
    },
  };
  return {
    ...database,
    writer,
    async inTransaction(work, isolation) {
      const value = await database.inTransaction(async (tx) => {
        const done = await work(tx);
        await failpoints.reach('commit.before');
        return done;
      }, isolation);
      await failpoints.reach('commit.after');
      return value;
    },
    // A listener that is not called has lost a hint.
    onCommit: (listener) =>
      database.onCommit(() => void failpoints.reach('wake.own').then(listener, () => undefined)),
  };
}

interface FeedAccess {
  readonly database: Pick<Database, 'pool' | 'readPool' | 'inTransaction'>;
  readonly openSession: OpenSession;
}

/** What the feed reads with: it has failpoints of its own, apart from those of everybody else. */
export function feedAccess(database: Database, failpoints: Failpoints | undefined): FeedAccess {
  const openSession = sessionsLike(database.pool);
  if (!failpoints) return { database, openSession };
  const { pool, readPool } = database;
  return {
    database: {
      inTransaction: database.inTransaction,
      pool: queryingAfter(pool, () => failpoints.reach('replay.read')),
      readPool: having(readPool, {
        connect: async () => queryingAfter(await readPool.connect(), () => failpoints.reach('snapshot.read')),
      }),
    },
    openSession: (purpose, timeoutMs) => interruptibleSession(openSession, failpoints, purpose, timeoutMs),
  };
}

const SESSIONS: Readonly<
  Record<string, { readonly open?: Failpoint; readonly query?: Failpoint } | undefined>
> = {
  feed: { open: 'feed.open', query: 'feed.step' },
  listen: { open: 'listen.open' },
  notify: { query: 'notify.send' },
};

async function interruptibleSession(
  openSession: OpenSession,
  failpoints: Failpoints,
  purpose: string,
  timeoutMs: number,
): ReturnType<OpenSession> {
  const { open, query } = SESSIONS[purpose] ?? {};
  if (open) await failpoints.reach(open);
  const session = await openSession(purpose, timeoutMs);
  return query ? queryingAfter(session, () => failpoints.reach(query)) : session;
}

/** The same object, whose queries wait first. */
function queryingAfter<T extends Pick<Queryable, 'query'>>(target: T, wait: () => Promise<void>): T {
  const ask = target.query.bind(target) as (...args: readonly unknown[]) => Promise<unknown>; // in whichever of its forms
  const query = async (...args: readonly unknown[]) => {
    await wait();
    return ask(...args);
  };
  return having(target, { query });
}

/** The same object with some methods replaced; the others keep their own `this`. */
function having<T extends object>(target: T, methods: Readonly<Record<string, unknown>>): T {
  return new Proxy(target, {
    get(from, name): unknown {
      if (typeof name === 'string' && name in methods) return methods[name];
      const value: unknown = Reflect.get(from, name, from);
      return typeof value === 'function' ? value.bind(from) : value;
    },
  });
}
