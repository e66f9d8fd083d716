import type { PoolClient } from 'pg';

import type { DeploymentPhase } from '../deployments/index.js';
import type { Queryable } from '../store/database.js';

/**
 * Whose turn it is to work on a deployment. A claim raises the fencing number, and every later write names it: whoever
 * lost the lease, without knowing it, changes nothing. Time is the database's own.
 *
 * `deployment_work` is no public object: no version, no change rows.
 */
export const LEASE_SECONDS = 300;
export const RENEW_EVERY_SECONDS = 60;
/** Silence of the database after which the owner stops by itself, before anybody else may begin. */
export const GIVE_UP_AFTER_SECONDS = 210;

/** Start-up check: with other numbers two workers could be at one deployment. */
export function checkLeaseTimes(times = { LEASE_SECONDS, RENEW_EVERY_SECONDS, GIVE_UP_AFTER_SECONDS }): void {
  const problems = [
    ...(times.GIVE_UP_AFTER_SECONDS < times.LEASE_SECONDS ? [] : ['an owner gives up after its lease has ended']),
    ...(times.RENEW_EVERY_SECONDS < times.GIVE_UP_AFTER_SECONDS ? [] : ['a lease is renewed later than its owner gives up']),
  ];
  if (problems.length > 0) throw new Error(`the times of leases are broken: ${problems.join('; ')}`);
}

export interface Lease {
  readonly deploymentId: string;
  readonly owner: string;
  readonly fence: bigint;
}

export interface Claim extends Lease {
  readonly tries: number;
  readonly progressSince: Date | null;
  readonly forceToken: string | null;
  readonly teardownRequested: boolean;
  /** Calls to look again that were heard so far. */
  readonly wakes: bigint;
}

export interface ClaimRequest {
  readonly owner: string;
  /** The host of this server: work that names another host is not for it. */
  readonly host: string;
  readonly phases: readonly DeploymentPhase[];
  readonly limit: number;
}

const MAY_CLAIM =
  'w.next_step_at <= now() AND (w.lease_expires_at IS NULL OR w.lease_expires_at <= now())' +
  ' AND (w.host IS NULL OR w.host = $2)';

/** Deployments in one of `phases` whose turn has come, the longest waiting first; at most `limit`, and nobody else's. */
export async function leasesClaim(db: Queryable, request: ClaimRequest): Promise<readonly Claim[]> {
  const result = await db.query<ClaimRow>({
    name: 'leases_claim',
    text:
      'WITH due AS MATERIALIZED (SELECT w.deployment_id FROM deployment_work w JOIN deployment d ON d.id = w.deployment_id' +
      ` WHERE ${MAY_CLAIM} AND d.deleted_at IS NULL AND d.phase = ANY ($3::text[]::"DeploymentPhase"[])` +
      ' ORDER BY w.next_step_at LIMIT $4 FOR UPDATE OF w SKIP LOCKED)' +
      ` UPDATE deployment_work w SET lease_owner = $1, lease_expires_at = now() + interval '${LEASE_SECONDS} seconds',` +
      ` fence = w.fence + 1 FROM due WHERE w.deployment_id = due.deployment_id AND ${MAY_CLAIM}` +
      ` RETURNING ${CLAIM_COLUMNS}`,
    values: [request.owner, request.host, request.phases, request.limit],
  });
  return result.rows.map(claimOf);
}

const CLAIM_COLUMNS =
  'w.deployment_id, w.lease_owner, w.fence, w.tries, w.progress_since, w.force_token, w.teardown_requested, w.wakes';

interface ClaimRow {
  readonly deployment_id: string;
  readonly lease_owner: string;
  readonly fence: string;
  readonly tries: number;
  readonly progress_since: Date | null;
  readonly force_token: string | null;
  readonly teardown_requested: boolean;
  readonly wakes: string;
}

function claimOf(row: ClaimRow): Claim {
  return {
    deploymentId: row.deployment_id,
    owner: row.lease_owner,
    fence: BigInt(row.fence),
    tries: row.tries,
    progressSince: row.progress_since,
    forceToken: row.force_token,
    teardownRequested: row.teardown_requested,
    wakes: BigInt(row.wakes),
  };
}

