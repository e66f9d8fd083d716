import type { Grant } from '../access/grant.js';
import { MESSAGE_MAX_BYTES } from '../kernel/conditions.js';
import type { HeldLock } from '../kernel/failure.js';
import { newId, type DeploymentId, type RolloutId } from '../kernel/ids.js';
import type { JsonObject } from '../kernel/json.js';
import { cutToBytes } from '../kernel/text.js';
import type { Database, Queryable, Transaction } from '../store/database.js';
import { storedPart } from '../store/malformed.js';
import type { RolloutRow } from '../store/rows.js';
import { columnList } from '../store/tables.js';
import {
  insertRow,
  readRowWithin,
  stampValues,
  updateRow,
  type Settable,
  type Stamp,
} from '../store/versioned.js';
import type { RolloutChange, RolloutOperation, RolloutOutcome, RolloutPhase, RolloutState } from './model.js';
import { storedRolloutErrorSchema } from './stored.js';

/**
 * The deploy lock and the rollouts that take it. Every function that takes or gives the lock is meant for the inside of a
 * transaction: lock, rollout and what became of the deployment stand or fall together. Time is the database's own
 * (`now()`, the start of the transaction), one clock for all replicas; the boundary instant counts as expired.
 */
type Rolling = Grant<
  'deployment:write' | 'deployment:detach' | 'deployment:forget' | 'deployment:report' | 'system:sweep'
>;

/** Life of the lock without a sign of its holder. */
export const DEPLOY_LOCK_SECONDS = 30 * 60;

const LOCK_COLUMNS =
  'l.deployment_id AS "deploymentId", l.rollout_id AS "rolloutId", l.started_by AS "startedBy",' +
  ' l.acquired_at AS "acquiredAt", l.expires_at AS "expiresAt"';

/** Whether the lock `l` may be taken; the one predicate, in the database. */
const TAKEABLE = 'slipway_lock_free(l.rollout_id, l.expires_at)';

/** The lock that holds the deployment now, and the phase of its rollout; undefined if it is free. */
export async function lockHeld(
  db: Queryable,
  deploymentId: string,
): Promise<(HeldLock & { readonly phase: RolloutPhase | null }) | undefined> {
  const result = await db.query<HeldLock & { readonly phase: RolloutPhase | null }>({
    name: 'deploy_lock_held',
    text:
      `SELECT ${LOCK_COLUMNS}, r.phase FROM deploy_lock l LEFT JOIN rollout r ON r.id = l.rollout_id` +
      ` WHERE l.deployment_id = $1 AND NOT ${TAKEABLE}`,
    values: [deploymentId],
  });
  return result.rows[0];
}

interface Taking {
  readonly deploymentId: string;
  readonly namespace: string;
  readonly rolloutId: RolloutId;
  readonly startedBy: string;
}

/** Takes the lock or, for the rollout that has it, extends it. False if another one holds it; then nothing is written. */
export async function lockTake(tx: Transaction, _grant: Rolling, lock: Taking): Promise<boolean> {
  const result = await tx.query({
    name: 'deploy_lock_take',
    text:
      'INSERT INTO deploy_lock AS l (deployment_id, namespace, rollout_id, started_by, acquired_at, expires_at)' +
      ` VALUES ($1, $2, $3, $4, now(), now() + interval '${DEPLOY_LOCK_SECONDS} seconds')` +
      ' ON CONFLICT (deployment_id) DO UPDATE SET rollout_id = excluded.rollout_id, started_by = excluded.started_by,' +
      ' acquired_at = CASE WHEN l.rollout_id = excluded.rollout_id THEN l.acquired_at ELSE excluded.acquired_at END,' +
      ` expires_at = excluded.expires_at WHERE l.rollout_id = excluded.rollout_id OR ${TAKEABLE}` +
      ' RETURNING 1',
    values: [lock.deploymentId, lock.namespace, lock.rolloutId, lock.startedBy],
  });
  return result.rows.length === 1;
}

/** Takes it whoever holds it: deletion pre-empts. */
export async function lockSeize(tx: Transaction, _grant: Rolling, lock: Taking): Promise<void> {
  await tx.query({
    name: 'deploy_lock_seize',
    text:
      'INSERT INTO deploy_lock AS l (deployment_id, namespace, rollout_id, started_by, acquired_at, expires_at)' +
      ` VALUES ($1, $2, $3, $4, now(), now() + interval '${DEPLOY_LOCK_SECONDS} seconds')` +
      ' ON CONFLICT (deployment_id) DO UPDATE SET rollout_id = excluded.rollout_id, started_by = excluded.started_by,' +
      ' acquired_at = excluded.acquired_at, expires_at = excluded.expires_at',
    values: [lock.deploymentId, lock.namespace, lock.rolloutId, lock.startedBy],
  });
}

/**
 * The fence: true, and the lock's life begun anew, only if the rollout holds it and it has not expired. What is written in
 * the same transaction is then written under the lock.
 */
