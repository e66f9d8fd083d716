/** What the system knows of a process. Linux tells it in /proc; elsewhere the answer is null. */
import { readFileSync } from 'node:fs';

/** USER_HZ, which is 100 on every Linux that Node runs on. */
const TICK_MS = 10;

/** User and system time since their start, of all of them. */
export function cpuMsOf(pids: readonly number[]): number | null {
  let sum = 0;
  for (const pid of pids) {
    const stat = read(`/proc/${pid}/stat`);
    if (stat === null) return null;
    // The name in parentheses may hold spaces; utime and stime are the 12th and 13th field after it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    sum += (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  }
  return sum;
}

/** Of a core, that this process takes from the call until the returned function is called. */
export function ownCoreShare(): () => number {
  const cpuBefore = process.cpuUsage();
  const start = performance.now();
  return () => {
    const { user, system } = process.cpuUsage(cpuBefore);
    return (user + system) / 1_000 / (performance.now() - start);
  };
}

export function residentKib(pid: number): number | null {
  const found = /^VmRSS:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/status`) ?? '');
  return found ? Number(found[1]) : null;
}

function read(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}
