import { z } from 'zod';

import { invalidInput, refused, type Failure } from '../kernel/failure.js';

/**
 * Rollouts: attempts to change what a deployment runs. One source for operations, phases and outcomes: the enums of the
 * graph, of the parser and of the database are built from, or checked against, these tables.
 */
export const ROLLOUT_OPERATIONS = {
  DEPLOY: 'The first release of a deployment, or the first after it was undeployed.',
  UPDATE: 'Another release.',
  ROLLBACK: 'A release that ran before.',
  REDEPLOY: 'The same release and spec once more.',
  CONFIG_CHANGE: 'The same release with another spec.',
  RETRY: 'What failed, tried again.',
  UNDEPLOY: 'Taking down what runs.',
  DELETE: 'Taking it down for good.',
} as const satisfies Readonly<Record<string, string>>;
export type RolloutOperation = keyof typeof ROLLOUT_OPERATIONS;

/** Progress for people: any may follow any while a rollout is unfinished. */
export const ROLLOUT_PHASES = {
  PREPARING: 'Nothing is built yet.',
  BUILDING: 'A release is being built.',
  PUSHING: 'What was built is being published.',
  ACTIVATING: 'The deployment is moving to what the rollout wants.',
} as const satisfies Readonly<Record<string, string>>;
export type RolloutPhase = keyof typeof ROLLOUT_PHASES;

interface OutcomeRule {
  /** `clients`: a mutation may say so. `facts`: what happened to the deployment. `reconciler`: nobody is left to say it. */
  readonly by: 'clients' | 'facts' | 'reconciler';
  readonly meaning: string;
}

/** How a rollout ends. An outcome never changes. */
export const ROLLOUT_OUTCOMES = {
  SUCCEEDED: { by: 'facts', meaning: 'The deployment is what the rollout wanted.' },
  FAILED: { by: 'clients', meaning: 'It could not be done; `error` says why.' },
  CANCELLED: { by: 'clients', meaning: 'Somebody called it off, or deleted the deployment.' },
  INTERRUPTED: { by: 'reconciler', meaning: 'Whoever drove it fell silent until its lock had run out.' },
} as const satisfies Readonly<Record<string, OutcomeRule>>;
export type RolloutOutcome = keyof typeof ROLLOUT_OUTCOMES;

const names = <K extends string>(table: Readonly<Record<K, unknown>>) => Object.keys(table) as [K, ...K[]]; // its own keys
export const ROLLOUT_OPERATION_NAMES = names(ROLLOUT_OPERATIONS);
export const ROLLOUT_PHASE_NAMES = names(ROLLOUT_PHASES);
export const ROLLOUT_OUTCOME_NAMES = names(ROLLOUT_OUTCOMES);
/** By the names that the enums have in the database. */
export const ROLLOUT_ENUMS = {
  RolloutOperation: ROLLOUT_OPERATION_NAMES,
  RolloutPhase: ROLLOUT_PHASE_NAMES,
  RolloutOutcome: ROLLOUT_OUTCOME_NAMES,
};
export const rolloutPhaseSchema = z.enum(ROLLOUT_PHASE_NAMES, {
  error: `must be one of ${ROLLOUT_PHASE_NAMES.join(', ')}`,
});

export interface RolloutError {
  readonly code: string;
  /** At most 4 KiB. */
  readonly message: string;
}

export interface RolloutState {
  readonly operation: RolloutOperation;
  readonly phase: RolloutPhase;
  readonly activatedAt: Date | null;
  /** Cancelled when active already: it ends when the deployment is back. */
  readonly cancelRequestedAt: Date | null;
  readonly outcome: RolloutOutcome | null;
  readonly finishedAt: Date | null;
  readonly message: string | null;
  readonly error: RolloutError | null;
}

export type RolloutChange = Partial<Omit<RolloutState, 'operation'>> & { readonly toReleaseId?: string };
export type RolloutDecision =
  | { readonly kind: 'applied'; readonly change: RolloutChange; readonly reason: string }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'refused'; readonly failure: Failure<never> };

const UNCHANGED: RolloutDecision = { kind: 'unchanged' };

export function setPhase(current: RolloutState, phase: RolloutPhase): RolloutDecision {
  if (current.outcome !== null) return alreadyFinished(current, 'its phase');
  // Being active is a fact: a build that reports late must not hide it.
  if (current.activatedAt !== null) return phase === current.phase ? UNCHANGED : alreadyActive('its phase');
  if (phase === 'ACTIVATING') {
    const message = 'must be PREPARING, BUILDING or PUSHING: `activateRollout` makes it ACTIVATING';
    return { kind: 'refused', failure: invalidInput([{ path: ['input', 'phase'], message }]).failure };
  }
  if (phase === current.phase) return UNCHANGED;
  return { kind: 'applied', change: { phase }, reason: 'PhaseChanged' };
}

