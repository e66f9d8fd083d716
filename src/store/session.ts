/**
 * One connection of its own, outside the pools: for what holds a session for its whole life (LISTEN) or must not wait for
 * a free one (the feed). Never reconnects by itself: who holds it opens another.
 */
import { Socket } from 'node:net';
import pg, { type Pool, type PoolClient } from 'pg';

import type { Log } from '../kernel/log.js';
import { turnstile } from '../kernel/turnstile.js';
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

/** Ends what a session of the pool does at the moment. Returns at once; a failure is logged: a timeout ends it then. */
export type CancelStatement = (session: PoolClient) => void;

export function cancelStatements(pool: Pool, log: Log): CancelStatement {
  const open = sessionsLike(pool);
  // By one session after the other: a crowd of slow operations must not become a crowd of sessions.
  const inTurn = turnstile(1);
  return (target) => {
    // The driver knows it from the handshake; its types do not.
    const { processID } = target as PoolClient & { readonly processID: number | null };
    if (processID === null) return;
    inTurn(async () => {
      const session = await open('cancel', CONNECT_TIMEOUT_MILLISECONDS);
      try {
        // Sessions belong to who logged in, whatever role they entered.
        await session.query({ text: 'set role none' });
        await session.query({ text: 'select pg_cancel_backend($1)', values: [processID] });
      } finally {
        session.close();
      }
    }).catch((error: unknown) => {
      log.warn({ err: error }, 'A statement that nobody waits for could not be cancelled');
    });
  };
}

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
