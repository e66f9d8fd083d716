import type { AdapterAnswer } from '../adapters/contract.js';
import type { DeploymentError, DeploymentPhase, DeploymentState, StatusReport } from '../deployments/index.js';
import type { ReportedCondition } from '../kernel/conditions.js';

/**
 * One step of a deployment: what to ask of the adapter, and what its answer means. Pure. The worker calls the adapter
 * between the two, never inside a transaction, and writes the whole result before it steps again. Nothing here depends
 * on how often or where it runs: the same record and the same facts are the same step.
 */
export interface StepRecord {
  readonly deployment: DeploymentState;
  /** Failed tries in a row of the call that this phase makes. */
  readonly tries: number;
  /** When the phase began that has a deadline; null in others. */
  readonly progressSince: Date | null;
  readonly progressDeadlineSeconds: number;
  /** A runtime, a release or a dependency that is missing or going away: nothing may be asked of the adapter. */
  readonly pending: Problem | null;
  /** What checks made before anything is touched found; empty when all is well. */
  readonly preflights: readonly Problem[];
  /** Resources that outlive releases are in the release, or were made by an earlier one. */
  readonly frozen: { readonly wanted: boolean; readonly recorded: boolean };
  /** Of everything that `apply` depends on; null when it cannot be told, as while something is pending. */
  readonly fingerprint: string | null;
  readonly lastAppliedFingerprint: string | null;
  readonly forceToken: string | null;
  readonly lastForceToken: string | null;
  /** `teardownDeployment` was asked for and is not answered yet. */
  readonly teardownRequested: boolean;
}

export interface Problem {
  readonly reason: string;
  readonly message: string;
}

/** In this order, each after the one before is `done`. */
export type Call =
  | { readonly kind: 'prepare' }
  | { readonly kind: 'gate' }
  | { readonly kind: 'apply'; readonly scope: 'FROZEN' | 'LIVE' }
  | { readonly kind: 'observe' }
  | { readonly kind: 'remove'; readonly scope: 'FROZEN' | 'LIVE' };

/** What came of the calls: the last answer, or the throw that ended them. */
export type Facts =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'answered'; readonly answer: AdapterAnswer }
  /** `message` is a sentence of ours: the text of a provider is internal. */
  | { readonly kind: 'threw'; readonly message: string };

export interface StepResult {
  /** What to write of the status; what leaves everything as it is writes nothing. */
  readonly report: StatusReport;
  /** Milliseconds until the next step: 0 at once, null never by itself. */
  readonly delayMs: number | null;
  readonly tries: number;
  /** The input that the adapter has accepted now; null: as it was; 'clear': nothing is applied any more. */
  readonly applied: { readonly fingerprint: string; readonly forceToken: string | null } | 'clear' | null;
  /** The prepared stack becomes the last good one. */
  readonly healthy: boolean;
}

/** Settled deployments are looked at this often. */
export const OBSERVE_EVERY_MS = 30_000;
/** A missing reference is looked for this often, should its change not be heard of. */
const PENDING_EVERY_MS = 30_000;
/** Tries of a call that throws, before the phase fails. */
export const TRIES_MAX = 10;

/** What the adapter is asked in this phase; none where the phase needs nothing of it. */
export function callsOf(record: StepRecord): readonly Call[] {
  const { deployment, frozen } = record;
  if (blocked(record)) return [];
  switch (deployment.phase) {
    case 'PENDING':
      return record.preflights.length > 0 ? [] : [{ kind: 'gate' }, { kind: 'prepare' }];
    case 'UPDATE_PENDING':
      return record.preflights.length > 0 ? [] : [{ kind: 'gate' }, { kind: 'prepare' }];
    case 'INITIAL_SETUP':
      return frozen.wanted ? [{ kind: 'apply', scope: 'FROZEN' }] : [];
    case 'PROVISIONING':
    case 'UPDATING':
    case 'WAITING_FOR_AGENTS':
      if (!needsApply(record)) return [{ kind: 'observe' }];
      return [
        ...(frozen.wanted ? [{ kind: 'apply', scope: 'FROZEN' } as const] : []),
        { kind: 'apply', scope: 'LIVE' },
      ];
    case 'RUNNING':
    case 'REFRESH_FAILED':
      return [{ kind: 'observe' }];
    case 'UNDEPLOYING':
    case 'DELETING':
      return [{ kind: 'remove', scope: 'LIVE' }];
    case 'TEARDOWN_REQUIRED':
      return record.teardownRequested ? [{ kind: 'remove', scope: 'FROZEN' }] : [];
    case 'DELETE_PENDING':
    case 'PREFLIGHTS_FAILED':
    case 'INITIAL_SETUP_FAILED':
    case 'PROVISIONING_FAILED':
    case 'UPDATE_FAILED':
    case 'UNDEPLOY_FAILED':
    case 'UNDEPLOYED':
    case 'DELETE_FAILED':
    case 'TEARDOWN_FAILED':
    case 'DELETED':
    case 'ERROR':
      return [];
  }
}

