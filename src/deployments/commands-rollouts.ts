import type { z } from 'zod';

import type { Caller } from '../access/caller.js';
import { stampOf } from '../access/stamp.js';
import { done, notFound, refused, versionConflict, type Failure, type Outcome } from '../kernel/failure.js';
import type { DeploymentId, RolloutId } from '../kernel/ids.js';
import { validated } from '../kernel/validate.js';
import {
  activate,
  cancel,
  fail,
  lockProve,
  lockRelease,
  newRolloutId,
  rolloutChange,
  rolloutPhaseSchema,
  rolloutRead,
  rolloutState,
  setPhase,
  type RolloutDecision,
} from '../rollouts/index.js';
import type { Transaction } from '../store/database.js';
import type { ResultCodec } from '../store/idempotency.js';
import { rowFromJson, rowToJson } from '../store/row-json.js';
import type { DeploymentRow, RolloutRow } from '../store/rows.js';
import { findRelease, refusesStart } from './commands-apply.js';
import { anywhere, transactionally, type Parts } from './commands-parts.js';
import {
  beginRollout,
  holdLock,
  settleByPhase,
  settles,
  takeLock,
  type Rolling,
} from './commands-rolling.js';
import {
  activateRolloutSchema,
  beginRolloutSchema,
  cancelRolloutSchema,
  failRolloutSchema,
  rolloutSchema,
  type ActivateRolloutInput,
  type BeginRolloutInput,
  type CancelRolloutInput,
  type FailRolloutInput,
} from './input.js';
import { applySpec, cancelRollout, reapply, refusesNewSpec, type IntentDecision } from './intents.js';
import { deploymentChange, deploymentRead, deploymentState } from './store.js';

const setRolloutPhaseSchema = rolloutSchema.extend({ phase: rolloutPhaseSchema });
export type SetRolloutPhaseInput = z.input<typeof setRolloutPhaseSchema>;

/** Rollouts whose client builds first: it says how far it is, activates what it built, fails or calls it off. */
export type RolloutOutcomeOf<Current> = Outcome<RolloutRow, Failure<Current>>;

export interface RolloutCommands {
  /** Takes the deploy lock for an attempt that is still to build its release. */
  beginRollout(caller: Caller, input: BeginRolloutInput): Promise<RolloutOutcomeOf<DeploymentRow>>;
  setRolloutPhase(caller: Caller, input: SetRolloutPhaseInput): Promise<RolloutOutcomeOf<RolloutRow>>;
  /** Fenced: only under a lock that has not run out. */
  activateRollout(caller: Caller, input: ActivateRolloutInput): Promise<RolloutOutcomeOf<RolloutRow>>;
  failRollout(caller: Caller, input: FailRolloutInput): Promise<RolloutOutcomeOf<RolloutRow>>;
  cancelRollout(caller: Caller, input: CancelRolloutInput): Promise<RolloutOutcomeOf<RolloutRow>>;
}

const CODEC: ResultCodec<RolloutRow> = {
  what: 'rollout',
  namespaceOf: (row) => row.namespace,
  objectId: (row) => row.id,
  toJson: rowToJson,
  fromJson: (json) => rowFromJson('rollout', json),
};

export function rolloutCommands(parts: Parts): RolloutCommands {
  return {
    beginRollout: (caller, input) => begin(parts, caller, input),
    async setRolloutPhase(caller, input) {
      const parsed = validated(setRolloutPhaseSchema, input);
      if (!parsed.done) return parsed;
      return drive(parts, caller, 'setRolloutPhase', parsed.value, async (driven) => {
        const decision = setPhase(rolloutState(driven.rollout), parsed.value.phase);
        if (decision.kind === 'refused') return refused(decision.failure);
        const deployment = await deploymentOf(driven);
        // A sign of life, also when it is the phase that it was in: the lock's life begins anew.
        const held = await takeLock(driven.tx, driven.grant, deployment, {
          rolloutId: driven.rollout.id as RolloutId, // a stored id of a rollout
          operation: driven.rollout.operation,
        });
        if (held) return held;
        // Without a lock there was no row to hold: it may have ended since, and no write of its own would say so.
        const { tx, grant, rollout } = driven;
        if ((await rolloutRead(tx, grant, parsed.value.id))?.version !== rollout.version) return 'again';
        return write(driven, decision);
      });
    },
    async activateRollout(caller, input) {
      const parsed = validated(activateRolloutSchema, input);
      if (!parsed.done) return parsed;
      return drive(parts, caller, 'activateRollout', parsed.value, (driven) =>
        activateOnce(driven, parsed.value),
      );
    },
    async failRollout(caller, input) {
      const parsed = validated(failRolloutSchema, input);
      if (!parsed.done) return parsed;
      const { code = 'Failed', message } = parsed.value;
      return drive(parts, caller, 'failRollout', parsed.value, (driven) =>
        end(driven, fail(rolloutState(driven.rollout), { code, message }, driven.now)),
      );
    },
    async cancelRollout(caller, input) {
      const parsed = validated(cancelRolloutSchema, input);
      if (!parsed.done) return parsed;
      return drive(parts, caller, 'cancelRollout', parsed.value, (driven) =>
        cancelOnce(driven, parsed.value.message ?? null),
      );
    },
  };
}

