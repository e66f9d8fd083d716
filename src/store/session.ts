/**
 * One connection of its own, outside the pools: for what holds a session for its whole life (LISTEN) or must not wait for
 * a free one (the feed). Never reconnects by itself: who holds it opens another.
 */
import { Socket } from 'node:net';
import pg, { type Pool } from 'pg';

import type { Queryable } from './database.js';

export interface Session extends Queryable {
  /** What PostgreSQL calls this session: told with each notification that it sends. */
  readonly processId: number;
  onNotification(listener: (channel: string, processId: number) => void): void;
  /** Called once when the connection is lost or closed, whoever did it. */
  onEnd(listener: () => void): void;
  /** At once, without a word to the server: a connection that hangs cannot be closed politely. Safe to call twice. */
  close(): void;
}

/**
 * `purpose` is shown in `pg_stat_activity`. A statement without an answer for so long is taken for a dead connection.
 * Rejects when the server cannot be reached in time.
 */
export type OpenSession = (purpose: string, answerTimeoutMs: number) => Promise<Session>;

const CONNECT_TIMEOUT_MILLISECONDS = 5_000;

/** Sessions with the address, user and settings of the pool. */
export function sessionsLike(pool: Pool): OpenSession {
  return async (purpose, answerTimeoutMs) => {
    const socket = new Socket();
    const client = new pg.Client({
      ...pool.options,
      // The pool hides its password from enumeration, so the spread leaves it out.
      password: pool.options.password,
      application_name: `slipway ${purpose}`,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MILLISECONDS,
      query_timeout: answerTimeoutMs,
      keepAlive: true,
      stream: () => socket,
    });
    let ended = false;
    const listeners: (() => void)[] = [];
    const end = () => {
      if (ended) return;
      ended = true;
      socket.destroy();
      for (const listener of listeners) listener();
    };
    client.on('error', end);
    client.on('end', end);
    try {
      await client.connect();
      const pid = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
      return {
        processId: pid.rows[0]?.pid ?? 0,
        query: (statement) => client.query(statement),
        onNotification(listener) {
          client.on('notification', (message) => listener(message.channel, message.processId));
        },
        onEnd(listener) {
          if (ended) listener();
          else listeners.push(listener);
        },
        close: end,
      };
    } catch (error) {
      end();
      throw error;
    }
  };
}
