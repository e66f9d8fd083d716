import { PrismaPg } from '@prisma/adapter-pg';
import type { Pool, PoolClient, QueryResultRow } from 'pg';

import { PrismaClient } from './generated/prisma/client.js';
import { lanesOf } from './lanes.js';
import type { Queryable, Statement } from './queryable.js';

export type { Queryable, Statement } from './queryable.js';

/** The connection of an open transaction. */
export type Transaction = PoolClient;

export type Isolation = 'READ COMMITTED' | 'REPEATABLE READ' | 'SERIALIZABLE';

/**
 * The one way to the database. Writes run as the owner, reads of the graph as the read role, each through one pool
 * that Prisma and the hot statements share.
 */
export interface Database {
  /** Writes that commit by themselves; tells the feed of this process afterwards. */
  readonly writer: Queryable;
  /** Single statements that commit by themselves and write no change: nobody is told. */
  readonly quiet: Queryable;
  /** The owner's pool: log reads, sweeps and everything that is no write of an object. */
  readonly pool: Pool;
  /** The read role's pool. */
  readonly readPool: Pool;
  /** Prisma as the read role: what the graph resolves with. */
  readonly prisma: PrismaClient;
  /**
   * Runs `work` in one transaction on a connection of its own, and tells the feed after the commit. Never use the pool
   * or Prisma inside: on a full pool the transaction would wait for itself.
   */
  inTransaction<T>(work: (tx: PoolClient) => Promise<T>, isolation?: Isolation): Promise<T>;
  /** Calls `listener` after each commit of this process that may have written a change. Returns the way off. */
  onCommit(listener: () => void): () => void;
  close(): Promise<void>;
}

export function openDatabase(pools: { readonly pool: Pool; readonly readPool: Pool }): Database {
  const { pool, readPool } = pools;
  const listeners = new Set<() => void>();
  const committed = () => {
    for (const listener of listeners) listener();
  };
  const lanes = lanesOf(pool);
  const prisma = new PrismaClient({
    adapter: new PrismaPg(readPool),
    // Its other formats repeat the query in every error, with what clients asked for in it.
    errorFormat: 'minimal',
  });

  return {
    pool,
    readPool,
    prisma,
    quiet: lanes,
    writer: {
      async query<R extends QueryResultRow>(statement: Statement) {
        const result = await lanes.query<R>(statement);
        committed();
        return result;
      },
    },
    async inTransaction(work, isolation = 'READ COMMITTED') {
      const connection = await pool.connect();
      let broken: Error | undefined;
      try {
        await connection.query(`BEGIN ISOLATION LEVEL ${isolation}`);
        const value = await work(connection);
        await connection.query('COMMIT');
        committed();
        return value;
      } catch (error) {
        await connection.query('ROLLBACK').catch((cause: unknown) => {
          // A connection that cannot roll back must not serve the next caller.
          broken = new Error('rollback failed', { cause });
        });
        throw error;
      } finally {
        connection.release(broken);
      }
    },
    onCommit(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async close() {
      await prisma.$disconnect();
      await Promise.all([pool.end(), readPool.end()]);
    },
  };
}
