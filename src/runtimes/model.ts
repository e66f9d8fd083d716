import {
  CONDITIONS_MAX,
  mergeConditions,
  type Condition,
  type ReportedCondition,
} from '../kernel/conditions.js';
import { invalidInput, refused, type Failure, type InputIssue } from '../kernel/failure.js';
import { sameJson, type JsonObject } from '../kernel/json.js';
import type { Labels } from '../kernel/labels.js';

/** Types of runtimes that this server knows. `external` ones are driven by API clients through status patches. */
export const RUNTIME_TYPES = ['external'] as const;

/** Who reports on a runtime and on what runs there: clients of the API, or this server itself. */
export function drivenByClients(type: string): boolean {
  return type === 'external';
}

/** Why a report about a runtime of that type, or about what runs there, is refused. */
export function notDrivenByClients(type: string): Failure<never> {
  const message = `is on a runtime of type \`${type}\`, which this server drives itself; only \`external\` ones take reports`;
  return invalidInput([{ path: ['input', 'id'], message }]).failure;
}

export interface RuntimeState {
  readonly environment: string | null;
  readonly config: JsonObject;
  readonly labels: Labels;
  readonly generation: number;
  readonly observedGeneration: number;
  readonly conditions: readonly Condition[];
  readonly deletionRequestedAt: Date | null;
  readonly deletedAt: Date | null;
}

export type RuntimeChange = Partial<RuntimeState>;
export type RuntimeDecision =
  | { readonly kind: 'applied'; readonly change: RuntimeChange; readonly reason: string }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'refused'; readonly failure: Failure<never> };

/** What is undefined stays as it is. */
export interface WantedRuntime {
  readonly environment?: string | null | undefined;
  readonly config?: JsonObject | undefined;
  readonly labels?: Labels | undefined;
}

/** A change of config or environment is one more generation; labels alone are none. */
export function updateSpec(current: RuntimeState, wanted: WantedRuntime): RuntimeDecision {
  const { config = current.config, labels = current.labels } = wanted;
  const environment = wanted.environment === undefined ? current.environment : wanted.environment;
  const specChanged = environment !== current.environment || !sameJson(config, current.config);
  if (!specChanged && sameJson(labels, current.labels)) return { kind: 'unchanged' };
  if (!specChanged) return { kind: 'applied', change: { labels }, reason: 'LabelsChanged' };
  if (current.deletionRequestedAt !== null) {
    const message = 'The runtime is being deleted; its spec can not change any more.';
    return { kind: 'refused', failure: refused({ kind: 'Terminating', message }).failure };
  }
  const generation = current.generation + 1;
  return { kind: 'applied', change: { environment, config, labels, generation }, reason: 'SpecChanged' };
}

export interface RuntimeReport {
  readonly observedGeneration?: number | undefined;
  readonly conditions?: readonly ReportedCondition[] | undefined;
}

export type RuntimeStatus = Pick<RuntimeState, 'conditions' | 'observedGeneration'>;
export type RuntimeStatusDecision =
  | { readonly kind: 'applied'; readonly status: RuntimeStatus }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'refused'; readonly failure: Failure<never> };

/** As for deployments: conditions merge by type, the observed generation never goes back nor beyond. */
export function applyRuntimeStatus(
  current: RuntimeState,
  report: RuntimeReport,
  now: Date,
): RuntimeStatusDecision {
  const issues = generationIssues(current.generation, report);
  const observedGeneration = Math.max(current.observedGeneration, report.observedGeneration ?? 0);
  const conditions = mergeConditions(current.conditions, report.conditions ?? [], observedGeneration, now);
  if (conditions.length > CONDITIONS_MAX) {
    const message = `must leave at most ${CONDITIONS_MAX} condition types, would leave ${conditions.length}`;
    issues.push({ path: ['input', 'conditions'], message });
  }
  if (issues.length > 0) return { kind: 'refused', failure: invalidInput(issues).failure };
  const same = observedGeneration === current.observedGeneration && sameJson(conditions, current.conditions);
  return same ? { kind: 'unchanged' } : { kind: 'applied', status: { conditions, observedGeneration } };
}

function generationIssues(generation: number, report: RuntimeReport): InputIssue[] {
  const issues: InputIssue[] = [];
  const bound = (path: readonly string[], observed: number | undefined) => {
    if (observed === undefined || observed <= generation) return;
    issues.push({
      path: ['input', ...path],
      message: `must be at most ${generation}, the runtime's generation`,
    });
  };
  bound(['observedGeneration'], report.observedGeneration);
  report.conditions?.forEach((condition, index) =>
    bound(['conditions', String(index), 'observedGeneration'], condition.observedGeneration),
  );
  return issues;
}
