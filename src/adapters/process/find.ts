import type { Host } from './host.js';
import {
  launchesOf,
  launchState,
  launchUnrecorded,
  newestFirst,
  type Launch,
  type LaunchState,
} from './launches.js';
import type { HostProcess } from './process-table.js';

/** One start, and what lives of it. */
export interface Found {
  readonly launch: Launch;
  readonly state: LaunchState;
  readonly members: readonly HostProcess[];
}

/**
 * Every start of the deployment: those with a record and those with a live process, whoever made them. Looks at the whole
 * system, after the fence was raised: what a slower server starts from then on ends by itself.
 */
export async function findLaunches(host: Host, deploymentId: string): Promise<Found[]> {
  const recorded = await launchesOf(host.layout, deploymentId);
  const processes = (await host.table.list()).filter(({ mark }) => mark.deploymentId === deploymentId);
  const known = new Set(recorded.map(({ launch }) => launch));
  const unrecorded = new Map(
    processes
      .filter(({ mark }) => !known.has(mark.launch))
      .map(({ mark: { resource, launch } }) => [
        launch,
        launchUnrecorded(host.layout, { deploymentId, resource, launch }),
      ]),
  );
  const found: Found[] = [];
  for (const launch of [...recorded, ...unrecorded.values()].sort(newestFirst)) {
    const members = processes.filter(({ mark }) => mark.launch === launch.launch);
    found.push({
      launch,
      state: await launchState(host, launch, () => Promise.resolve(processes)),
      members,
    });
  }
  return found;
}

/**
 * The same, from records alone: the system is listed only if a record does not tell by itself whether its program runs.
 * For looking, not for starting: it does not see what has no record.
 */
export async function lookUpLaunches(host: Host, deploymentId: string): Promise<Found[]> {
  let listed: Promise<readonly HostProcess[]> | undefined;
  const list = (): Promise<readonly HostProcess[]> => (listed ??= host.table.list());
  const found: Found[] = [];
  for (const launch of (await launchesOf(host.layout, deploymentId)).sort(newestFirst)) {
    found.push({ launch, state: await launchState(host, launch, list), members: [] });
  }
  return found;
}

/** What counts as the resource's program: the newest start that happened and was not told to stop. */
export function currentOf(found: readonly Found[], resource: string): Found | undefined {
  return found.find(
    ({ launch, state }) =>
      launch.resource === resource && launch.stoppingSince === null && state.kind !== 'neverBegan',
  );
}
