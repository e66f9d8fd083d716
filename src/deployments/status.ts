import {
  CONDITIONS_MAX,
  mergeConditions,
  MESSAGE_MAX_BYTES,
  type ReportedCondition,
} from '../kernel/conditions.js';
import { invalidInput, refused, type Failure, type InputIssue } from '../kernel/failure.js';
import { sameJson } from '../kernel/json.js';
import { cutToBytes } from '../kernel/text.js';
import { DELETION_PHASES, edgeOf, NOTHING_RUNS, rulesOf, type DeploymentPhase } from './lifecycle.js';
import {
  DEPLOYMENT_PROTOCOL,
  type DeploymentError,
  type DeploymentState,
  type DeploymentStatus,
  type EnvironmentInfo,
  type ObservedRuntime,
} from './model.js';

/** What a reporter says. Absent leaves a fact as it is; null clears it. */
export interface StatusReport {
  readonly observedGeneration?: number | undefined;
  readonly phase?: DeploymentPhase | undefined;
  readonly conditions?: readonly ReportedCondition[] | undefined;
  readonly runtime?: ObservedRuntime | null | undefined;
  readonly environmentInfo?: EnvironmentInfo | null | undefined;
  readonly error?: DeploymentError | null | undefined;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
}

export type StatusDecision =
  | { readonly kind: 'applied'; readonly status: DeploymentStatus }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'refused'; readonly failure: Failure<never> };

/**
 * The status after a report, decided from the state alone. It can change nothing of the spec: its result has no field
 * for that. A repeat of what is already there changes nothing, and is no failure.
 */
export function applyStatus(current: DeploymentState, report: StatusReport, now: Date): StatusDecision {
  const failure =
    protocolFailure(current) ?? generationFailure(current, report) ?? errorFailure(current, report);
  if (failure) return { kind: 'refused', failure };
  const move = moveOf(current, report);
  if (move.kind === 'refused') return move;

  const { phase } = move;
  const moved = phase !== current.phase;
  const observedGeneration = Math.max(current.observedGeneration, report.observedGeneration ?? 0);
  const conditions = mergeConditions(current.conditions, report.conditions ?? [], observedGeneration, now);
  if (conditions.length > CONDITIONS_MAX) {
    const message = `must leave at most ${CONDITIONS_MAX} condition types, would leave ${conditions.length}`;
    return { kind: 'refused', failure: badInput(['conditions'], message) };
  }
  const empty = NOTHING_RUNS.has(phase);
  const status: DeploymentStatus = {
    phase,
    conditions,
    observedGeneration,
    observedRuntime: empty ? null : reportedOr(report.runtime, current.observedRuntime),
    environmentInfo: empty ? null : reportedOr(report.environmentInfo, current.environmentInfo),
    error: move.setAside ? current.error : errorAfter(current, report, phase),
    ...(moved ? releasesAfter(current, phase) : releasesOf(current)),
    // The report that moves on from a retry has answered it.
    retryRequested: moved ? false : current.retryRequested,
    deletedAt: phase === 'DELETED' ? (current.deletedAt ?? now) : null,
  };
  if (sameJson(status, statusOf(current))) return { kind: 'unchanged' };
  // The log has said that it is deleted: nothing may follow that.
  if (current.phase === 'DELETED') {
    return { kind: 'refused', failure: illegal('DELETED', report.phase ?? 'DELETED') };
  }
  return { kind: 'applied', status };
}

export function statusOf(state: DeploymentState): DeploymentStatus {
  const { phase, conditions, observedGeneration, observedRuntime, environmentInfo } = state;
  const { error, currentReleaseId, targetReleaseId, retryRequested, deletedAt } = state;
  return {
    phase,
    conditions,
    observedGeneration,
    observedRuntime,
    environmentInfo,
    error,
    currentReleaseId,
    targetReleaseId,
    retryRequested,
    deletedAt,
  };
}

type Releases = Pick<DeploymentStatus, 'currentReleaseId' | 'targetReleaseId'>;

function releasesOf({ currentReleaseId, targetReleaseId }: Releases): Releases {
  return { currentReleaseId, targetReleaseId };
}

/** Running promotes what it moved to. Where nothing runs, nothing serves, and what it would run is remembered. */
export function releasesAfter(current: Releases, phase: DeploymentPhase): Releases {
  const wanted = current.targetReleaseId ?? current.currentReleaseId;
  if (phase === 'RUNNING') return { currentReleaseId: wanted, targetReleaseId: null };
  if (NOTHING_RUNS.has(phase)) return { currentReleaseId: null, targetReleaseId: wanted };
  return releasesOf(current);
}

type Move =
  | { readonly kind: 'to'; readonly phase: DeploymentPhase; readonly setAside: boolean }
  | { readonly kind: 'refused'; readonly failure: Failure<never> };