async function begin(
  parts: Parts,
  caller: Caller,
  input: BeginRolloutInput,
): Promise<RolloutOutcomeOf<DeploymentRow>> {
  const parsed = validated(beginRolloutSchema, input);
  if (!parsed.done) return parsed;
  const wanted = parsed.value;
  const grant = anywhere(caller, 'deployment:write');
  const rolloutId = newRolloutId();
  return transactionally<RolloutRow, DeploymentRow>(parts, caller, {
    operation: 'beginRollout',
    input: wanted,
    codec: CODEC,
    async once(tx) {
      const row = await deploymentRead(tx, grant, wanted.id);
      if (!row) return notFound('deployment');
      const { expectedVersion } = wanted;
      if (expectedVersion !== undefined && expectedVersion !== row.version) {
        return versionConflict('deployment', row);
      }
      const failure = refusesNewSpec(deploymentState(row));
      if (failure) return refused(failure);
      const terminating = await refusesStart(tx, grant, row);
      if (terminating) return terminating;
      const attempt = {
        rolloutId,
        operation: row.currentReleaseId === null ? 'DEPLOY' : 'UPDATE',
        source: wanted.source ?? null,
        logUrl: wanted.logUrl ?? null,
        message: wanted.message,
      } as const;
      const held = await takeLock(tx, grant, row, attempt);
      if (held) return held;
      // Whoever deletes it holds the lock meanwhile: what was decided on before we had it may be gone.
      const now = parts.clock.now();
      if ((await deploymentRead(tx, grant, wanted.id))?.version !== row.version) return 'again';
      return done(
        await beginRollout(tx, grant, { before: row, after: row }, { ...attempt, active: false, now }),
      );
    },
    exhausted: () => throwExhausted(),
  });
}

/** A rollout that its client acts on, in the transaction of that. */
interface Driven {
  readonly tx: Transaction;
  readonly grant: Rolling;
  readonly rollout: RolloutRow;
  readonly now: Date;
  readonly parts: Parts;
}

async function drive(
  parts: Parts,
  caller: Caller,
  operation: string,
  input: {
    readonly id: RolloutId;
    readonly expectedVersion?: number | undefined;
    readonly idempotencyKey?: string | undefined;
  },
  act: (driven: Driven) => Promise<RolloutOutcomeOf<RolloutRow> | 'again'>,
): Promise<RolloutOutcomeOf<RolloutRow>> {
  const grant = anywhere(caller, 'deployment:write');
  return transactionally<RolloutRow, RolloutRow>(parts, caller, {
    operation,
    input,
    codec: CODEC,
    async once(tx) {
      const found = await rolloutRead(tx, grant, input.id);
      if (!found) return notFound('rollout');
      // Whoever takes the lock over ends it meanwhile, so what counts is what it is once the lock's row is held.
      await holdLock(tx, found.deploymentId);
      const rollout = await rolloutRead(tx, grant, input.id);
      if (!rollout) return notFound('rollout');
      const { expectedVersion } = input;
      if (expectedVersion !== undefined && expectedVersion !== rollout.version) {
        return versionConflict('rollout', rollout);
      }
      return act({ tx, grant, rollout, now: parts.clock.now(), parts });
    },
    async exhausted() {
      const rollout = await rolloutRead(parts.database.pool, grant, input.id);
      return rollout ? versionConflict('rollout', rollout) : notFound('rollout');
    },
  });
}

async function deploymentOf({ tx, grant, rollout }: Driven): Promise<DeploymentRow> {
  const row = await deploymentRead(tx, grant, rollout.deploymentId as DeploymentId); // a stored id of a deployment
  if (!row) throw new Error('a rollout without its deployment');
  return row;
}

