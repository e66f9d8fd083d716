import { withinNamespaces } from '../access/authorise.js';
import type { Caller } from '../access/caller.js';
import type { Grant } from '../access/grant.js';
import { stampOf } from '../access/stamp.js';
import { assertNever } from '../kernel/assert-never.js';
import { done, notFound, refused, versionConflict, type Failure, type Outcome } from '../kernel/failure.js';
import type { DeploymentId } from '../kernel/ids.js';
import { validated } from '../kernel/validate.js';
import { drivenByClients, notDrivenByClients, runtimeFinish, runtimeTypes } from '../runtimes/index.js';
import { newRolloutId, rolloutLatestFailed, type RolloutOperation } from '../rollouts/index.js';
import type { Queryable } from '../store/database.js';
import type { ResultCodec } from '../store/idempotency.js';
import { MalformedObjectError } from '../store/malformed.js';
import { ObjectCache } from '../store/object-cache.js';
import { rowFromJson, rowToJson } from '../store/row-json.js';
import type { DeploymentRow } from '../store/rows.js';
import { applyDeployment, type ApplyOutcome } from './commands-apply.js';
import {
  anywhere,
  run,
  transactionally,
  type DeploymentDeps,
  type On,
  type Parts,
} from './commands-parts.js';
import { releaseRollouts, type ReleaseRollouts } from './commands-releases.js';
import { rolloutCommands, type RolloutCommands } from './commands-rollouts.js';
import { changeUnderLock, holdLock, settleByPhase, settles } from './commands-rolling.js';
import {
  deleteDeploymentSchema,
  patchDeploymentStatusSchema,
  retryDeploymentSchema,
  undeployDeploymentSchema,
  type ApplyDeploymentInput,
  type DeleteDeploymentInput,
  type DeleteMode,
  type PatchDeploymentStatus,
  type PatchDeploymentStatusInput,
  type RetryDeploymentInput,
  type UndeployDeploymentInput,
} from './input.js';
import { dropRecord, requestDelete, retry, undeploy, type IntentDecision } from './intents.js';
import type { DeploymentState } from './model.js';
import { applyStatus } from './status.js';
import { deploymentPatchStatus, deploymentRead, deploymentState } from './store.js';

export type { AppliedDeployment, ApplyOutcome, ApplyResult } from './commands-apply.js';
export type { DeploymentDeps } from './commands-parts.js';

export type DeploymentOutcome = Outcome<DeploymentRow, Failure<DeploymentRow>>;

export interface DeploymentCommands extends ReleaseRollouts, RolloutCommands {
  /** What the controller of an external runtime reports. One statement in one round trip, if it is the next version. */
  patchDeploymentStatus(caller: Caller, input: PatchDeploymentStatusInput): Promise<DeploymentOutcome>;
  /** Creates or updates by namespace and name. */
  applyDeployment(caller: Caller, input: ApplyDeploymentInput): Promise<ApplyOutcome>;
  undeployDeployment(caller: Caller, input: UndeployDeploymentInput): Promise<DeploymentOutcome>;
  retryDeployment(caller: Caller, input: RetryDeploymentInput): Promise<DeploymentOutcome>;
  deleteDeployment(caller: Caller, input: DeleteDeploymentInput): Promise<DeploymentOutcome>;
}