/**
 * Where a report moves the phase. While a deployment is being deleted, a report from before that keeps its resource
 * facts, which the removal will need, and its phase is set aside: the wish to delete is never undone by a fact.
 */
function moveOf(current: DeploymentState, report: StatusReport): Move {
  const to = report.phase ?? current.phase;
  if (to === current.phase || edgeOf(current.phase, to) === 'fact') {
    return { kind: 'to', phase: to, setAside: false };
  }
  const stale =
    current.deletionRequestedAt !== null && current.phase !== 'DELETED' && !DELETION_PHASES.has(to);
  if (stale && carriesFacts(report)) return { kind: 'to', phase: current.phase, setAside: true };
  return { kind: 'refused', failure: illegal(current.phase, to) };
}

function carriesFacts({ runtime, environmentInfo, conditions }: StatusReport): boolean {
  return (runtime ?? null) !== null || (environmentInfo ?? null) !== null || (conditions ?? []).length > 0;
}

function illegal(from: DeploymentPhase, to: DeploymentPhase): Failure<never> & { kind: 'InvalidTransition' } {
  const allowed = rulesOf(from).facts;
  const edge = edgeOf(from, to);
  const by = { intent: 'a user’s mutation', engine: 'the server itself', fact: null, audited: null };
  const only = edge === null ? null : by[edge];
  const why = only === null ? '' : `: only ${only} makes that move`;
  const ways = allowed.length > 0 ? `a report may move it to ${allowed.join(', ')}` : 'no report moves it';
  const message = `\`phase\` must not go from ${from} to ${to} by a report${why}; from ${from}, ${ways}.`;
  return { kind: 'InvalidTransition', message, from, to, allowed };
}

/** An error explains the phase it came with: a move replaces it, and what runs or ended as wanted has none. */
function errorAfter(
  current: DeploymentState,
  report: StatusReport,
  phase: DeploymentPhase,
): DeploymentError | null {
  const { settled, failed } = rulesOf(phase);
  if (settled && !failed) return null;
  if (report.error) return { ...report.error, message: cutToBytes(report.error.message, MESSAGE_MAX_BYTES) };
  if (phase === current.phase && report.error === undefined) return current.error;
  if (!failed) return null;
  return {
    code: report.reason ?? 'Unexplained',
    message: cutToBytes(report.message ?? 'The reporter gave no reason.', MESSAGE_MAX_BYTES),
    retryable: true,
  };
}

function reportedOr<T>(reported: T | undefined, known: T): T {
  return reported === undefined ? known : reported;
}

function badInput(path: readonly string[], message: string): Failure<never> {
  return invalidInput([{ path: ['input', ...path], message }]).failure;
}

function protocolFailure({ protocolVersion: found }: DeploymentState): Failure<never> | undefined {
  const { minimum, current } = DEPLOYMENT_PROTOCOL;
  if (found >= minimum && found <= current) return undefined;
  const mend = found < minimum ? 'apply the deployment again with a newer client' : 'upgrade this server';
  const message = `The deployment has version ${found} of the protocol and this server knows ${minimum} to ${current}: ${mend}.`;
  return refused({ kind: 'IncompatibleProtocol', message, found, minimum, current }).failure;
}

function generationFailure(current: DeploymentState, report: StatusReport): Failure<never> | undefined {
  const { generation } = current;
  const issues: InputIssue[] = [];
  const bound = (path: readonly string[], observed: number | undefined) => {
    if (observed === undefined || observed <= generation) return;
    issues.push({
      path: ['input', ...path],
      message: `must be at most ${generation}, the deployment's generation`,
    });
  };
  bound(['observedGeneration'], report.observedGeneration);
  report.conditions?.forEach((condition, index) =>
    bound(['conditions', String(index), 'observedGeneration'], condition.observedGeneration),
  );
  // Promoting says that what is wanted now is what runs; a report about an earlier wish can not know that.
  const promotes =
    report.phase === 'RUNNING' && current.phase !== 'RUNNING' && current.targetReleaseId !== null;
  if (promotes && report.observedGeneration !== undefined && report.observedGeneration < generation) {
    const message = `must be ${generation}, the deployment's generation, to report RUNNING`;
    issues.push({ path: ['input', 'observedGeneration'], message });
  }
  return issues.length > 0 ? invalidInput(issues).failure : undefined;
}

function errorFailure(current: DeploymentState, report: StatusReport): Failure<never> | undefined {
  if (!report.error) return undefined;
  const phase = report.phase ?? current.phase;
  const { settled, failed } = rulesOf(phase);
  if (!settled || failed) return undefined;
  return badInput(['error'], `must be absent: a deployment that is ${phase} has no error`);
}
