import { absent } from './absent.js';
import type { Fence } from './fence.js';
import type { Host } from './host.js';
import { launchForget, launchStopping, type Launch } from './launches.js';
import type { HostProcess } from './process-table.js';

const STOP_SECONDS_DEFAULT = 10;

/**
 * Takes a start down, with everything that it started: SIGTERM at the first call, SIGKILL from `stopSeconds` later. True once
 * nothing of it lives; its record is gone then. `members` are its processes as just listed.
 */
export async function stopLaunch(
  host: Host,
  launch: Launch,
  members: readonly HostProcess[],
  fence: Fence,
): Promise<boolean> {
  if (members.length === 0) {
    fence.check();
    await launchForget(launch);
    return true;
  }
  const now = host.clock.now();
  if (launch.stoppingSince === null) {
    // Told again if we die before it is written down.
    send(host, members, 'SIGTERM', fence);
    await launchStopping(launch, now);
    return false;
  }
  const { stopSeconds } = launch.record ?? { stopSeconds: STOP_SECONDS_DEFAULT };
  if (now.getTime() - launch.stoppingSince.getTime() >= stopSeconds * 1000) {
    send(host, members, 'SIGKILL', fence);
  }
  return false;
}

/** To the whole group at once, which may be forking; then to whoever left it. */
function send(host: Host, members: readonly HostProcess[], signal: NodeJS.Signals, fence: Fence): void {
  // Looked at again in this turn: a pid that was listed may by now be somebody else's.
  const same = members.filter(({ pid, mark }) => host.table.look(pid)?.mark.launch === mark.launch);
  const groups = new Set(same.filter(({ group, session }) => group === session).map(({ group }) => group));
  fence.check();
  for (const group of groups) kill(-group, signal);
  for (const { pid, group } of same) if (!groups.has(group)) kill(pid, signal);
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    absent(error);
  }
}
