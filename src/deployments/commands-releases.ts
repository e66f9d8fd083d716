import type { Caller } from '../access/caller.js';
import type { Grant } from '../access/grant.js';
import { stampOf } from '../access/stamp.js';
import {
  done,
  invalidInput,
  notFound,
  refused,
  versionConflict,
  type Failure,
  type Outcome,
} from '../kernel/failure.js';
import type { DeploymentId, ReleaseId, RolloutId } from '../kernel/ids.js';
import { validated } from '../kernel/validate.js';
import {
  newRolloutId,
  rolloutPreviousRelease,
  rolloutRead,
  type RolloutOperation,
} from '../rollouts/index.js';
import type { Transaction } from '../store/database.js';
import type { ResultCodec } from '../store/idempotency.js';
import { rowFromJson, rowToJson } from '../store/row-json.js';
import type { DeploymentRow, RolloutRow } from '../store/rows.js';
import { findRelease, refusesStart } from './commands-apply.js';
import { anywhere, transactionally, type Parts } from './commands-parts.js';
import { changeUnderLock } from './commands-rolling.js';
import {
  deployReleaseSchema,
  reapplyDeploymentSchema,
  rollbackDeploymentSchema,
  type DeployReleaseInput,
  type ReapplyDeploymentInput,
  type RollbackDeploymentInput,
} from './input.js';
import { applySpec, reapply, type IntentDecision } from './intents.js';
import { planOf, type DeploymentPlan } from './plan.js';
import type { DeploymentInternalPatch } from './internals.js';
import { deploymentPatchInternal, deploymentRead, deploymentReadInternal, deploymentState } from './store.js';

/** Another release, an earlier one, or the same once more: each is an attempt of its own. */
export interface Attempted {
  readonly deployment: DeploymentRow;
  /** Null: everything was as wanted already, so there is nothing to attempt. */
  readonly rollout: RolloutRow | null;
  /** Only of a dry run: the others are what they would be then. */
  readonly plan?: DeploymentPlan;
}
export type AttemptOutcome = Outcome<Attempted, Failure<DeploymentRow>>;

export interface ReleaseRollouts {
  deployRelease(caller: Caller, input: DeployReleaseInput): Promise<AttemptOutcome>;
  rollbackDeployment(caller: Caller, input: RollbackDeploymentInput): Promise<AttemptOutcome>;
  reapplyDeployment(caller: Caller, input: ReapplyDeploymentInput): Promise<AttemptOutcome>;
}

const CODEC: ResultCodec<Attempted> = {
  what: 'deployment',
  namespaceOf: ({ deployment }) => deployment.namespace,
  objectId: ({ deployment }) => deployment.id,
  toJson: ({ deployment, rollout }) => ({
    deployment: rowToJson(deployment),
    rollout: rollout && rowToJson(rollout),
  }),
  fromJson: ({ deployment, rollout }) => ({
    deployment: rowFromJson('deployment', deployment as ReturnType<typeof rowToJson>), // as toJson wrote it
    rollout: rollout === null ? null : rowFromJson('rollout', rollout as ReturnType<typeof rowToJson>), // as toJson wrote it
  }),
};

export function releaseRollouts(parts: Parts): ReleaseRollouts {
  return {
    async deployRelease(caller, input) {
      const parsed = validated(deployReleaseSchema, input);
      if (!parsed.done) return parsed;
      const { release: wanted } = parsed.value;
      return attempt(parts, caller, 'deployRelease', parsed.value, async ({ tx, grant, row }) => {
        const release = await findRelease(tx, grant, row.namespace, wanted, row.app);
        if (!release.done) return release;
        const decision = applySpec(deploymentState(row), { releaseId: release.value.id });
        return done({ operation: row.currentReleaseId === null ? 'DEPLOY' : 'UPDATE', decision });
      });
    },
    async rollbackDeployment(caller, input) {
      const parsed = validated(rollbackDeploymentSchema, input);
      if (!parsed.done) return parsed;
      return attempt(parts, caller, 'rollbackDeployment', parsed.value, async (attempting) => {
        const release = await releaseBefore(attempting, parsed.value);
        if (!release.done) return release;
        const decision = applySpec(deploymentState(attempting.row), { releaseId: release.value });
        return done({ operation: 'ROLLBACK', decision });
      });
    },
    async reapplyDeployment(caller, input) {
      const parsed = validated(reapplyDeploymentSchema, input);
      if (!parsed.done) return parsed;
      const { forceToken } = parsed.value;
      return attempt(parts, caller, 'reapplyDeployment', parsed.value, async ({ tx, grant, row }) => {
        const decision = reapply(deploymentState(row));
        if (decision.kind !== 'applied' || forceToken === undefined) {
          return done({ operation: 'REDEPLOY', decision });
        }
        const known = await deploymentReadInternal(tx, grant, row.id as DeploymentId); // a stored id of a deployment
        if (known?.lastForceToken === forceToken) {
          return done({ operation: 'REDEPLOY', decision: { kind: 'unchanged' } });
        }
        return done({ operation: 'REDEPLOY', decision, remember: { lastForceToken: forceToken } });
      });
    },
  };
}