const CODEC: ResultCodec<DeploymentRow> = {
  what: 'deployment',
  namespaceOf: (row) => row.namespace,
  objectId: (row) => row.id,
  toJson: rowToJson,
  fromJson: (json) => rowFromJson('deployment', json),
};
export function deploymentCommands(deps: DeploymentDeps): DeploymentCommands {
  const cache = new ObjectCache<DeploymentRow>();
  deps.feed.listen(['DEPLOYMENT'], (change) => {
    if (change.kind !== 'DEPLOYMENT') return;
    // A row removed past the server has no newer version; its last one would be taken for the current.
    if (change.op === 'DELETE' && change.after.deletedAt === null) cache.forget(change.objectId);
    else cache.note(change.after);
  });
  deps.feed.onNewHistory(() => cache.clear());
  const parts: Parts = { ...deps, cache, runtimeType: runtimeTypes() };
  return {
    ...releaseRollouts(parts),
    ...rolloutCommands(parts),
    patchDeploymentStatus: (caller, input) => patchDeploymentStatus(parts, caller, input),
    applyDeployment: (caller, input) => applyDeployment(parts, caller, input),
    async undeployDeployment(caller, input) {
      const parsed = validated(undeployDeploymentSchema, input);
      if (!parsed.done) return parsed;
      const grant = anywhere(caller, 'deployment:write');
      return intend(parts, caller, grant, 'undeployDeployment', parsed.value, {
        operation: 'UNDEPLOY',
        decide: undeploy,
      });
    },
    async retryDeployment(caller, input) {
      const parsed = validated(retryDeploymentSchema, input);
      if (!parsed.done) return parsed;
      const grant = anywhere(caller, 'deployment:write');
      return intend(parts, caller, grant, 'retryDeployment', parsed.value, {
        operation: 'RETRY',
        decide: retry,
      });
    },
    async deleteDeployment(caller, input) {
      const parsed = validated(deleteDeploymentSchema, input);
      if (!parsed.done) return parsed;
      const grant = deleteGrant(caller, parsed.value.mode);
      return intend(parts, caller, grant, 'deleteDeployment', parsed.value, {
        operation: 'DELETE',
        preempts: true,
        decide: deletion(parsed.value.mode),
      });
    },
  };
}

// Status patches -----------------------------------------------------------------------------------------------------
async function patchDeploymentStatus(
  parts: Parts,
  caller: Caller,
  input: PatchDeploymentStatusInput,
): Promise<DeploymentOutcome> {
  const parsed = validated(patchDeploymentStatusSchema, input);
  if (!parsed.done) return parsed;
  const patch = parsed.value;
  const grant = anywhere(caller, 'deployment:report');
  const outcome = await run(parts, caller, 'patchDeploymentStatus', patch, CODEC, (on) =>
    reportOnce(parts, grant, on, patch),
  );
  return settle(parts, grant, outcome);
}

/**
 * A cached row that has the expected version is the row at that version, so it can be decided on without a read; that
 * it still is the current one, the write proves by its WHERE. Whatever is no write is decided on a fresh row: an old
 * row must not tell a client that nothing changed, or that a move is illegal.
 */
async function reportOnce(
  parts: Parts,
  grant: Grant<'deployment:report'>,
  on: On,
  patch: PatchDeploymentStatus,
): Promise<DeploymentOutcome> {
  const cached = parts.cache.newest(patch.id);
  if (cached?.version === patch.expectedVersion && withinNamespaces(grant.namespaces, cached.namespace)) {
    const decision = await decideReport(parts, on, cached, patch);
    const written = decision.kind === 'applied' ? await decision.write(grant, on) : undefined;
    if (written) return done(written);
  }
  const row = await deploymentRead(on.read, grant, patch.id);
  if (!row) return notFound('deployment');
  if (row.version !== patch.expectedVersion) return versionConflict('deployment', row);
  const decision = await decideReport(parts, on, row, patch);
  if (decision.kind === 'unchanged') return done(row);
  if (decision.kind === 'refused') return refused(decision.failure);
  const written = await decision.write(grant, on);
  if (written) return done(written);
  const winner = await deploymentRead(on.read, grant, patch.id);
  return winner ? versionConflict('deployment', winner) : notFound('deployment');
}

async function decideReport(parts: Parts, on: On, row: DeploymentRow, patch: PatchDeploymentStatus) {
  const type = await parts.runtimeType(on.read, row.runtimeId);
  if (type === undefined) {
    throw new MalformedObjectError('DEPLOYMENT', row.id, 'runtime', 'there is no such runtime');
  }
  if (!drivenByClients(type)) return { kind: 'refused', failure: notDrivenByClients(type) } as const;
  const decision = applyStatus(deploymentState(row), patch, parts.clock.now());
  if (decision.kind !== 'applied') return decision;
  return {
    kind: 'applied',
    write: (grant: Grant<'deployment:report'>, on: On) => {
      const stamp = stampOf(grant, patch.reason ?? null, patch.message);
      const patched = (db: Queryable) => deploymentPatchStatus(db, grant, row, decision.status, stamp);
      if (!settles(row.phase, decision.status.phase)) return patched(on.write);
      return on.inTransaction(async (tx) => {
        await holdLock(tx, row.id);
        const after = await patched(tx);
        if (after) await settleByPhase(tx, grant, { before: row, after }, parts.clock.now());
        return after;
      });
    },
  } as const;
}