/** Those of `leases` that are still held, their life begun anew. */
export async function leasesRenew(db: Queryable, owner: string, leases: readonly Lease[]): Promise<ReadonlySet<string>> {
  const result = await db.query<{ deployment_id: string }>({
    name: 'leases_renew',
    text:
      `UPDATE deployment_work w SET lease_expires_at = now() + interval '${LEASE_SECONDS} seconds'` +
      ' FROM unnest($2::text[], $3::bigint[]) AS held (deployment_id, fence)' +
      ' WHERE w.deployment_id = held.deployment_id AND w.fence = held.fence AND w.lease_owner = $1' +
      ' AND w.lease_expires_at > now() RETURNING w.deployment_id',
    values: [owner, leases.map((lease) => lease.deploymentId), leases.map((lease) => String(lease.fence))],
  });
  return new Set(result.rows.map((row) => row.deployment_id));
}

/** What a checkpoint leaves of the work. */
export interface WorkAfter {
  /** Null: nothing to do by itself. */
  readonly delayMs: number | null;
  readonly tries: number;
  readonly progressSince: Date | null;
  /** Answered by this step. */
  readonly forceToken: string | null;
  readonly teardownRequested: boolean;
  /** Gives the deployment back in the same write. */
  readonly release: boolean;
}

/**
 * The fence, and the first statement of every checkpoint: writes the work only if the lease still holds, and holds the
 * row until the transaction ends. Undefined: the lease is lost, and the transaction must write nothing else. A call to look
 * again that came meanwhile is kept.
 */
export async function leaseProve(tx: PoolClient, lease: Claim, after: WorkAfter): Promise<Claim | undefined> {
  const result = await tx.query<ClaimRow>({
    name: 'lease_prove',
    text:
      'UPDATE deployment_work w SET' +
      " next_step_at = CASE WHEN w.wakes > $4 THEN now() ELSE now() + $5::float8 * interval '1 millisecond' END," +
      ' tries = CASE WHEN w.wakes > $4 THEN 0 ELSE $6 END, progress_since = $7,' +
      ' force_token = CASE WHEN w.wakes > $4 THEN w.force_token ELSE $8 END,' +
      ' teardown_requested = CASE WHEN w.wakes > $4 THEN w.teardown_requested ELSE $9 END,' +
      ' lease_owner = CASE WHEN $10 THEN NULL ELSE w.lease_owner END,' +
      ` lease_expires_at = CASE WHEN $10 THEN NULL ELSE now() + interval '${LEASE_SECONDS} seconds' END` +
      ' WHERE w.deployment_id = $1 AND w.lease_owner = $2 AND w.fence = $3 AND w.lease_expires_at > now()' +
      ` RETURNING ${CLAIM_COLUMNS}`,
    values: [
      lease.deploymentId,
      lease.owner,
      String(lease.fence),
      String(lease.wakes),
      after.delayMs,
      after.tries,
      after.progressSince,
      after.forceToken,
      after.teardownRequested,
      after.release,
    ],
  });
  const row = result.rows[0];
  return row && claimOf({ ...row, lease_owner: lease.owner });
}

/** Gives a deployment back untouched. By anybody but its owner, nothing happens. */
export async function leaseRelease(db: Queryable, lease: Lease, delayMs: number): Promise<void> {
  await db.query({
    name: 'lease_release',
    text:
      'UPDATE deployment_work SET lease_owner = NULL, lease_expires_at = NULL,' +
      " next_step_at = least(next_step_at, now()) + $4::float8 * interval '1 millisecond'" +
      ' WHERE deployment_id = $1 AND lease_owner = $2 AND fence = $3',
    values: [lease.deploymentId, lease.owner, String(lease.fence), delayMs],
  });
}

/** How long until the next deployment is due for a replica on `host`, in milliseconds; null when none waits. */
export async function leasesNextDueMs(db: Queryable, host: string): Promise<number | null> {
  const result = await db.query<{ ms: number | null }>({
    name: 'leases_next_due',
    text:
      'SELECT extract(epoch FROM (next_step_at - now()))::float8 * 1000 AS ms FROM deployment_work' +
      ' WHERE next_step_at IS NOT NULL AND (host IS NULL OR host = $1) ORDER BY next_step_at LIMIT 1',
    values: [host],
  });
  return result.rows[0]?.ms ?? null;
}
