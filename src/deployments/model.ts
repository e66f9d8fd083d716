import type { Condition } from '../kernel/conditions.js';
import type { JsonObject } from '../kernel/json.js';
import type { Labels } from '../kernel/labels.js';
import type { HeldLock } from '../kernel/failure.js';
import { ON_CANCEL, ON_NEW_SPEC, ON_RETRY, ON_UNDEPLOY, rulesOf, type DeploymentPhase } from './lifecycle.js';

/** A deployment as the decisions about it see it, and what its state alone says. Decisions: status.ts, intents.ts. */
export const DESIRED_STATES = ['DEPLOYED', 'UNDEPLOYED'] as const;
export type DesiredState = (typeof DESIRED_STATES)[number];
export const DEPLOYMENT_ORIGINS = ['MANAGED', 'DISCOVERED'] as const;
export type DeploymentOrigin = (typeof DEPLOYMENT_ORIGINS)[number];

/** `secret` variables have no value here: the value is internal. */
export interface EnvVariable {
  readonly name: string;
  readonly value: string;
}

export interface ObservedRuntime {
  readonly id: string | null;
  readonly name: string | null;
  readonly resourceId: string | null;
  readonly endpoint: string | null;
}

export interface EnvironmentInfo {
  readonly provider: string | null;
  readonly account: string | null;
  readonly region: string | null;
  readonly location: string | null;
  readonly hostname: string | null;
  readonly os: string | null;
  readonly arch: string | null;
}

export interface DeploymentError {
  /** For machines: `HealthCheckFailed`. */
  readonly code: string;
  /** For people; at most 4 KiB, cut at a character boundary. */
  readonly message: string;
  /** Whether the same again may go well. */
  readonly retryable: boolean;
}

export interface DeploymentSpec {
  readonly desiredState: DesiredState;
  readonly env: readonly EnvVariable[];
  readonly runtimeConfig: JsonObject;
}

/** Everything that a status write may set, and nothing else of a deployment. */
export interface DeploymentStatus {
  readonly phase: DeploymentPhase;
  readonly conditions: readonly Condition[];
  readonly observedGeneration: number;
  readonly observedRuntime: ObservedRuntime | null;
  readonly environmentInfo: EnvironmentInfo | null;
  readonly error: DeploymentError | null;
  /** What is serving; null while nothing runs. */
  readonly currentReleaseId: string | null;
  /** What it is moving to, or would run when deployed again; null when that is what is serving. */
  readonly targetReleaseId: string | null;
  /** A user asked to try again and no report has moved the phase since. */
  readonly retryRequested: boolean;
  readonly deletedAt: Date | null;
}

export interface DeploymentState extends DeploymentSpec, DeploymentStatus {
  readonly labels: Labels;
  readonly generation: number;
  readonly protocolVersion: number;
  readonly deletionRequestedAt: Date | null;
}

/** The state that a status write leaves. Written out by name: copies of large objects are slow. */
export function stateWithStatus(from: DeploymentState, status: DeploymentStatus): DeploymentState {
  return {
    phase: status.phase,
    conditions: status.conditions,
    observedGeneration: status.observedGeneration,
    observedRuntime: status.observedRuntime,
    environmentInfo: status.environmentInfo,
    error: status.error,
    currentReleaseId: status.currentReleaseId,
    targetReleaseId: status.targetReleaseId,
    retryRequested: status.retryRequested,
    deletedAt: status.deletedAt,
    desiredState: from.desiredState,
    env: from.env,
    runtimeConfig: from.runtimeConfig,
    labels: from.labels,
    generation: from.generation,
    protocolVersion: from.protocolVersion,
    deletionRequestedAt: from.deletionRequestedAt,
  };
}

/** Versions of the contract between this server and what drives a deployment that this server understands. */
export const DEPLOYMENT_PROTOCOL = { minimum: 1, current: 1 } as const;

/** What the spec wants to run: where it is moving to, else what is serving. */
export function desiredReleaseId(
  state: Pick<DeploymentStatus, 'currentReleaseId' | 'targetReleaseId'>,
): string | null {
  return state.targetReleaseId ?? state.currentReleaseId;
}

// What may be done now: from the state and its rollouts alone, never from who asks.
type Standing = Pick<DeploymentState, 'phase' | 'deletionRequestedAt'>;
type Lock = Pick<HeldLock, 'rolloutId' | 'startedBy'> | null;

/** The rollout that is under way, of an operation that can be called off. */
export interface UnfinishedRollout {
  readonly active: boolean;
  readonly cancelRequested: boolean;
}

/** Where calling off an active rollout leads: back to what serves or, where nothing does, to nothing. */
export function phaseOnCancel({
  phase,
  currentReleaseId,
}: Pick<DeploymentState, 'phase' | 'currentReleaseId'>): DeploymentPhase | 'refuse' {
  const to = currentReleaseId === null ? ON_UNDEPLOY[phase] : ON_CANCEL[phase];
  if (to !== 'keep') return to;
  return currentReleaseId === null ? 'refuse' : phase;
}

export function canCancel(
  state: Pick<DeploymentState, 'phase' | 'currentReleaseId'>,
  unfinished: UnfinishedRollout | null,
): boolean {
  if (unfinished === null || unfinished.cancelRequested) return false;
  return !unfinished.active || phaseOnCancel(state) !== 'refuse';
}

export function canRetry(state: Pick<DeploymentState, 'phase'>, lock: Lock): boolean {
  return lock === null && ON_RETRY[state.phase] !== null;
}

/** To the release that last succeeded beside the one that is wanted. */
export function canRollback(state: Standing, lock: Lock, previousReleaseId: string | null): boolean {
  return previousReleaseId !== null && blockedBy(state, lock) === null;
}

/** Deletion pre-empts: no lock keeps it out. */
export function canDelete(state: Standing): boolean {
  return state.deletionRequestedAt === null && state.phase !== 'DELETED';
}

/** Why a new spec would be refused now, one sentence; null if it would be taken. */
export function blockedBy(state: Standing, lock: Lock): string | null {
  if (state.phase === 'DELETED') return 'It is deleted.';
  if (state.deletionRequestedAt !== null) return 'It is being deleted.';
  if (ON_NEW_SPEC[state.phase] === 'refuse') {
    return `It is ${state.phase}: ${rulesOf(state.phase).meaning}`;
  }
  if (lock === null) return null;
  return `The rollout ${lock.rolloutId}, started by ${lock.startedBy}, is under way.`;
}

const SUMMARY_MAX = 512;

/** One sentence, the first of: the error, a condition that is false, what is going on. */
export function summarise(status: Pick<DeploymentStatus, 'phase' | 'conditions' | 'error'>): string {
  const { error } = status;
  if (error !== null) return oneLine(`${error.code}: ${error.message}`);
  const broken = status.conditions.find((condition) => condition.status === 'FALSE');
  if (broken !== undefined) {
    return oneLine(
      `${broken.type} is false (${broken.reason})${broken.message === '' ? '' : `: ${broken.message}`}`,
    );
  }
  return rulesOf(status.phase).meaning;
}

function oneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  const sentence = [...line].length > SUMMARY_MAX ? `${[...line].slice(0, SUMMARY_MAX - 1).join('')}…` : line;
  return /[.!?…]$/.test(sentence) ? sentence : `${sentence}.`;
}