/** Unchanged input is never applied again, but for a force request that was not honoured yet. */
function needsApply(record: StepRecord): boolean {
  if (record.forceToken !== null && record.forceToken !== record.lastForceToken) return true;
  return record.fingerprint === null || record.fingerprint !== record.lastAppliedFingerprint;
}

/** Removing needs no release and no dependency: what was recorded is enough. */
const NEEDS_REFERENCES: ReadonlySet<DeploymentPhase> = new Set([
  'PENDING',
  'INITIAL_SETUP',
  'PROVISIONING',
  'WAITING_FOR_AGENTS',
  'UPDATE_PENDING',
  'UPDATING',
]);

function blocked({ deployment, pending }: StepRecord): Problem | null {
  return NEEDS_REFERENCES.has(deployment.phase) ? pending : null;
}

/** Where each phase that works goes to when it is done, and when it cannot be done. */
const WAYS = {
  PENDING: { done: 'INITIAL_SETUP', failed: 'PREFLIGHTS_FAILED' },
  INITIAL_SETUP: { done: 'PROVISIONING', failed: 'INITIAL_SETUP_FAILED' },
  PROVISIONING: { done: 'RUNNING', failed: 'PROVISIONING_FAILED' },
  UPDATE_PENDING: { done: 'UPDATING', failed: 'UPDATE_FAILED' },
  UPDATING: { done: 'RUNNING', failed: 'UPDATE_FAILED' },
  UNDEPLOYING: { done: 'UNDEPLOYED', failed: 'UNDEPLOY_FAILED' },
  DELETE_PENDING: { done: 'DELETING', failed: 'DELETE_FAILED' },
  DELETING: { done: 'DELETED', failed: 'DELETE_FAILED' },
  TEARDOWN_REQUIRED: { done: 'DELETED', failed: 'TEARDOWN_FAILED' },
} as const satisfies Partial<Record<DeploymentPhase, { done: DeploymentPhase; failed: DeploymentPhase }>>;
type WorkingPhase = keyof typeof WAYS;

function isWorking(phase: DeploymentPhase): phase is WorkingPhase {
  return Object.hasOwn(WAYS, phase);
}

/** What the calls of `callsOf` came to. `random` is in [0, 1): it spreads what was delayed at one moment. */
export function step(record: StepRecord, facts: Facts, now: Date, random: () => number): StepResult {
  const { phase } = record.deployment;
  if (phase === 'RUNNING' || phase === 'REFRESH_FAILED') return observed(record, facts, random);
  // Where there is nobody to wait for, the same work goes on under the name of the phase that waits.
  const working = phase === 'WAITING_FOR_AGENTS' ? waitingFor(record) : phase;
  if (!isWorking(working)) return rest(record);
  if (working === 'TEARDOWN_REQUIRED' && !record.teardownRequested) return rest(record);

  const late = overdue(record, now) && !(facts.kind === 'answered' && facts.answer.outcome.kind === 'done');
  if (late) {
    const message = `It did not become ready within ${record.progressDeadlineSeconds} seconds.`;
    return failed(record, working, { code: 'ProgressDeadlineExceeded', message, retryable: true }, facts);
  }
  const reference = blocked(record);
  if (reference) return waits(record, reference, facts);
  const [problem] = checks(record, working) ? record.preflights : [];
  if (problem) {
    const message = record.preflights.map((one) => one.message).join(' ');
    return failed(record, working, { code: problem.reason, message, retryable: false }, facts);
  }
  if (facts.kind === 'threw') return threw(record, working, facts.message, random);
  if (facts.kind === 'nothing') {
    // Nothing was asked: right where nothing is to be asked, otherwise there is no step without an answer.
    return callsOf(record).length === 0 ? done(record, working, facts) : { ...rest(record), delayMs: 0 };
  }
  const { outcome } = facts.answer;
  if (phase === 'WAITING_FOR_AGENTS' && outcome.kind !== 'blocked' && outcome.kind !== 'rejected') {
    // Never past the phase in which the work is done, even when it is done already.
    const report = { ...reportOf(record, facts), phase: working, reason: 'AgentsReady' };
    return { ...rest(record), report, delayMs: 0, tries: 0 };
  }
  switch (outcome.kind) {
    case 'done':
      return done(record, working, facts);
    case 'inProgress':
      return {
        ...rest(record),
        report: reportOf(record, facts),
        delayMs: outcome.delaySeconds * 1_000,
        tries: 0,
      };
    case 'blocked':
      return waits(record, outcome, facts);
    case 'rejected':
      return failed(record, working, { code: outcome.reason, message: outcome.message, retryable: false }, facts);
  }
}