export function activate(current: RolloutState, toReleaseId: string, now: Date): RolloutDecision {
  if (current.outcome !== null) return alreadyFinished(current, 'activation');
  if (current.activatedAt !== null) return alreadyActive('activation');
  return {
    kind: 'applied',
    change: { phase: 'ACTIVATING', activatedAt: now, toReleaseId },
    reason: 'Activated',
  };
}

/** What a client says of its own attempt. Once active, what happens to the deployment decides instead. */
export function fail(current: RolloutState, error: RolloutError, now: Date): RolloutDecision {
  // A later failure of what was cancelled keeps the cancellation and its reason.
  if (current.outcome === 'FAILED' || current.outcome === 'CANCELLED') return UNCHANGED;
  if (current.outcome !== null) return alreadyFinished(current, 'a failure');
  if (current.activatedAt !== null) return alreadyActive('a failure');
  return { kind: 'applied', change: { outcome: 'FAILED', finishedAt: now, error }, reason: 'RolloutFailed' };
}

/** What takes down is not called off: deploy again when it is done. */
export function cancellable(operation: RolloutOperation): boolean {
  return operation !== 'UNDEPLOY' && operation !== 'DELETE';
}

/** Before activation it ends at once; afterwards it waits for the deployment to be back where it was. */
export function cancel(current: RolloutState, message: string | null, now: Date): RolloutDecision {
  if (current.outcome === 'CANCELLED' || (current.outcome === null && current.cancelRequestedAt !== null)) {
    return UNCHANGED;
  }
  if (current.outcome !== null) return alreadyFinished(current, 'cancelling');
  if (!cancellable(current.operation)) {
    const text = `A rollout that is to ${current.operation.toLowerCase()} can not be cancelled.`;
    return { kind: 'refused', failure: illegal('RUNNING', 'CANCELLED', text) };
  }
  if (current.activatedAt === null) {
    return {
      kind: 'applied',
      change: { outcome: 'CANCELLED', cancelRequestedAt: now, finishedAt: now, message },
      reason: 'RolloutCancelled',
    };
  }
  return { kind: 'applied', change: { cancelRequestedAt: now, message }, reason: 'CancelRequested' };
}

/** What ends a rollout from outside: the deployment's new phase, its deletion, or the reconciler. */
export type Settlement =
  | { readonly kind: 'reached' }
  | { readonly kind: 'failed'; readonly error: RolloutError }
  | { readonly kind: 'cancelled'; readonly message: string }
  | { readonly kind: 'interrupted'; readonly message: string };

/** Total: whatever is unfinished gets exactly one outcome, and what is finished keeps its own. */
export function settled(current: RolloutState, settlement: Settlement, now: Date): RolloutDecision {
  if (current.outcome !== null) return UNCHANGED;
  const end = (outcome: RolloutOutcome, rest: RolloutChange = {}): RolloutDecision => ({
    kind: 'applied',
    change: { outcome, finishedAt: now, ...rest },
    reason: REASONS[outcome],
  });
  // The wish to cancel beats what became of it, and keeps its reason.
  if (current.cancelRequestedAt !== null) return end('CANCELLED');
  switch (settlement.kind) {
    case 'reached':
      return end('SUCCEEDED');
    case 'failed':
      return end('FAILED', { error: settlement.error });
    case 'cancelled':
      return end('CANCELLED', { cancelRequestedAt: now, message: settlement.message });
    case 'interrupted':
      return end('INTERRUPTED', { message: settlement.message });
  }
}

const REASONS: Readonly<Record<RolloutOutcome, string>> = {
  SUCCEEDED: 'RolloutSucceeded',
  FAILED: 'RolloutFailed',
  CANCELLED: 'RolloutCancelled',
  INTERRUPTED: 'RolloutInterrupted',
};

function alreadyFinished({ outcome }: RolloutState, what: string): RolloutDecision {
  const from = outcome ?? 'RUNNING';
  return {
    kind: 'refused',
    failure: illegal(from, from, `The rollout has ended ${from}, which never changes: ${what} is refused.`),
  };
}

function alreadyActive(what: string): RolloutDecision {
  const message = `The rollout is active: ${what} is refused; what becomes of the deployment decides its outcome.`;
  return { kind: 'refused', failure: illegal('ACTIVATING', 'ACTIVATING', message) };
}

function illegal(from: string, to: string, message: string): Failure<never> {
  return refused({ kind: 'InvalidTransition', message, from, to, allowed: [] }).failure;
}
