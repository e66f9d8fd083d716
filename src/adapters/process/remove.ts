import { answer, blocked, DONE, inProgress, instanceReport, NOTHING_RUNS } from '../answers.js';
import type { AdapterAnswer, AdapterTarget, InstanceReport } from '../contract.js';
import { live } from './assess.js';
import { directoriesThere } from './directory.js';
import { raiseFence, type Fence } from './fence.js';
import { findLaunches, type Found } from './find.js';
import type { Host } from './host.js';
import { namesIn } from './launches.js';
import { below } from './layout.js';
import { identityOf, NO_IDENTITY } from './reports.js';
import { stopLaunch } from './stop.js';
import { discard } from './trash.js';

const STOPPING_DELAY_SECONDS = 0.1;

/** Stops what starts last first, then deletes records and logs. Needs neither release nor configuration. */
export async function removeLive(
  host: Host,
  target: AdapterTarget,
  signal: AbortSignal,
): Promise<AdapterAnswer> {
  const id = identityOf(target);
  const fence = await raiseFence(host.layout, id, target.fence);
  const names = await namesIn(below(host.layout.runs, id));
  const found = await findLaunches(host, id);
  signal.throwIfAborted();
  const left = await stopHighest(host, found, fence);
  const all = [...new Set([...names, ...found.map(({ launch }) => launch.resource)])];
  if (left.size > 0) {
    const instances = all.map((name) => live(name, { status: left.has(name) ? 'DELETING' : 'DELETED' }));
    return answer(inProgress(STOPPING_DELAY_SECONDS), { instances });
  }
  signal.throwIfAborted();
  await discard(host.layout, below(host.layout.runs, id), fence);
  return answer(DONE, {
    runtime: NOTHING_RUNS,
    // The directories, if there are any, are found by it.
    internal: (await directoriesThere(host.layout, id)) ? {} : NO_IDENTITY,
    instances: all.map((name) => live(name, { status: 'DELETED' })),
  });
}

/** The names of those that still live. A lower level is not told to stop before the one above it has ended. */
async function stopHighest(host: Host, found: readonly Found[], fence: Fence): Promise<ReadonlySet<string>> {
  const alive = found.filter(({ members }) => members.length > 0);
  const levelOf = ({ launch }: Found): number => launch.record?.level ?? 0;
  const highest = Math.max(...alive.map(levelOf));
  for (const one of alive) {
    if (levelOf(one) === highest) await stopLaunch(host, one, fence);
  }
  return new Set(alive.map(({ launch }) => launch.resource));
}

/** Deletes the directories of every release that the deployment ever had. */
export async function removeFrozen(
  host: Host,
  target: AdapterTarget,
  signal: AbortSignal,
): Promise<AdapterAnswer> {
  const id = identityOf(target);
  const fence = await raiseFence(host.layout, id, target.fence);
  const found = await findLaunches(host, id);
  const running = found.find(({ members }) => members.length > 0);
  if (running) {
    const message = `\`${running.launch.resource}\` still runs and may use them; LIVE resources go first`;
    return answer(blocked('StillRunning', message));
  }
  signal.throwIfAborted();
  const names = await namesIn(below(host.layout.directories, id));
  await discard(host.layout, below(host.layout.directories, id), fence);
  const instances = names.map((name): InstanceReport =>
    instanceReport({ name, serviceType: 'directory', lifecycle: 'FROZEN', status: 'DELETED' }),
  );
  return answer(DONE, { runtime: NOTHING_RUNS, internal: NO_IDENTITY, instances });
}