// Other intents ------------------------------------------------------------------------------------------------------
interface Intent {
  readonly id: DeploymentId;
  readonly expectedVersion?: number | undefined;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly idempotencyKey?: string | undefined;
}
type Intending = Grant<'deployment:write' | 'deployment:detach' | 'deployment:forget'>;

/** What a mutation wants of a deployment, and what its attempt is called. */
interface Intention {
  readonly operation: RolloutOperation;
  readonly preempts?: boolean;
  decide(state: DeploymentState, now: Date): IntentDecision;
}

async function intend(
  parts: Parts,
  caller: Caller,
  grant: Intending,
  operation: string,
  intent: Intent,
  intention: Intention,
): Promise<DeploymentOutcome> {
  const rolloutId = newRolloutId();
  const outcome = await transactionally<DeploymentRow, DeploymentRow>(parts, caller, {
    operation,
    input: intent,
    codec: CODEC,
    async once(tx) {
      const row = await deploymentRead(tx, grant, intent.id);
      if (!row) return notFound('deployment');
      const { expectedVersion, message } = intent;
      if (expectedVersion !== undefined && expectedVersion !== row.version) {
        return versionConflict('deployment', row);
      }
      const now = parts.clock.now();
      const decision = intention.decide(deploymentState(row), now);
      if (decision.kind === 'refused') return refused(decision.failure);
      if (decision.kind === 'unchanged') return done(row);
      const changed = await changeUnderLock(tx, grant, row, decision.change, {
        rolloutId,
        operation: intention.operation,
        preempts: intention.preempts ?? false,
        parentRolloutId: intention.operation === 'RETRY' ? await rolloutLatestFailed(tx, row.id) : null,
        message,
        stamp: stampOf(grant, intent.reason ?? decision.reason, message),
        now,
      });
      return changed === 'again' || !changed.done ? changed : done(changed.value.deployment);
    },
    async exhausted() {
      const row = await deploymentRead(parts.database.pool, grant, intent.id);
      return row ? versionConflict('deployment', row) : notFound('deployment');
    },
  });
  return settle(parts, grant, outcome);
}

function deletion(mode: DeleteMode): Intention['decide'] {
  switch (mode) {
    case 'DELETE':
      return requestDelete;
    case 'DETACH':
      return (state, now) => dropRecord(state, 'Detached', now);
    case 'FORGET':
      return (state, now) => dropRecord(state, 'Forgotten', now);
  }
  return assertNever(mode, 'delete mode');
}

function deleteGrant(caller: Caller, mode: DeleteMode): Intending {
  switch (mode) {
    case 'DELETE':
      return anywhere(caller, 'deployment:write');
    case 'DETACH':
      return anywhere(caller, 'deployment:detach');
    case 'FORGET':
      return anywhere(caller, 'deployment:forget');
  }
  return assertNever(mode, 'delete mode');
}

/** After the commit: remembers the row and, with a runtime's last deployment, lets a terminating runtime go. */
async function settle(
  parts: Parts,
  grant: Grant<'deployment:report'> | Intending,
  outcome: DeploymentOutcome,
): Promise<DeploymentOutcome> {
  if (!outcome.done) return outcome;
  const row = outcome.value;
  parts.cache.note(row);
  if (row.phase === 'DELETED') {
    // A crash before this leaves the runtime to the sweep, which does the same.
    const stamp = stampOf(grant, 'LastDeploymentDeleted');
    await runtimeFinish(parts.database.writer, row.runtimeId, parts.clock.now(), stamp);
  }
  return outcome;
}
