import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';

import { absent } from './absent.js';
import { MARK } from './words.js';

/** One live process that belongs to a start of ours. */
export interface HostProcess {
  readonly pid: number;
  readonly group: number;
  readonly session: number;
  readonly mark: Mark;
}

export interface Mark {
  readonly folder: string;
  readonly deploymentId: string;
  readonly resource: string;
  readonly launch: string;
  readonly fence: bigint;
}

/**
 * The programs of this host, as the system tells of them. A start's id is in the environment of everything that it started,
 * and in no other process ever: it says more than a pid, which is reused, and its start time.
 */
export interface ProcessTable {
  /** All that are marked, ended ones that nobody reaped left out. Looks anew at each call. */
  list(): Promise<readonly HostProcess[]>;
  /** That process, if it lives and is marked. Synchronous: for the moment before a signal. */
  look(pid: number): HostProcess | undefined;
}

/** A process takes some 50 µs to look at: so many of them delay nobody else. */
const IN_ONE_TURN = 32;

interface Stat {
  readonly group: number;
  readonly session: number;
}

/** Linux. A process that overwrote its environment, or began with another, is still told by the session it is in. */
export const procfs: ProcessTable = {
  async list() {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
    const found: HostProcess[] = [];
    const unmarked: { pid: number; stat: Stat }[] = [];
    for (const [index, pid] of pids.entries()) {
      // Read at once: for files that are never on a disk, waiting for a thread costs four times as much.
      if (index % IN_ONE_TURN === IN_ONE_TURN - 1) await nextTurn();
      const stat = statOf(pid);
      const mark = stat && markOf(pid);
      if (stat && mark) found.push({ pid, ...stat, mark });
      else if (stat) unmarked.push({ pid, stat });
    }
    const bySession = new Map(
      found.filter(({ pid, session }) => pid === session).map(({ pid, mark }) => [pid, mark]),
    );
    for (const { pid, stat } of unmarked) {
      const mark = bySession.get(stat.session);
      if (mark !== undefined) found.push({ pid, ...stat, mark });
    }
    return found.sort((a, b) => a.pid - b.pid);
  },

  look(pid) {
    const stat = statOf(pid);
    if (stat === undefined) return undefined;
    const mark = markOf(pid) ?? (stat.session === pid ? undefined : markOf(stat.session));
    return mark && { pid, ...stat, mark };
  },
};

function statOf(pid: number): Stat | undefined {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch (error) {
    return unreadable(error);
  }
}

function markOf(pid: number): Mark | undefined {
  try {
    return parseMark(readFileSync(`/proc/${pid}/environ`, 'utf8'));
  } catch (error) {
    return unreadable(error);
  }
}

/** It ended meanwhile, or is another user's. */
function unreadable(error: unknown): undefined {
  const { code } = error as NodeJS.ErrnoException; // `fs` throws system errors only
  return code === 'EACCES' || code === 'EPERM' ? undefined : absent(error);
}

function parseStat(text: string | undefined): Stat | undefined {
  if (text === undefined) return undefined;
  // The command's name in parentheses may hold blanks and parentheses itself; the fixed fields follow the last one.
  const [state, , group, session] = text.slice(text.lastIndexOf(')') + 2).split(' ');
  if (state === 'Z' || state === 'X') return undefined;
  return { group: Number(group), session: Number(session) };
}

function parseMark(environment: string | undefined): Mark | undefined {
  if (!environment?.includes(`${MARK.launch}=`)) return undefined;
  const value = (name: string): string | undefined => {
    const entry = environment.split('\0').find((one) => one.startsWith(`${name}=`));
    return entry?.slice(name.length + 1);
  };
  const [folder, deploymentId, resource, launch, fence] = [
    value(MARK.folder),
    value(MARK.deployment),
    value(MARK.resource),
    value(MARK.launch),
    value(MARK.fence),
  ];
  if (!folder || !deploymentId || !resource || !launch || !/^\d{1,19}$/.test(fence ?? '')) return undefined;
  return { folder, deploymentId, resource, launch, fence: BigInt(fence ?? 0) };
}