function checks({ deployment }: StepRecord, working: WorkingPhase): boolean {
  return deployment.phase === working && (working === 'PENDING' || working === 'UPDATE_PENDING');
}

function waitingFor({ deployment }: StepRecord): WorkingPhase {
  return deployment.currentReleaseId === null ? 'PROVISIONING' : 'UPDATING';
}

function overdue({ progressSince, progressDeadlineSeconds }: StepRecord, now: Date): boolean {
  return progressSince !== null && now.getTime() >= progressSince.getTime() + progressDeadlineSeconds * 1_000;
}

function rest(record: StepRecord): StepResult {
  return { report: {}, delayMs: null, tries: record.tries, applied: null, healthy: false };
}

/** What the answer says of the world, whatever becomes of the phase. */
function reportOf({ deployment }: StepRecord, facts: Facts): StatusReport {
  if (facts.kind !== 'answered') return {};
  const { conditions, runtime, environmentInfo } = facts.answer;
  return {
    observedGeneration: deployment.generation,
    conditions,
    ...(runtime === null ? {} : { runtime }),
    ...(environmentInfo === null ? {} : { environmentInfo }),
  };
}

function withCondition(report: StatusReport, condition: ReportedCondition): StatusReport {
  const others = (report.conditions ?? []).filter((known) => known.type !== condition.type);
  return { ...report, conditions: [...others, condition] };
}

function done(record: StepRecord, working: WorkingPhase, facts: Facts): StepResult {
  const report = reportOf(record, facts);
  const { deployment, frozen } = record;
  const phase = working === 'DELETING' && frozen.recorded ? 'TEARDOWN_REQUIRED' : WAYS[working].done;
  const removed = phase === 'UNDEPLOYED' || phase === 'DELETED' || phase === 'TEARDOWN_REQUIRED';
  const ready: ReportedCondition = removed
    ? { type: 'Ready', status: 'FALSE', reason: 'Removed' }
    : { type: 'Ready', status: 'TRUE', reason: 'Completed' };
  const moved: StatusReport = {
    ...(phase === 'RUNNING' || removed ? withCondition(report, ready) : report),
    phase,
    observedGeneration: deployment.generation,
    reason: REASONS[working],
  };
  const settled = phase === 'RUNNING' || removed;
  return {
    report: moved,
    delayMs: phase === 'RUNNING' ? OBSERVE_EVERY_MS : settled ? null : 0,
    tries: 0,
    applied: removed ? 'clear' : phase === 'RUNNING' ? appliedNow(record) : null,
    healthy: phase === 'RUNNING',
  };
}

const REASONS: Readonly<Record<WorkingPhase, string>> = {
  PENDING: 'PreflightsPassed',
  INITIAL_SETUP: 'SetUp',
  PROVISIONING: 'Provisioned',
  UPDATE_PENDING: 'PreflightsPassed',
  UPDATING: 'Updated',
  UNDEPLOYING: 'Undeployed',
  DELETE_PENDING: 'DeletionStarted',
  DELETING: 'Removed',
  TEARDOWN_REQUIRED: 'TornDown',
};

function appliedNow({ fingerprint, forceToken, lastForceToken }: StepRecord): StepResult['applied'] {
  return fingerprint === null ? null : { fingerprint, forceToken: forceToken ?? lastForceToken };
}