export async function lockProve(tx: Transaction, deploymentId: string, rolloutId: string): Promise<boolean> {
  const result = await tx.query({
    name: 'deploy_lock_prove',
    text:
      `UPDATE deploy_lock SET expires_at = now() + interval '${DEPLOY_LOCK_SECONDS} seconds'` +
      ' WHERE deployment_id = $1 AND rollout_id = $2 AND expires_at > now() RETURNING 1',
    values: [deploymentId, rolloutId],
  });
  return result.rows.length === 1;
}

/** Holds the lock's row, whoever has it, until the transaction ends: before the deployment's own row, as everywhere. */
export async function lockRow(tx: Transaction, deploymentId: string): Promise<void> {
  await tx.query({
    name: 'deploy_lock_row',
    text: 'SELECT FROM deploy_lock WHERE deployment_id = $1 FOR UPDATE',
    values: [deploymentId],
  });
}

/** Gives it back; by anybody but its holder, nothing happens. */
export async function lockRelease(tx: Queryable, deploymentId: string, rolloutId: string): Promise<void> {
  await tx.query({
    name: 'deploy_lock_release',
    text: 'DELETE FROM deploy_lock WHERE deployment_id = $1 AND rollout_id = $2',
    values: [deploymentId, rolloutId],
  });
}

export interface NewRollout {
  readonly id: RolloutId;
  readonly deploymentId: DeploymentId;
  readonly namespace: string;
  readonly operation: RolloutOperation;
  readonly fromReleaseId: string | null;
  readonly toReleaseId: string | null;
  /** Begins as an active one: nothing is to be built. */
  readonly activatedAt: Date | null;
  readonly source?: JsonObject | null | undefined;
  readonly logUrl?: string | null | undefined;
  readonly parentRolloutId?: string | null | undefined;
  readonly startedBy: string;
  readonly message?: string | null | undefined;
}

export function newRolloutId(): RolloutId {
  return newId('ROLLOUT');
}

export function rolloutInsert(
  tx: Queryable,
  _grant: Rolling,
  rollout: NewRollout,
  stamp: Stamp,
): Promise<RolloutRow> {
  const { id, activatedAt, source, logUrl, parentRolloutId, message, ...values } = rollout;
  const row: Settable<'rollout'> = {
    ...values,
    activatedAt,
    phase: activatedAt === null ? 'PREPARING' : 'ACTIVATING',
    source: source ?? null,
    logUrl: logUrl ?? null,
    parentRolloutId: parentRolloutId ?? null,
    message: message === null || message === undefined ? null : cutToBytes(message, MESSAGE_MAX_BYTES),
  };
  return insertRow(tx, 'rollout', id, row, stamp);
}

/** What was decided about the row; undefined when it has moved on since. */
export function rolloutChange(
  tx: Queryable,
  _grant: Rolling,
  decidedOn: RolloutRow,
  change: RolloutChange,
  stamp: Stamp,
): Promise<RolloutRow | undefined> {
  const { error, message } = change;
  const cut = {
    ...change,
    ...(error ? { error: { ...error, message: cutToBytes(error.message, MESSAGE_MAX_BYTES) } } : {}),
    ...(typeof message === 'string' ? { message: cutToBytes(message, MESSAGE_MAX_BYTES) } : {}),
  };
  return updateRow(tx, 'rollout', decidedOn.id, decidedOn.version, cut, stamp);
}

export function rolloutRead(db: Queryable, grant: Grant, id: RolloutId): Promise<RolloutRow | undefined> {
  return readRowWithin(db, 'rollout', id, grant.namespaces);
}

/** The unfinished ones of a deployment, newest first: more than one when a lock ran out under an older one. */
export async function rolloutsUnfinished(
  db: Queryable,
  deploymentId: string,
): Promise<readonly RolloutRow[]> {
  const result = await db.query<RolloutRow>({
    name: 'rollouts_unfinished',
    text:
      `SELECT ${columnList('rollout')} FROM rollout WHERE deployment_id = $1 AND outcome IS NULL` +
      ' ORDER BY created_at DESC, id DESC FOR UPDATE',
    values: [deploymentId],
  });
  return result.rows;
}

/** The row as decisions see it. Throws MalformedObjectError for what cannot be read. */
export function rolloutState(row: RolloutRow): RolloutState {
  const { operation, phase, activatedAt, cancelRequestedAt, outcome, finishedAt, message } = row;
  const error = storedPart(storedRolloutErrorSchema, 'ROLLOUT', row.id, 'error', row.error);
  return { operation, phase, activatedAt, cancelRequestedAt, outcome, finishedAt, message, error };
}

