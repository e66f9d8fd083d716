/**
 * A pool of PostgreSQL sessions. It outlives restarts of PostgreSQL: a session that breaks while idle is dropped and
 * logged, one that breaks in use fails that query, and the next query connects anew.
 */
import pg from 'pg';
import type { Log } from '../kernel/log.js';
import type { Connection } from './embedded/endpoint.js';

/** A full pool must fail a request, not hold it for ever. */
const CONNECT_TIMEOUT_MILLISECONDS = 5_000;
/** At least. It is always above that of requests, so that a request's own deadline is the one that speaks. */
const STATEMENT_TIMEOUT_MILLISECONDS = 60_000;
const BEYOND_REQUEST_MILLISECONDS = 5_000;
const IDLE_IN_TRANSACTION_TIMEOUT_MILLISECONDS = 60_000;
const IDLE_SESSION_MILLISECONDS = 30_000;

export type PoolOptions = {
  readonly database: { readonly connection: Connection } | { readonly url: string };
  /** A role that each session enters, as the pool for reads does. */
  readonly role?: string;
  /** Sessions at most. */
  readonly size: number;
  /** Shown in `pg_stat_activity`. */
  readonly applicationName: string;
  /** How long a request may take; undefined: shorter than any statement. */
  readonly requestMs?: number | undefined;
  readonly log: Log;
};

export function makePool(options: PoolOptions): pg.Pool {
  const pool = new pg.Pool({
    ...addressOf(options),
    application_name: options.applicationName,
    max: options.size,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MILLISECONDS,
    idleTimeoutMillis: IDLE_SESSION_MILLISECONDS,
    keepAlive: true,
  });
  // The pool listens to idle sessions only. One that is lent out and breaks between two statements would end the process
  // by an error that nobody hears; whoever holds it is told by its next statement.
  pool.on('connect', (session) => session.on('error', () => undefined));
  pool.on('error', (error) => {
    options.log.warn(
      { err: error, pool: options.applicationName },
      'An idle database session broke and was dropped',
    );
  });
  return pool;
}

function addressOf({ database, role, requestMs }: PoolOptions): pg.PoolConfig {
  const ours = sessionOptions(role, requestMs);
  if ('connection' in database) return { ...database.connection, options: ours };
  // What a URL says wins over the other fields in `pg`, so ours has to be in the URL; the last setting of a name wins.
  const url = new URL(database.url);
  const theirs = url.searchParams.get('options');
  url.searchParams.set('options', theirs === null ? ours : `${theirs} ${ours}`);
  return { connectionString: url.href };
}

/** The adapter reads timestamps as UTC whatever the server's zone is, so the session must be in UTC. */
function sessionOptions(role: string | undefined, requestMs = 0): string {
  const statementMs = Math.max(STATEMENT_TIMEOUT_MILLISECONDS, requestMs + BEYOND_REQUEST_MILLISECONDS);
  const settings = [
    'timezone=UTC',
    `statement_timeout=${Math.ceil(statementMs)}`,
    `idle_in_transaction_session_timeout=${IDLE_IN_TRANSACTION_TIMEOUT_MILLISECONDS}`,
    ...(role === undefined ? [] : [`role=${role.replaceAll(/[\\\s]/g, '\\$&')}`]),
  ];
  return settings.map((setting) => `-c ${setting}`).join(' ');
}
