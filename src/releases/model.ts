/** What a release consists of, and which sets of resources make sense. A release never changes. */
export const RESOURCE_LIFECYCLES = ['FROZEN', 'LIVE'] as const;
export type ResourceLifecycle = (typeof RESOURCE_LIFECYCLES)[number];
export const RESCHEDULES = ['NEVER', 'ALLOWED'] as const;
export type Reschedule = (typeof RESCHEDULES)[number];

export interface ReleaseResource {
  readonly name: string;
  readonly serviceType: string;
  readonly spec: Readonly<Record<string, unknown>>;
  /** Names of resources of the same release that must be ready before it starts. */
  readonly requires: readonly string[];
  /** FROZEN outlives releases and undeploy; LIVE comes and goes with them. */
  readonly lifecycle: ResourceLifecycle;
  readonly reschedule: Reschedule;
}

export interface ReleaseSource {
  readonly sha: string | null;
  readonly branch: string | null;
  readonly repository: string | null;
  readonly dirty: boolean | null;
  readonly message: string | null;
  readonly author: string | null;
}

export interface ResourceProblem {
  /** Below `resources`. */
  readonly path: readonly (string | number)[];
  readonly message: string;
}

type Node = Pick<ReleaseResource, 'name' | 'requires'>;

/** Duplicate names, requirements that are unknown, doubled or of oneself, and cycles. */
export function resourceProblems(resources: readonly Node[]): ResourceProblem[] {
  const problems: ResourceProblem[] = [];
  const first = new Map<string, number>();
  resources.forEach((resource, index) => {
    const before = first.get(resource.name);
    if (before === undefined) first.set(resource.name, index);
    else {
      problems.push({
        path: [index, 'name'],
        message: `\`${resource.name}\` is the name of resource ${before} too`,
      });
    }
  });
  resources.forEach((resource, index) => {
    resource.requires.forEach((required, at) => {
      const path = [index, 'requires', at];
      if (!first.has(required)) {
        problems.push({ path, message: `names \`${required}\`, which is no resource here` });
      } else if (required === resource.name) {
        problems.push({ path, message: 'must not name the resource itself' });
      } else if (resource.requires.indexOf(required) < at) {
        problems.push({ path, message: `names \`${required}\` twice` });
      }
    });
  });
  return problems.length > 0 ? problems : cycleProblems(resources);
}

/** Takes away, again and again, what needs nothing any more: what is left over waits for itself. */
function cycleProblems(resources: readonly Node[]): ResourceProblem[] {
  const waiting = new Map(resources.map((resource) => [resource.name, resource.requires]));
  for (let ready = ['']; ready.length > 0;) {
    ready = [...waiting]
      .filter(([, requires]) => requires.every((name) => !waiting.has(name)))
      .map(([name]) => name);
    for (const name of ready) waiting.delete(name);
  }
  if (waiting.size === 0) return [];
  const names = [...waiting.keys()].map((name) => `\`${name}\``).join(', ');
  return [{ path: [], message: `must not require each other in a circle: ${names}` }];
}