/** The last rollout of a deployment, if it failed: what a retry tries again. */
export async function rolloutLatestFailed(db: Queryable, deploymentId: string): Promise<string | null> {
  const result = await db.query<{ id: string; outcome: string | null }>({
    name: 'rollout_latest',
    text: 'SELECT id, outcome FROM rollout WHERE deployment_id = $1 ORDER BY created_at DESC, id DESC LIMIT 1',
    values: [deploymentId],
  });
  const [latest] = result.rows;
  return latest?.outcome === 'FAILED' ? latest.id : null;
}

/** The release that last succeeded beside the one that is wanted; undefined if none did. */
export async function rolloutPreviousRelease(
  db: Queryable,
  deploymentId: string,
): Promise<string | undefined> {
  const result = await db.query<{ id: string | null }>({
    name: 'rollout_previous_release',
    text: 'SELECT previous_release_id AS id FROM deployment_attempts WHERE deployment_id = $1',
    values: [deploymentId],
  });
  return result.rows[0]?.id ?? undefined;
}

/**
 * Ends at most `batch` rollouts whose client fell silent: never active, older than the life of a lock, and without a lock
 * that holds. Active ones are left: what becomes of the deployment decides their outcome. One statement; rows that somebody
 * else is at work on are left for the next time, the lock's first, as everywhere.
 */
export async function rolloutsInterruptUnchecked(
  db: Queryable,
  batch: number,
  stamp: Stamp,
): Promise<number> {
  const result = await db.query({
    name: 'rollouts_interrupt',
    text:
      'WITH silent AS MATERIALIZED (SELECT r.id, r.deployment_id FROM rollout r' +
      '   WHERE r.outcome IS NULL AND r.activated_at IS NULL' +
      `     AND r.created_at <= now() - interval '${DEPLOY_LOCK_SECONDS} seconds'` +
      '     AND NOT EXISTS (SELECT FROM deploy_lock l' +
      '       WHERE l.deployment_id = r.deployment_id AND l.rollout_id = r.id AND l.expires_at > now())' +
      '   ORDER BY r.created_at LIMIT $1),' +
      ' expired AS MATERIALIZED (SELECT l.deployment_id, l.rollout_id FROM deploy_lock l JOIN silent s ON s.deployment_id = l.deployment_id' +
      '   WHERE l.rollout_id = s.id AND l.expires_at <= now() FOR UPDATE OF l SKIP LOCKED),' +
      ' ended AS (UPDATE rollout SET outcome = $2, finished_at = now(), message = $3, version = version + 1,' +
      '     changed_by = $4, change_reason = $5, change_message = $6, trace_id = $7, change_token = $8' +
      '   WHERE id = ANY (ARRAY(SELECT r.id FROM rollout r JOIN silent s ON s.id = r.id' +
      '       WHERE r.outcome IS NULL AND r.activated_at IS NULL' +
      '         AND (EXISTS (SELECT FROM expired e WHERE e.rollout_id = r.id)' +
      '           OR NOT EXISTS (SELECT FROM deploy_lock l WHERE l.deployment_id = r.deployment_id AND l.rollout_id = r.id))' +
      '       FOR UPDATE OF r SKIP LOCKED)) RETURNING id),' +
      ' given_back AS (DELETE FROM deploy_lock l USING expired e, ended' +
      '   WHERE l.deployment_id = e.deployment_id AND l.rollout_id = e.rollout_id AND ended.id = e.rollout_id)' +
      ' SELECT id FROM ended',
    values: [
      batch,
      INTERRUPTED,
      'Nothing was heard of it until its lock had run out.',
      ...stampValues(stamp),
    ],
  });
  return result.rows.length;
}
const INTERRUPTED: RolloutOutcome = 'INTERRUPTED';

/**
 * Takes away at most `batch` rollouts of deployments that were deleted before `cutoff`, through the log: a version that
 * says who and why, then the row. Those of a deployment that the log forgot already go with it, unsaid.
 */
export async function rolloutsPurgeUnchecked(
  database: Pick<Database, 'inTransaction'>,
  cutoff: Date,
  batch: number,
  stamp: Stamp,
): Promise<number> {
  return database.inTransaction(async (tx) => {
    const marked = await tx.query<{ id: string }>({
      name: 'rollouts_purge_mark',
      text:
        'UPDATE rollout SET deleted_at = now(), version = version + 1,' +
        ' changed_by = $3, change_reason = $4, change_message = $5, trace_id = $6, change_token = $7' +
        ' WHERE id = ANY (ARRAY(SELECT r.id FROM deployment d JOIN rollout r ON r.deployment_id = d.id' +
        '   WHERE d.deleted_at < $1 ORDER BY d.deleted_at LIMIT $2 FOR UPDATE OF r SKIP LOCKED)) RETURNING id',
      values: [cutoff, batch, ...stampValues(stamp)],
    });
    const ids = marked.rows.map(({ id }) => id);
    await tx.query({
      name: 'rollouts_purge',
      text: 'DELETE FROM rollout WHERE id = ANY ($1)',
      values: [ids],
    });
    return ids.length;
  });
}
