import { execFile, execFileSync } from 'node:child_process';
import { promisify } from 'node:util';

import type { HostProcess, Mark, ProcessTable } from './process-table.js';

/**
 * Where there is no /proc (macOS, BSD): what `ps` tells. A program is known by the arguments of the shell around it, and what
 * belongs to it by its process group; what leaves the group, or outlives a shell that was killed alone, is not seen.
 */
export const psTable: ProcessTable = {
  async list() {
    const { stdout } = await promisify(execFile)('ps', ['-axww', ...COLUMNS], OPTIONS);
    return marked(rowsOf(stdout));
  },

  look(pid) {
    const own = rowsOf(ask(pid));
    const group = own[0]?.group;
    if (group === undefined) return undefined;
    const rows = group === pid ? own : [...own, ...rowsOf(ask(group))];
    return marked(rows).find((one) => one.pid === pid);
  },
};

const COLUMNS = ['-o', 'pid=,pgid=,stat=,args='];
const OPTIONS = {
  encoding: 'utf8',
  maxBuffer: 64 * 1024 * 1024,
  env: { PATH: '/bin:/usr/bin', LC_ALL: 'C' },
} as const;

interface Row {
  readonly pid: number;
  readonly group: number;
  readonly args: string;
}

/** `ps` fails when there is no such process. */
function ask(pid: number): string {
  try {
    return execFileSync('ps', ['-ww', ...COLUMNS, '-p', String(pid)], {
      ...OPTIONS,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  } catch {
    return '';
  }
}

function rowsOf(text: string): Row[] {
  return text.split('\n').flatMap((line) => {
    const [, pid, group, state = '', args = ''] = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? [];
    return pid === undefined || state.startsWith('Z')
      ? []
      : [{ pid: Number(pid), group: Number(group), args }];
  });
}

/** The arguments that `launchProgram` gives the shell: two paths of ours, each with an end of a known form. */
const SHELL =
  / slipway-run (\/.*\/process)\/runs\/([A-Za-z0-9_-]+)\/([a-z0-9-]+)\/launches\/([0-9a-f]{16}) \/.*\/fences\/\2\/(\d{1,19})(?: |$)/;

function marked(rows: readonly Row[]): HostProcess[] {
  const marks = new Map<number, Mark>();
  for (const { pid, group, args } of rows) {
    const mark = pid === group ? markOf(args) : undefined;
    if (mark) marks.set(group, mark);
  }
  return rows.flatMap(({ pid, group }) => {
    const mark = marks.get(group);
    // The group's leader made the session too.
    return mark ? [{ pid, group, session: group, mark }] : [];
  });
}

function markOf(args: string): Mark | undefined {
  const [, folder, deploymentId, resource, launch, fence] = SHELL.exec(args) ?? [];
  if (!folder || !deploymentId || !resource || !launch || fence === undefined) return undefined;
  return { folder, deploymentId, resource, launch, fence: BigInt(fence) };
}
