/**
 * Which process a pid meant. A pid alone is reused by the system, so an identity also carries the start time of the
 * process and the boot it belongs to; a zombie counts as dead, because in a container nobody may reap it.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';

/** `<pid>-<stamp>`, usable in a file name. */
export type ProcessIdentity = string & { readonly __brand: 'ProcessIdentity' };

const short = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 12);

let bootId: string | undefined;

function linuxStamp(pid: number): string | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // The command name in parentheses may itself hold spaces and parentheses; the fixed fields follow the last one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, startTicks] = [fields[0], fields[19]];
  if (state === 'Z' || state === 'X') return undefined;
  bootId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  return short(`${bootId} ${startTicks}`);
}

function signalable(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'; // `kill` throws nothing but system errors.
  }
}

function stampOf(pid: number): string | undefined {
  if (process.platform === 'linux') return linuxStamp(pid);
  if (!signalable(pid)) return undefined;
  if (process.platform === 'win32') return short('');
  try {
    return short(
      execFileSync('ps', ['-p', String(pid), '-o', 'lstart='], { encoding: 'utf8', env: { LC_ALL: 'C' } }),
    );
  } catch {
    return undefined;
  }
}

/** Undefined when no such process lives. */
export function identify(pid: number): ProcessIdentity | undefined {
  const stamp = stampOf(pid);
  // The brand is given here and by `parseIdentity` only.
  return stamp === undefined ? undefined : (`${pid}-${stamp}` as ProcessIdentity);
}

export function parseIdentity(text: string): ProcessIdentity | undefined {
  return /^\d+-[0-9a-f]{12}$/.test(text) ? (text as ProcessIdentity) : undefined; // Checked on the left.
}

export const pidOf = (identity: ProcessIdentity): number => Number.parseInt(identity, 10);

export const alive = (identity: ProcessIdentity): boolean => identify(pidOf(identity)) === identity;

/** Whether `pid` works in `folder`. Undefined where the system does not tell (not Linux, or another user's process). */
export function worksIn(pid: number, folder: string): boolean | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    const [a, b] = [statSync(`/proc/${pid}/cwd`), statSync(folder)];
    return a.dev === b.dev && a.ino === b.ino;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? false : undefined; // `stat` throws system errors only.
  }
}
