import type { Grant } from '../access/grant.js';
import { stampOf } from '../access/stamp.js';
import { done, refused, type Failure, type Outcome } from '../kernel/failure.js';
import type { DeploymentId, RolloutId } from '../kernel/ids.js';
import type { JsonObject } from '../kernel/json.js';
import {
  lockHeld,
  lockRelease,
  lockRow,
  lockSeize,
  lockTake,
  rolloutChange,
  rolloutInsert,
  rolloutRead,
  rolloutState,
  rolloutsUnfinished,
  settled,
  type RolloutOperation,
  type Settlement,
} from '../rollouts/index.js';
import type { Transaction } from '../store/database.js';
import type { DeploymentRow, RolloutRow } from '../store/rows.js';
import type { Stamp } from '../store/versioned.js';
import type { DeploymentChange } from './intents.js';
import { rulesOf, type DeploymentPhase } from './lifecycle.js';
import type { DeploymentError } from './model.js';
import { deploymentChange } from './store.js';
import { storedErrorSchema } from './stored.js';

/**
 * A change of what a deployment runs is an attempt: lock, deployment and rollout are written in one transaction, in this
 * order everywhere, so that two of them never wait for each other in a circle.
 */
export type Rolling = Grant<'deployment:write' | 'deployment:detach' | 'deployment:forget'>;

export interface Attempt {
  /** Of the rollout to be; the same however often the attempt is decided again. */
  readonly rolloutId: RolloutId;
  readonly operation: RolloutOperation;
  readonly parentRolloutId?: string | null;
  readonly source?: JsonObject | null;
  readonly logUrl?: string | null;
  readonly message?: string | undefined;
  /** Takes the lock whoever holds it: deletion does. */
  readonly preempts?: boolean;
}

type LockHeld = Failure<never> & { kind: 'LockHeld' };

/** Undefined: the lock is ours. */
export async function takeLock(
  tx: Transaction,
  grant: Rolling,
  deployment: Pick<DeploymentRow, 'id' | 'namespace' | 'name'>,
  attempt: Attempt,
): Promise<Outcome<never, LockHeld> | 'again' | undefined> {
  const lock = {
    deploymentId: deployment.id,
    namespace: deployment.namespace,
    rolloutId: attempt.rolloutId,
    startedBy: grant.actor.id,
  };
  if (attempt.preempts) {
    await lockSeize(tx, grant, lock);
    return undefined;
  }
  if (await lockTake(tx, grant, lock)) return undefined;
  const held = await lockHeld(tx, deployment.id);
  // A take that is refused holds the lock's row, so only what was written past the server can have freed it since.
  if (held === undefined) return 'again';
  const { phase, ...holder } = held;
  const doing = phase === null ? '' : `, ${phase}`;
  const message =
    `A rollout of \`${deployment.name}\` is under way: ${holder.rolloutId}${doing}, started by ${holder.startedBy}` +
    ` at ${holder.acquiredAt.toISOString()}. Wait for it or cancel it; its lock runs out at ${holder.expiresAt.toISOString()}.`;
  return refused({ kind: 'LockHeld', message, lock: holder, phase });
}

/**
 * One change of what a deployment runs, with its rollout, under the lock. What it answers but success leaves is taken back by
 * whoever opened the transaction.
 */
export async function changeUnderLock(
  tx: Transaction,
  grant: Rolling,
  row: DeploymentRow,
  change: DeploymentChange,
  attempt: Attempt & { readonly stamp: Stamp; readonly now: Date },
): Promise<
  Outcome<{ readonly deployment: DeploymentRow; readonly rollout: RolloutRow }, LockHeld> | 'again'
> {
  const { stamp, ...rolling } = attempt;
  const held = await takeLock(tx, grant, row, rolling);
  if (held) return held;
  const deployment = await deploymentChange(tx, grant, row, change, stamp);
  if (!deployment) return 'again';
  const moved = { before: row, after: deployment };
  return done({ deployment, rollout: await beginRollout(tx, grant, moved, { ...rolling, active: true }) });
}

/**
 * The rollout of a deployment that was just changed under the lock. `before` is null for one that was just made. Where
 * the change has reached the goal already (nothing ran, so nothing is to be taken down), the rollout ends with it.
 */
