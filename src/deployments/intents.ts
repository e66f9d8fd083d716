import { refused, type Failure } from '../kernel/failure.js';
import type { JsonObject } from '../kernel/json.js';
import { sameJson } from '../kernel/json.js';
import type { Labels } from '../kernel/labels.js';
import {
  edgeOf,
  NOTHING_RUNS,
  ON_NEW_SPEC,
  ON_RETRY,
  ON_UNDEPLOY,
  rulesOf,
  type DeploymentPhase,
} from './lifecycle.js';
import { desiredReleaseId, phaseOnCancel, type DeploymentState, type EnvVariable } from './model.js';
import { releasesAfter } from './status.js';

/** What a user's mutation makes of a deployment; pure. A move by intent is always one of the lifecycle table. */
export type DeploymentChange = Partial<
  Omit<DeploymentState, 'conditions' | 'observedGeneration' | 'protocolVersion'>
>;

export type IntentDecision =
  /** `reason` is what the log says if the caller gives none. */
  | { readonly kind: 'applied'; readonly change: DeploymentChange; readonly reason: string }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'refused'; readonly failure: Failure<never> };

/** The wanted spec; what is undefined stays as it is. */
export interface WantedSpec {
  readonly releaseId: string;
  readonly env?: readonly EnvVariable[] | undefined;
  readonly runtimeConfig?: JsonObject | undefined;
  readonly labels?: Labels | undefined;
}

const UNCHANGED: IntentDecision = { kind: 'unchanged' };

/** An edit of labels alone asks for nothing of what runs, so it fits every phase; undefined names none. */
export function applyLabels(current: DeploymentState, labels: Labels | undefined): IntentDecision {
  if (current.deletionRequestedAt !== null) return terminating();
  if (labels === undefined || sameJson(labels, current.labels)) return UNCHANGED;
  return { kind: 'applied', change: { labels }, reason: 'LabelsChanged' };
}

/** A spec change is one more generation and the way to it; labels alone are neither. */
export function applySpec(current: DeploymentState, wanted: WantedSpec): IntentDecision {
  const { env = current.env, runtimeConfig = current.runtimeConfig, labels = current.labels } = wanted;
  const specChanged =
    current.desiredState !== 'DEPLOYED' ||
    wanted.releaseId !== desiredReleaseId(current) ||
    !sameJson(env, current.env) ||
    !sameJson(runtimeConfig, current.runtimeConfig);
  if (current.deletionRequestedAt !== null) return terminating();
  if (!specChanged) return applyLabels(current, labels);
  const phase = phaseOnNewSpec(current);
  if (phase === 'refuse') return illegal(current.phase, 'a new spec', 'PENDING');
  return {
    kind: 'applied',
    reason: 'SpecChanged',
    change: {
      labels,
      env,
      runtimeConfig,
      desiredState: 'DEPLOYED',
      generation: current.generation + 1,
      targetReleaseId: wanted.releaseId,
      phase,
      error: null,
      retryRequested: false,
    },
  };
}

/** Why a new spec would be refused whatever it says; undefined if it might be taken. */
export function refusesNewSpec(current: DeploymentState): Failure<never> | undefined {
  const decision =
    current.deletionRequestedAt !== null
      ? terminating()
      : phaseOnNewSpec(current) === 'refuse'
        ? illegal(current.phase, 'a new spec', 'PENDING')
        : UNCHANGED;
  return decision.kind === 'refused' ? decision.failure : undefined;
}

/** An update goes on from what runs; what never ran is set up from the start. */
function phaseOnNewSpec(current: DeploymentState): DeploymentPhase | 'refuse' {
  const to = ON_NEW_SPEC[current.phase];
  if (to === 'keep') return current.phase;
  if (to === 'byHistory') return current.currentReleaseId === null ? 'PENDING' : 'UPDATE_PENDING';
  return to;
}

export function undeploy(current: DeploymentState): IntentDecision {
  if (current.deletionRequestedAt !== null) return terminating();
  const to = ON_UNDEPLOY[current.phase];
  if (to === 'refuse') return illegal(current.phase, 'undeploying', 'UNDEPLOYING');
  if (to === 'keep' && current.desiredState === 'UNDEPLOYED') return UNCHANGED;
  return {
    kind: 'applied',
    reason: 'UndeployRequested',
    change: {
      desiredState: 'UNDEPLOYED',
      generation: current.generation + 1,
      ...moveTo(current, to === 'keep' ? current.phase : to),
    },
  };
}

