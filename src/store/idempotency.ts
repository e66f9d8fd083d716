import { createHash } from 'node:crypto';
import type { PoolClient } from 'pg';

import { done, notFound, refused, type Failure, type Outcome } from '../kernel/failure.js';
import { canonicalJson, type JsonObject } from '../kernel/json.js';
import { commitIfDone } from './commit-if-done.js';
import type { Database, Queryable } from './database.js';

/**
 * Idempotency keys: for 24 hours, one effect for each (principal, key), and the first result to everyone who asks again
 * with the same input. The record is written in the transaction of the effect, so both are there or neither is, after
 * any crash and on any replica. Concurrent requests with one key wait for the first at the record's primary key.
 *
 * Their age is told by the database's clock: those of servers may differ.
 *
 * A refused operation has no effect and leaves no record: asked again, it is decided again.
 */
const EXPIRED = "created_at < now() - interval '24 hours'";

export interface IdempotentRequest {
  /** Actor id. */
  readonly principal: string;
  /** Where the caller may see objects now: what was answered once may be out of its sight since. */
  readonly namespaces: 'all' | ReadonlySet<string>;
  readonly key: string;
  readonly operation: string;
  /** The parsed input; the key itself may be in it. */
  readonly input: unknown;
}

/** How a result is stored and told again. */
export interface ResultCodec<T> {
  /** What its object is called in a failure, and where it stands. */
  readonly what: string;
  namespaceOf(result: T): string;
  objectId(result: T): string;
  toJson(result: T): JsonObject;
  fromJson(json: JsonObject): T;
}

export async function idempotently<T, F extends Failure>(
  deps: { readonly database: Database },
  request: IdempotentRequest,
  codec: ResultCodec<T>,
  work: (tx: PoolClient) => Promise<Outcome<T, F>>,
): Promise<Outcome<T, F | Refusal>> {
  const answer = await idempotentTry(deps, request, codec, work);
  if (answer === 'again') throw new Error('work that decides once is not to be decided again');
  return answer;
}

/**
 * The same for work that may have to be decided again: then all of it is taken back, its record included, so that nothing of one
 * try is there for the next.
 */
export async function idempotentTry<T, F extends Failure>(
  { database }: { readonly database: Database },
  request: IdempotentRequest,
  codec: ResultCodec<T>,
  work: (tx: PoolClient) => Promise<Outcome<T, F> | 'again'>,
): Promise<Outcome<T, F | Refusal> | 'again'> {
  const payloadHash = createHash('sha256').update(canonicalJson(request.input)).digest('hex');
  return commitIfDone<Outcome<T, F | Refusal> | 'again'>(database, async (tx) => {
    if (!(await claim(tx, request, payloadHash))) {
      return replay(tx, request, payloadHash, codec);
    }
    const outcome = await work(tx);
    if (outcome === 'again' || !outcome.done) return outcome;
    await tx.query({
      name: 'idempotency_finish',
      text: 'UPDATE idempotency_record SET object_id = $3, result = $4 WHERE principal = $1 AND key = $2',
      values: [
        request.principal,
        request.key,
        codec.objectId(outcome.value),
        JSON.stringify(codec.toJson(outcome.value)),
      ],
    });
    return outcome;
  });
}

type Refusal = Failure<never> & { kind: 'IdempotencyKeyReused' | 'NotFound' };

/** True if this transaction is the first, or the first after the record's life. */
async function claim(tx: Queryable, request: IdempotentRequest, payloadHash: string): Promise<boolean> {
  const result = await tx.query({
    name: 'idempotency_claim',
    text:
      'INSERT INTO idempotency_record (principal, key, operation, payload_hash, object_id, result, created_at)' +
      " VALUES ($1, $2, $3, $4, '', 'null', now())" +
      ' ON CONFLICT (principal, key) DO UPDATE SET operation = excluded.operation,' +
      ' payload_hash = excluded.payload_hash, created_at = excluded.created_at' +
      ` WHERE idempotency_record.${EXPIRED} RETURNING 1`,
    values: [request.principal, request.key, request.operation, payloadHash],
  });
  return result.rows.length === 1;
}

async function replay<T>(
  tx: Queryable,
  request: IdempotentRequest,
  payloadHash: string,
  codec: ResultCodec<T>,
): Promise<Outcome<T, Refusal>> {
  const result = await tx.query<{ operation: string; payload_hash: string; result: JsonObject }>({
    name: 'idempotency_read',
    text: 'SELECT operation, payload_hash, result FROM idempotency_record WHERE principal = $1 AND key = $2',
    values: [request.principal, request.key],
  });
  const record = result.rows[0];
  if (!record) throw new Error('the idempotency record was purged while it was claimed');
  if (record.operation !== request.operation || record.payload_hash !== payloadHash) {
    const message = '`idempotencyKey` was used for another input in the last 24 hours; use a new key.';
    return refused({ kind: 'IdempotencyKeyReused', message });
  }
  const value = codec.fromJson(record.result);
  const { namespaces } = request;
  if (namespaces !== 'all' && !namespaces.has(codec.namespaceOf(value))) return notFound(codec.what);
  return done(value);
}

/** Takes away at most `batch` records that are no longer honoured; the number taken. Run again until it is less. */
export async function idempotencyPurgeUnchecked(db: Queryable, batch: number): Promise<number> {
  const result = await db.query({
    name: 'idempotency_purge',
    text:
      'DELETE FROM idempotency_record WHERE ctid = ANY (ARRAY(SELECT ctid FROM idempotency_record' +
      ` WHERE ${EXPIRED} ORDER BY created_at LIMIT $1 FOR UPDATE SKIP LOCKED))`,
    values: [batch],
  });
  return result.rowCount ?? 0;
}
