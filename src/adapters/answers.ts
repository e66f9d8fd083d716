import type { ObservedRuntime } from '../deployments/index.js';
import type { ReportedCondition } from '../kernel/conditions.js';
import type {
  AdapterAnswer,
  AdapterOutcome,
  AdapterTarget,
  InstanceReport,
  Outputs,
  Verdict,
} from './contract.js';

/** Shorthands for what adapters say. */
export const DONE: AdapterOutcome = { kind: 'done' };
export const OK: Verdict = { ok: true };
export const NOTHING_RUNS: ObservedRuntime = { id: null, name: null, resourceId: null, endpoint: null };

export function unfit(reason: string, message: string): Verdict & { readonly ok: false } {
  return { ok: false, reason, message };
}

export function inProgress(delaySeconds: number): AdapterOutcome {
  return { kind: 'inProgress', delaySeconds };
}

export function blocked(reason: string, message: string): AdapterOutcome {
  return { kind: 'blocked', reason, message };
}

export function rejected(reason: string, message: string): AdapterOutcome {
  return { kind: 'rejected', reason, message };
}

export function answer(outcome: AdapterOutcome, facts: Partial<AdapterAnswer> = {}): AdapterAnswer {
  const told =
    outcome.kind === 'blocked' || outcome.kind === 'rejected'
      ? [condition('Ready', 'FALSE', outcome.reason, outcome.message)]
      : [];
  return {
    outcome,
    conditions: told,
    runtime: null,
    environmentInfo: null,
    internal: {},
    instances: [],
    ...facts,
  };
}

export function condition(
  type: string,
  status: ReportedCondition['status'],
  reason: string,
  message = '',
): ReportedCondition {
  return { type, status, reason, message };
}

/** What was remembered of one instance; empty when nothing was. */
export function rememberedOf(target: Pick<AdapterTarget, 'instances'>, name: string) {
  return target.instances.find((instance) => instance.name === name)?.internal ?? {};
}

type InstanceFacts = Pick<InstanceReport, 'name' | 'serviceType' | 'lifecycle' | 'status'> &
  Partial<InstanceReport>;

export function instanceReport(facts: InstanceFacts): InstanceReport {
  const none: Outputs = {};
  return {
    health: 'UNKNOWN',
    statusMessage: null,
    outputs: none,
    sensitiveOutputs: none,
    error: null,
    internal: {},
    ...facts,
  };
}