/** The same once more: what runs is brought to what is wanted, though nothing of that has changed. */
export function reapply(current: DeploymentState): IntentDecision {
  if (current.deletionRequestedAt !== null) return terminating();
  const phase = phaseOnNewSpec(current);
  if (phase === 'refuse' || current.desiredState !== 'DEPLOYED') {
    return illegal(current.phase, 'applying again', 'UPDATE_PENDING', 'nothing is to run');
  }
  return {
    kind: 'applied',
    reason: 'ReapplyRequested',
    change: { phase, targetReleaseId: desiredReleaseId(current), error: null, retryRequested: false },
  };
}

/** Back to what serves; where nothing does, to nothing. From what has reached its goal there is no way back but a rollback. */
export function cancelRollout(current: DeploymentState): IntentDecision {
  const to = phaseOnCancel(current);
  const { currentReleaseId } = current;
  if (to === 'refuse') {
    return illegal(current.phase, 'cancelling', currentReleaseId === null ? 'UNDEPLOYING' : 'UPDATE_PENDING');
  }
  const back: DeploymentChange =
    currentReleaseId === null ? { desiredState: 'UNDEPLOYED' } : { targetReleaseId: currentReleaseId };
  return {
    kind: 'applied',
    reason: 'CancelRequested',
    change: { ...moveTo(current, to), ...back, generation: current.generation + 1 },
  };
}

/** Begins the failed step again. The request stands until a report moves on from it. */
export function retry(current: DeploymentState): IntentDecision {
  const to = ON_RETRY[current.phase];
  if (to === null) return illegal(current.phase, 'a retry', current.phase, 'there is nothing to retry');
  const moved = moveTo(current, to);
  const targetReleaseId = to === 'UPDATE_PENDING' ? desiredReleaseId(current) : current.targetReleaseId;
  return {
    kind: 'applied',
    reason: 'RetryRequested',
    change: { ...moved, targetReleaseId, retryRequested: true },
  };
}

/** Asked again, it succeeds and changes nothing. */
export function requestDelete(current: DeploymentState, now: Date): IntentDecision {
  if (current.deletionRequestedAt !== null || current.phase === 'DELETED') return UNCHANGED;
  if (edgeOf(current.phase, 'DELETE_PENDING') !== 'intent') {
    return illegal(current.phase, 'deleting', 'DELETE_PENDING');
  }
  return {
    kind: 'applied',
    reason: 'DeleteRequested',
    change: { ...moveTo(current, 'DELETE_PENDING'), deletionRequestedAt: now },
  };
}

/** The audited step out of every phase: what still runs is left alone (DETACHED) or given up (FORGOTTEN). */
export function dropRecord(
  current: DeploymentState,
  how: 'Detached' | 'Forgotten',
  now: Date,
): IntentDecision {
  if (current.phase === 'DELETED') return UNCHANGED;
  return {
    kind: 'applied',
    reason: how,
    change: {
      ...moveTo(current, 'DELETED'),
      deletionRequestedAt: current.deletionRequestedAt ?? now,
      deletedAt: now,
    },
  };
}

/** A wish of the user answers whatever went wrong before it. */
function moveTo(current: DeploymentState, phase: DeploymentPhase): DeploymentChange {
  const change: DeploymentChange = { phase, error: null, retryRequested: false };
  if (!NOTHING_RUNS.has(phase)) return change;
  return { ...change, ...releasesAfter(current, phase), observedRuntime: null, environmentInfo: null };
}

function terminating(): IntentDecision {
  const message = 'The deployment is being deleted; neither its spec nor its labels can change any more.';
  return { kind: 'refused', failure: refused({ kind: 'Terminating', message }).failure };
}

function illegal(from: DeploymentPhase, what: string, to: DeploymentPhase, why?: string): IntentDecision {
  const allowed = rulesOf(from).intents;
  const ways =
    allowed.length > 0 ? `a mutation may move it to ${allowed.join(', ')}` : 'no mutation moves it';
  const message = `\`phase\` is ${from}, which refuses ${what}${why === undefined ? '' : `: ${why}`}; from ${from}, ${ways}.`;
  return { kind: 'refused', failure: { kind: 'InvalidTransition', message, from, to, allowed } };
}