function failed(record: StepRecord, working: WorkingPhase, error: DeploymentError, facts: Facts): StepResult {
  const condition = { type: 'Ready', status: 'FALSE', reason: error.code, message: error.message } as const;
  return {
    report: {
      ...withCondition(reportOf(record, facts), condition),
      phase: WAYS[working].failed,
      observedGeneration: record.deployment.generation,
      error,
      reason: error.code,
      message: error.message,
    },
    delayMs: null,
    tries: 0,
    applied: null,
    healthy: false,
  };
}

/** Somebody else must act; no try is counted, and the deadline goes on. */
function waits(record: StepRecord, { reason, message }: Problem, facts: Facts): StepResult {
  const condition = { type: 'Ready', status: 'FALSE', reason, message } as const;
  const { deployment } = record;
  const noAgent = reason === 'NoReadyAgent' && deployment.phase !== 'WAITING_FOR_AGENTS';
  const canWait = deployment.phase === 'PROVISIONING' || deployment.phase === 'UPDATING';
  return {
    report: {
      ...withCondition(reportOf(record, facts), condition),
      ...(noAgent && canWait ? { phase: 'WAITING_FOR_AGENTS', reason } : {}),
    },
    delayMs: PENDING_EVERY_MS,
    tries: record.tries,
    applied: null,
    healthy: false,
  };
}

function threw(record: StepRecord, working: WorkingPhase, message: string, random: () => number): StepResult {
  const tries = record.tries + 1;
  const error = { code: 'AdapterFailed', message, retryable: true };
  if (tries >= TRIES_MAX) return failed(record, working, error, { kind: 'nothing' });
  const condition = { type: 'Ready', status: 'FALSE', reason: 'Retrying', message } as const;
  return {
    report: { conditions: [condition] },
    delayMs: retryDelayMs(tries, random),
    tries,
    applied: null,
    healthy: false,
  };
}

/** 2^n seconds, give or take a quarter. */
function retryDelayMs(tries: number, random: () => number): number {
  return 2 ** tries * 1_000 * (0.75 + random() / 2);
}

/** Read-only: drift and bad health are told, never mended behind the user's back. */
function observed(record: StepRecord, facts: Facts, random: () => number): StepResult {
  const { phase } = record.deployment;
  const result = { ...rest(record), delayMs: OBSERVE_EVERY_MS, tries: 0 };
  if (facts.kind === 'threw') {
    // Not seeing it says nothing about it.
    const tries = Math.min(record.tries + 1, TRIES_MAX);
    const delayMs = Math.min(OBSERVE_EVERY_MS, retryDelayMs(tries, random));
    const condition = { type: 'Observed', status: 'FALSE', reason: 'AdapterFailed', message: facts.message } as const;
    return { ...result, report: { conditions: [condition] }, delayMs, tries };
  }
  if (facts.kind === 'nothing') return result;
  const { answer } = facts;
  const seen: ReportedCondition = { type: 'Observed', status: 'TRUE', reason: 'Seen' };
  const failing = record.deployment.conditions.some((one) => one.type === 'Observed' && one.status === 'FALSE');
  const report = failing ? withCondition(reportOf(record, facts), seen) : reportOf(record, facts);
  const delayMs = answer.outcome.kind === 'inProgress' ? answer.outcome.delaySeconds * 1_000 : OBSERVE_EVERY_MS;
  const sick = sickness(answer);
  if (sick && phase === 'RUNNING') {
    const error = { code: sick.reason, message: sick.message, retryable: true };
    return { ...result, delayMs, report: { ...report, phase: 'REFRESH_FAILED', error, reason: sick.reason, message: sick.message } };
  }
  if (sick) {
    const error = { code: sick.reason, message: sick.message, retryable: true };
    return { ...result, delayMs, report: { ...report, error } };
  }
  if (phase === 'REFRESH_FAILED') {
    return { ...result, delayMs, healthy: true, report: { ...report, phase: 'RUNNING', reason: 'Recovered' } };
  }
  return { ...result, delayMs, healthy: true, report };
}

function sickness({ conditions, outcome }: AdapterAnswer): Problem | undefined {
  if (outcome.kind === 'rejected' || outcome.kind === 'blocked') return outcome;
  const health = conditions.find((condition) => condition.type === 'Healthy' && condition.status === 'FALSE');
  return health && { reason: health.reason, message: health.message ?? '' };
}