export async function beginRollout(
  tx: Transaction,
  grant: Rolling,
  { before, after }: { readonly before: DeploymentRow | null; readonly after: DeploymentRow },
  attempt: Attempt & { readonly active: boolean; readonly now: Date },
): Promise<RolloutRow> {
  const { now } = attempt;
  const ended: Settlement = attempt.preempts
    ? { kind: 'cancelled', message: 'The deployment is being deleted.' }
    : { kind: 'interrupted', message: `Its lock had run out when ${attempt.rolloutId} began.` };
  await settleAll(tx, grant, after.id, ended, { now, active: false });
  const rollout = await rolloutInsert(
    tx,
    grant,
    {
      id: attempt.rolloutId,
      deploymentId: after.id as DeploymentId, // a stored id of a deployment
      namespace: after.namespace,
      operation: attempt.operation,
      fromReleaseId: before?.currentReleaseId ?? null,
      toReleaseId: attempt.active && !ENDING.has(attempt.operation) ? desiredRelease(after) : null,
      activatedAt: attempt.active ? now : null,
      source: attempt.source,
      logUrl: attempt.logUrl,
      parentRolloutId: attempt.parentRolloutId,
      startedBy: grant.actor.id,
      message: attempt.message,
    },
    stampOf(grant, 'RolloutStarted', attempt.message),
  );
  if (!attempt.active || !settles(before?.phase ?? null, after.phase)) return rollout;
  await settleByPhase(tx, grant, { before, after }, now);
  return (await rolloutRead(tx, grant, attempt.rolloutId)) ?? rollout;
}

const ENDING: ReadonlySet<RolloutOperation> = new Set(['UNDEPLOY', 'DELETE']);

function desiredRelease({ targetReleaseId, currentReleaseId }: DeploymentRow): string | null {
  return targetReleaseId ?? currentReleaseId;
}

/** Whether a move to this phase ends the rollouts that are active. */
export function settles(from: DeploymentPhase | null, to: DeploymentPhase): boolean {
  return from !== to && settlementOf(from, to, null) !== undefined;
}

function settlementOf(
  from: DeploymentPhase | null,
  to: DeploymentPhase,
  error: DeploymentError | null,
): Settlement | undefined {
  const { settled: atRest, failed } = rulesOf(to);
  // What was running already and is healthy again, or is not any more, is no attempt's doing.
  if (!atRest || to === 'REFRESH_FAILED' || (from === 'REFRESH_FAILED' && to === 'RUNNING')) return undefined;
  if (!failed) return { kind: 'reached' };
  return { kind: 'failed', error: { code: error?.code ?? 'Unexplained', message: error?.message ?? '' } };
}

type Settling = Rolling | Grant<'deployment:report'> | Grant<'system:sweep'>;

/** In the transaction of the move, with the lock's row held before the deployment's: see `holdLock`. */
export async function settleByPhase(
  tx: Transaction,
  grant: Settling,
  { before, after }: { readonly before: Pick<DeploymentRow, 'phase'> | null; readonly after: DeploymentRow },
  now: Date,
): Promise<void> {
  const error = storedErrorSchema.parse(after.error);
  const settlement = settlementOf(before?.phase ?? null, after.phase, error);
  if (settlement) await settleAll(tx, grant, after.id, settlement, { now, active: true });
}

export function holdLock(tx: Transaction, deploymentId: string): Promise<void> {
  return lockRow(tx, deploymentId);
}

/** Gives every unfinished rollout of the deployment its outcome and, with it, the lock back. */
async function settleAll(
  tx: Transaction,
  grant: Settling,
  deploymentId: string,
  settlement: Settlement,
  { now, active }: { readonly now: Date; readonly active: boolean },
): Promise<void> {
  for (const row of await rolloutsUnfinished(tx, deploymentId)) {
    // What is still being built has nothing to do with what became of the deployment.
    if (active && row.activatedAt === null) continue;
    await settleOne(tx, grant, row, settlement, now);
  }
}

export async function settleOne(
  tx: Transaction,
  grant: Settling,
  row: RolloutRow,
  settlement: Settlement,
  now: Date,
): Promise<void> {
  const decision = settled(rolloutState(row), settlement, now);
  if (decision.kind !== 'applied') return;
  // Its row is held: nothing can have moved it on.
  await rolloutChange(tx, grant, row, decision.change, stampOf(grant, decision.reason));
  await lockRelease(tx, row.deploymentId, row.id);
}
