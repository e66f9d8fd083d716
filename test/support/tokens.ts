import { authenticator, type Authenticator, type TokenFeed } from '../../src/access/authenticator.js';
import { createTokenBeside } from '../../src/access/protection.js';
import type { CreatedToken } from '../../src/access/tokens.js';
import { createFeed, type Feed } from '../../src/changes/feed.js';
import { systemClock, type Clock } from '../../src/kernel/clock.js';
import { silentLog } from '../../src/kernel/log.js';
import type { Database } from '../../src/store/database.js';
import { sessionsLike } from '../../src/store/session.js';
import { openStore } from './open-store.js';
import type { TestDatabase } from './test-server.js';

/** What one server process has of access: its own store, feed and authenticator. Several share one database. */
export interface AccessReplica {
  readonly database: Database;
  readonly feed: Feed;
  readonly authenticator: Authenticator;
  close(): Promise<void>;
}

export interface ReplicaOptions {
  readonly clock?: Clock;
  readonly open?: boolean;
  /** Instead of the replica's own. */
  readonly feed?: TokenFeed;
  readonly pool?: (database: Database) => Pick<Database['pool'], 'query'>;
}

export async function startReplica(test: TestDatabase, options: ReplicaOptions = {}): Promise<AccessReplica> {
  const database = openStore(test);
  const feed = createFeed({
    database,
    clock: systemClock,
    log: silentLog,
    openSession: sessionsLike(database.pool),
  });
  await feed.start();
  database.onCommit(() => feed.wake());
  return {
    database,
    feed,
    authenticator: authenticator({
      pool: options.pool?.(database) ?? database.pool,
      feed: options.feed ?? feed,
      clock: options.clock ?? systemClock,
      open: options.open ?? false,
    }),
    async close() {
      await feed.stop();
      await database.close();
    },
  };
}

export async function tokenBeside(
  database: Database,
  more: Readonly<Record<string, unknown>> = {},
): Promise<CreatedToken> {
  return createTokenBeside(database, systemClock, { name: 'test', roles: ['VIEWER'], ...more });
}
