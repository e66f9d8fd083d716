/**
 * Writers for tests of the log: transactions of 0 to 20 ms on connections of their own, some rolled back, some with
 * savepoints and parts taken back. They record what they committed, which is what every reader must be told.
 */
import { setTimeout as delay } from 'node:timers/promises';

import pg from 'pg';

import { newId } from '../../src/kernel/ids.js';
import type { Connection } from '../../src/store/embedded.js';
import { insertRow, type Stamp } from '../../src/store/versioned.js';

export const STAMP: Stamp = { actor: 'system:test', reason: null, traceId: null };

/** A runtime and so many deployments, made in one transaction each. */
export async function seedDeployments(
  db: pg.Pool | pg.Client,
  count: number,
  namespace = 'default',
): Promise<string[]> {
  const runtime = await insertRow(
    db,
    'runtime',
    newId('RUNTIME'),
    { namespace, name: `rt-${newId('RUNTIME').slice(3)}`, type: 'external' },
    STAMP,
  );
  const ids: string[] = [];
  for (let i = 0; i < count; i += 1) {
    const id = newId('DEPLOYMENT');
    await insertRow(
      db,
      'deployment',
      id,
      { namespace, name: id.slice(4), app: 'shop', runtimeId: runtime.id },
      STAMP,
    );
    ids.push(id);
  }
  return ids;
}

/** One version further, whatever the version is; for objects that only this test writes. */
export async function bump(db: pg.Pool | pg.ClientBase, id: string, message = 'bump'): Promise<void> {
  await db.query({
    text: `update deployment set version = version + 1, observed_generation = observed_generation + 1, changed_by = 'system:test',
      change_reason = null, change_message = $2, trace_id = null, change_token = gen_random_uuid()::text where id = $1`,
    values: [id, message],
  });
}

export interface WriterRun {
  /** Object id and version of each committed change. */
  readonly committed: ReadonlySet<string>;
  readonly running: boolean;
  /** Resolves when all writers have done their transactions. */
  readonly done: Promise<void>;
  /** Ends the writers after the transaction that each is in. */
  stop(): Promise<void>;
}

export interface WriterOptions {
  readonly writers: number;
  readonly ids: readonly string[];
  /** Transactions of each writer at most; without: until stopped. */
  readonly transactions?: number;
  readonly maxStallMs?: number;
  /** As the server's own writes wake its feed. */
  readonly onCommit?: () => void;
}

export function startWriters(connection: Connection, options: WriterOptions): WriterRun {
  const committed = new Set<string>();
  const stopping = new AbortController();
  let running = options.writers;
  const work = async () => {
    const client = new pg.Client(connection);
    await client.connect();
    try {
      for (let n = 0; !stopping.signal.aborted && n < (options.transactions ?? Infinity); n += 1) {
        for (const change of await transaction(client, options)) committed.add(change);
        options.onCommit?.();
      }
    } finally {
      running -= 1;
      await client.end();
    }
  };
  const done = Promise.all(Array.from({ length: options.writers }, work)).then(() => undefined);
  return {
    committed,
    done,
    get running() {
      return running > 0;
    },
    async stop() {
      stopping.abort();
      await done;
    },
  };
}

/** What it committed: nothing if it rolled back. */
async function transaction(client: pg.Client, { ids, maxStallMs = 20 }: WriterOptions): Promise<string[]> {
  const stall = () => delay(Math.random() * maxStallMs);
  const written: string[] = [];
  const write = async () => {
    const id = ids[Math.floor(Math.random() * ids.length)];
    const { rows } = await client.query<{ version: number }>({
      name: 'write',
      text: `update deployment set version = version + 1, observed_generation = observed_generation + 1, changed_by = 'system:test',
        change_token = gen_random_uuid()::text where id = $1 returning version`,
      values: [id],
    });
    return `${id}@${rows[0]?.version}`;
  };
  await client.query('begin');
  const first = await write().catch(() => undefined);
  if (first === undefined) {
    // Two writers that waited for each other: the database chose this one to give way.
    await client.query('rollback');
    return [];
  }
  written.push(first);
  await stall();
  if (Math.random() < 0.3) {
    await client.query('savepoint part');
    const part = await write().catch(() => undefined);
    await stall();
    if (part === undefined || Math.random() < 0.5) await client.query('rollback to savepoint part');
    else written.push(part);
  }
  if (Math.random() < 0.1) {
    await client.query('rollback');
    return [];
  }
  const ended = await client.query('commit');
  return ended.command === 'COMMIT' ? written : [];
}
