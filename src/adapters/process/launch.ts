import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, openSync } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

import { absent, systemCode } from './absent.js';
import { Superseded, type Fence } from './fence.js';
import type { Host } from './host.js';
import { launchFolder, OUT, resourceFolder, type LaunchName } from './layout.js';
import { launchUndo, launchWrite, type LaunchRecord } from './launches.js';
import { MARK } from './words.js';

/**
 * What stands between us and the program: it lives on when the server dies, and writes down how the program ended. Its own
 * traps keep it alive through the SIGTERM that its group gets; the subshell has none of them, so that the program begins
 * with every signal as it should be. `exec` runs no builtin of the shell. If a later lease acted, it leaves at once; whoever sees it
 * before its pid is written cannot know which, and waits.
 */
const SCRIPT = [
  'd=$1 f=$2',
  'shift 2',
  'exec 3>&2 2>/dev/null',
  'trap : TERM HUP INT QUIT',
  '[ -e "$f" ] || exit 125',
  'printf %s "$$" > "$d/pid" || exit 125',
  '(exec "$@" 2>&3 3>&-)',
  'printf %s "$?" > "$d/exit.new" && command -p mv -f "$d/exit.new" "$d/exit"',
  // One line: `ps` tells a process in one.
].join('; ');

/** Everything else of the server's environment stays with the server. */
const INHERITED = ['PATH', 'HOME', 'LANG', 'TZ'] as const;
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export interface ToLaunch {
  readonly deploymentId: string;
  readonly resource: string;
  readonly argv: readonly string[];
  /** Null: the resource's own folder. */
  readonly cwd: string | null;
  readonly env: Readonly<Record<string, string>>;
  readonly record: Omit<LaunchRecord, 'fence' | 'startedAt'>;
}

export type LaunchResult =
  | { readonly ok: true; readonly name: LaunchName }
  | { readonly ok: false; readonly reason: string; readonly message: string };

/** Starts the program. Throws Superseded, and what may pass (no more processes, no more memory). */
export async function launchProgram(host: Host, wanted: ToLaunch, fence: Fence): Promise<LaunchResult> {
  const { layout } = host;
  const name = {
    deploymentId: wanted.deploymentId,
    resource: wanted.resource,
    launch: randomBytes(8).toString('hex'),
  };
  const work = join(resourceFolder(layout, name.deploymentId, name.resource), 'work');
  const cwd = wanted.cwd ?? work;
  if (wanted.cwd !== null && !(await stat(cwd).catch(absent))?.isDirectory()) {
    return { ok: false, reason: 'NoSuchFolder', message: `\`cwd\`: ${cwd} is no folder on this host` };
  }
  fence.check();
  await mkdir(work, { recursive: true, mode: 0o700 });
  fence.check();
  const startedAt = host.clock.now().toISOString();
  await launchWrite(launchFolder(layout, name), { ...wanted.record, fence: String(fence.number), startedAt });
  try {
    await run(host, wanted, { name, fence, cwd });
    fence.check();
  } catch (error) {
    // The script saw the same file as we did, or will: it does not run the program.
    if (error instanceof Superseded || systemCode(error) !== undefined) await launchUndo(layout, name);
    if (systemCode(error) === 'E2BIG') {
      return {
        ok: false,
        reason: 'TooLong',
        message: 'command and environment are longer than this host takes',
      };
    }
    throw error;
  }
  return { ok: true, name };
}

interface Start {
  readonly name: LaunchName;
  readonly fence: Fence;
  readonly cwd: string;
}

async function run(host: Host, wanted: ToLaunch, { name, fence, cwd }: Start): Promise<void> {
  const folder = launchFolder(host.layout, name);
  const out = openSync(join(resourceFolder(host.layout, name.deploymentId, name.resource), OUT), 'a', 0o600);
  try {
    fence.check();
    const child = spawn('/bin/sh', ['-c', SCRIPT, 'slipway-run', folder, fence.file, ...wanted.argv], {
      cwd,
      env: environment(host, wanted, { name, fence }),
      // A session of its own: neither a terminal's signals nor our end reach it.
      detached: true,
      stdio: ['ignore', out, out],
    });
    child.unref();
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
  } finally {
    closeSync(out);
  }
}

function environment(host: Host, wanted: ToLaunch, { name, fence }: Pick<Start, 'name' | 'fence'>) {
  const inherited = INHERITED.flatMap((key) => {
    const value = host.environment[key];
    return value === undefined ? [] : [[key, value] as const];
  });
  return {
    PATH: DEFAULT_PATH,
    ...Object.fromEntries(inherited),
    ...wanted.env,
    [MARK.folder]: host.layout.base,
    [MARK.deployment]: name.deploymentId,
    [MARK.resource]: name.resource,
    [MARK.launch]: name.launch,
    [MARK.fence]: String(fence.number),
  };
}