/** Writes what was decided of the rollout itself. */
async function write(
  { tx, grant, rollout }: Driven,
  decision: RolloutDecision,
): Promise<RolloutOutcomeOf<RolloutRow> | 'again'> {
  if (decision.kind === 'refused') return refused(decision.failure);
  if (decision.kind === 'unchanged') return done(rollout);
  const written = await rolloutChange(tx, grant, rollout, decision.change, stampOf(grant, decision.reason));
  return written ? done(written) : 'again';
}

/** The same for what may end it: with its outcome the lock is given back. */
async function end(
  driven: Driven,
  decision: RolloutDecision,
): Promise<RolloutOutcomeOf<RolloutRow> | 'again'> {
  const outcome = await write(driven, decision);
  if (outcome !== 'again' && outcome.done && outcome.value.outcome !== null) {
    await lockRelease(driven.tx, driven.rollout.deploymentId, driven.rollout.id);
  }
  return outcome;
}

async function activateOnce(
  driven: Driven,
  wanted: {
    readonly release: Parameters<typeof findRelease>[3];
    readonly reason?: string | undefined;
    readonly message?: string | undefined;
  },
): Promise<RolloutOutcomeOf<RolloutRow> | 'again'> {
  const { tx, rollout, now } = driven;
  const deployment = await deploymentOf(driven);
  const grant = driven.grant as Parameters<typeof findRelease>[1]; // `drive` made it for deployment:write
  const release = await findRelease(tx, grant, deployment.namespace, wanted.release, deployment.app);
  if (!release.done) return release;
  const activation = activate(rolloutState(rollout), release.value.id, now);
  if (activation.kind !== 'applied') return write(driven, activation);
  const decision = decideActivation(deployment, release.value.id);
  if (decision.kind === 'refused') return refused(decision.failure);
  if (decision.kind === 'unchanged') throw new Error('what is applied again is never unchanged');
  const terminating = await refusesStart(tx, grant, deployment);
  if (terminating) return terminating;

  // The fence: what follows is written under the lock or not at all.
  if (!(await lockProve(tx, rollout.deploymentId, rollout.id))) return lockLost(driven, deployment);
  const stamp = stampOf(grant, wanted.reason ?? decision.reason, wanted.message);
  const after = await deploymentChange(tx, grant, deployment, decision.change, stamp);
  if (!after) return 'again';
  driven.parts.cache.forget(after.id);
  return write(driven, activation);
}

/** A release that is already wanted is brought about again. */
function decideActivation(deployment: DeploymentRow, releaseId: string): IntentDecision {
  const state = deploymentState(deployment);
  const decision = applySpec(state, { releaseId });
  return decision.kind === 'unchanged' ? reapply(state) : decision;
}

/** Somebody else has it, or nobody: either way, what this rollout built is not put into service. */
async function lockLost(driven: Driven, deployment: DeploymentRow): Promise<RolloutOutcomeOf<RolloutRow>> {
  const { tx, grant, rollout } = driven;
  const held = await takeLock(tx, grant, deployment, {
    rolloutId: newRolloutId(),
    operation: rollout.operation,
  });
  if (held && held !== 'again') return held;
  const message = 'The lock of the rollout has run out: what it built may be outdated. Begin another one.';
  return refused({ kind: 'InvalidTransition', message, from: rollout.phase, to: 'ACTIVATING', allowed: [] });
}

async function cancelOnce(
  driven: Driven,
  message: string | null,
): Promise<RolloutOutcomeOf<RolloutRow> | 'again'> {
  const { tx, grant, rollout, now } = driven;
  const decision = cancel(rolloutState(rollout), message, now);
  if (decision.kind !== 'applied' || rollout.activatedAt === null) return end(driven, decision);

  const deployment = await deploymentOf(driven);
  const back = cancelRollout(deploymentState(deployment));
  if (back.kind === 'refused') return refused(back.failure);
  if (back.kind === 'unchanged') throw new Error('what is called off is never unchanged');
  const stamp = stampOf(grant, back.reason, message ?? undefined);
  const after = await deploymentChange(tx, grant, deployment, back.change, stamp);
  if (!after) return 'again';
  driven.parts.cache.forget(after.id);
  const written = await write(driven, decision);
  if (written === 'again' || !written.done || !settles(deployment.phase, after.phase)) return written;
  await settleByPhase(tx, grant, { before: deployment, after }, now);
  const ended = await rolloutRead(tx, grant, rollout.id as RolloutId); // a stored id of a rollout
  return ended ? done(ended) : 'again';
}

function throwExhausted(): never {
  throw new Error('a lock that is free each time and taken each time, a hundred times over');
}
