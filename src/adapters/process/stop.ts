import { mkdir } from 'node:fs/promises';

import { absent } from './absent.js';
import type { Fence } from './fence.js';
import type { Found } from './find.js';
import type { Host } from './host.js';
import { launchForget, launchStopping } from './launches.js';
import type { HostProcess } from './process-table.js';

const STOP_SECONDS_DEFAULT = 10;

/**
 * Takes a start down, with everything that it started: SIGTERM at the first call, SIGKILL from `stopSeconds` later. True once
 * nothing of it lives; its record is gone then. It is as it was just found.
 */
export async function stopLaunch(
  host: Host,
  { launch, state, members }: Found,
  fence: Fence,
): Promise<boolean> {
  if (members.length === 0) {
    fence.check();
    await launchForget(launch);
    return true;
  }
  // Its shell would not pass a signal on: a moment later there is a program to tell, or nothing.
  if (state.kind === 'beginning') return false;
  const now = host.clock.now();
  if (launch.stoppingSince === null) {
    // Told again if we die before it is written down.
    send(host, members, 'SIGTERM', fence);
    // Of what has no record there is no folder either.
    if (launch.record === null) await mkdir(launch.folder, { recursive: true, mode: 0o700 });
    fence.check();
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
