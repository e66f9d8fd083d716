import { createHash } from 'node:crypto';
import type { PoolClient } from 'pg';

import { done, refused, type Failure, type Outcome } from '../kernel/failure.js';
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
  readonly key: string;
  readonly operation: string;
  /** The parsed input; the key itself may be in it. */
  readonly input: unknown;
}

/** How a result is stored and told again. */
export interface ResultCodec<T> {
  objectId(result: T): string;
  toJson(result: T): JsonObject;
  fromJson(json: JsonObject): T;
}

export async function idempotently<T, F extends Failure>(
  { database }: { readonly database: Database },
  request: IdempotentRequest,
  codec: ResultCodec<T>,
  work: (tx: PoolClient) => Promise<Outcome<T, F>>,
): Promise<Outcome<T, F | (Failure<never> & { kind: 'IdempotencyKeyReused' })>> {
  const payloadHash = createHash('sha256').update(canonicalJson(request.input)).digest('hex');
  return commitIfDone(database, async (tx) => {
    if (!(await claim(tx, request, payloadHash))) {
      return replay(tx, request, payloadHash, codec);
    }
    const outcome = await work(tx);
    if (!outcome.done) return outcome;
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
): Promise<Outcome<T, Failure<never> & { kind: 'IdempotencyKeyReused' }>> {
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
  return done(codec.fromJson(record.result));
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