interface Attempting {
  readonly tx: Transaction;
  readonly grant: Grant<'deployment:write'>;
  readonly row: DeploymentRow;
}
interface Planned {
  readonly operation: RolloutOperation;
  readonly decision: IntentDecision;
  /** Written with the attempt, or not at all. */
  readonly remember?: DeploymentInternalPatch;
}
interface AttemptInput {
  readonly id: DeploymentId;
  readonly expectedVersion?: number | undefined;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly source?: object | undefined;
  readonly logUrl?: string | undefined;
  readonly idempotencyKey?: string | undefined;
  readonly dryRun?: boolean | undefined;
}

async function attempt(
  parts: Parts,
  caller: Caller,
  operation: string,
  input: AttemptInput,
  plan: (attempting: Attempting) => Promise<Outcome<Planned, Failure<never>>>,
): Promise<AttemptOutcome> {
  const grant = anywhere(caller, 'deployment:write');
  const rolloutId = newRolloutId();
  let before: DeploymentRow | null = null;
  const outcome = await transactionally<Attempted, DeploymentRow>(parts, caller, {
    operation,
    input,
    codec: CODEC,
    async once(tx) {
      const row = await deploymentRead(tx, grant, input.id);
      if (!row) return notFound('deployment');
      before = row;
      if (input.expectedVersion !== undefined && input.expectedVersion !== row.version) {
        return versionConflict('deployment', row);
      }
      const planned = await plan({ tx, grant, row });
      if (!planned.done) return planned;
      const { decision } = planned.value;
      if (decision.kind === 'refused') return refused(decision.failure);
      if (decision.kind === 'unchanged') return done({ deployment: row, rollout: null });
      const terminating = await refusesStart(tx, grant, row);
      if (terminating) return terminating;
      const changed = await changeUnderLock(tx, grant, row, decision.change, {
        rolloutId,
        operation: planned.value.operation,
        source: input.source === undefined ? null : { ...input.source },
        logUrl: input.logUrl ?? null,
        message: input.message,
        stamp: stampOf(grant, input.reason ?? decision.reason, input.message),
        now: parts.clock.now(),
      });
      const { remember } = planned.value;
      if (remember && changed !== 'again' && changed.done) {
        await deploymentPatchInternal(tx, grant, input.id, remember);
      }
      return changed;
    },
    async exhausted() {
      const row = await deploymentRead(parts.database.pool, grant, input.id);
      return row ? versionConflict('deployment', row) : notFound('deployment');
    },
  });
  if (!outcome.done) return outcome;
  if (input.dryRun) return done({ ...outcome.value, plan: planOf(before, outcome.value.deployment) });
  parts.cache.note(outcome.value.deployment);
  return outcome;
}

/** The release to roll back to: as named, as a rollout of this deployment had it, or what ran before. */
async function releaseBefore(
  { tx, grant, row }: Attempting,
  wanted: {
    readonly rolloutId?: RolloutId | undefined;
    readonly release?: Parameters<typeof findRelease>[3] | undefined;
  },
): Promise<Outcome<string, Failure<never>>> {
  if (wanted.release) {
    const release = await findRelease(tx, grant, row.namespace, wanted.release, row.app);
    return release.done ? done(release.value.id) : release;
  }
  if (wanted.rolloutId !== undefined) {
    const rollout = await rolloutRead(tx, grant, wanted.rolloutId);
    if (!rollout || rollout.deploymentId !== row.id) return notFound('rollout of the deployment');
    if (rollout.toReleaseId !== null) return done(rollout.toReleaseId);
    return invalidInput([
      { path: ['input', 'rolloutId'], message: 'must be of a rollout that had a release' },
    ]);
  }
  const before = await rolloutPreviousRelease(tx, row.id);
  if (before !== undefined) return done(before as ReleaseId); // a stored id of a release
  const message = 'must be given, or `release`: no other release of the deployment ever succeeded';
  return invalidInput([{ path: ['input', 'rolloutId'], message }]);
}
