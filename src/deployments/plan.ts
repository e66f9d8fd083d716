import { canonicalJson } from '../kernel/json.js';
import { LIFECYCLE, rulesOf, type DeploymentPhase } from './lifecycle.js';

/** What a dry run says beside what the deployment would be: how that differs from now, and the way there. Pure. */
export interface DeploymentPlan {
  readonly changes: readonly PlannedChange[];
  /** In the order in which it would pass them if all goes well; the first is where it would begin. */
  readonly phases: readonly DeploymentPhase[];
}

/** Values as JSON text. */
export interface PlannedChange {
  readonly field: PlannedField;
  readonly from: string | null;
  readonly to: string | null;
}

/** What a plan compares: everything that these mutations can change of what is wanted. */
const FIELDS = ['labels', 'env', 'runtimeConfig', 'desiredState', 'generation', 'releaseId'] as const;
export type PlannedField = (typeof FIELDS)[number];

type Planned = Readonly<Record<Exclude<PlannedField, 'releaseId'>, unknown>> & {
  readonly phase: DeploymentPhase;
  readonly currentReleaseId: string | null;
  readonly targetReleaseId: string | null;
};

export function planOf(before: Planned | null, after: Planned): DeploymentPlan {
  const text = (row: Planned | null, field: PlannedField): string | null => {
    const value =
      field === 'releaseId' ? (row?.targetReleaseId ?? row?.currentReleaseId) : (row?.[field] ?? null);
    return value === null || value === undefined ? null : canonicalJson(value);
  };
  const changes = FIELDS.map((field) => ({ field, from: text(before, field), to: text(after, field) }));
  const moved = before === null || before.phase !== after.phase || before.generation !== after.generation;
  return {
    changes: changes.filter(({ from, to }) => from !== to),
    phases: moved ? phasesAhead(after.phase) : [],
  };
}

/** The shortest way on by facts to where nothing more is to be done, around every failure and every wait. */
export function phasesAhead(from: DeploymentPhase): readonly DeploymentPhase[] {
  const ways: DeploymentPhase[][] = [[from]];
  const seen = new Set<DeploymentPhase>([from]);
  for (const way of ways) {
    const at = way[way.length - 1] ?? from;
    if (rulesOf(at).settled) return way;
    const next = LIFECYCLE[at].facts.filter((to) => !rulesOf(to).failed && !seen.has(to));
    for (const to of next) {
      seen.add(to);
      // An array hands out what is added while it is walked.
      ways.push([...way, to]);
    }
  }
  return [from];
}
