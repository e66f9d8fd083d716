/**
 * Whole servers for tests: in this process, with everything wired as `main` wires it, or as processes of their own, to be
 * killed, stopped and started again. Both listen on a free port of loopback and read one database.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

import { loadConfig } from '../../src/config/config.js';
import { silentLog, type Log } from '../../src/kernel/log.js';
import { startSlipway, type Slipway } from '../../src/main.js';

type Environment = Readonly<Record<string, string>>;

export interface ServerOptions {
  /** `TestDatabase.url`. Without it: the embedded database of SLIPWAY_DATA_DIR, which then must be in `env`. */
  readonly databaseUrl?: string;
  /** More settings, by their names. */
  readonly env?: Environment;
  /** In this process only. */
  readonly log?: Log;
  /** The user that a process runs as, where the caller is root. */
  readonly as?: { readonly uid: number; readonly gid: number } | undefined;
  /** A process with a group of its own, as a shell makes one for what is typed in a terminal. */
  readonly ownGroup?: boolean;
}

/** Short waits, so that no test waits for a default made for people. */
const FAST: Environment = {
  SLIPWAY_PORT: '0',
  SLIPWAY_DRAIN_NOTICE_SECONDS: '0',
  SLIPWAY_DRAIN_SPREAD_SECONDS: '0.2',
};

function environment({ databaseUrl, env }: ServerOptions): Environment {
  return { ...FAST, ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }), ...env };
}

/** In this process. Stop it with `close()` or `drain()`. */
export function startTestServer(options: ServerOptions): Promise<Slipway> {
  return startSlipway(loadConfig(environment(options)), { log: options.log ?? silentLog });
}

export interface ServerProcess {
  /** For example `http://127.0.0.1:41234`; it stays the same when the server is started again on its port. */
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** What it printed so far. */
  readonly output: { readonly stdout: string; readonly stderr: string };
  /** Resolves when the process is gone. */
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  kill(signal?: NodeJS.Signals): void;
  /** SIGTERM, and waits. */
  stop(): Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const READY = /GraphQL +(http:\/\/\S+?):(\d+)\/graphql/;

/** A process that may not come up: `output` and `exited` tell what it did. */
export function spawnServer(
  options: ServerOptions,
): { readonly child: ChildProcess } & Pick<ServerProcess, 'output' | 'exited'> {
  const child = spawn(process.execPath, ['.config/start.mjs'], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'] ?? '', ...environment(options) },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: options.ownGroup ?? false,
    ...options.as,
  });
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()));
  const exited = once(child, 'close').then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
  }));
  return { child, output, exited };
}

/** A process of its own, from the built `dist/`. Resolves when it answers; rejects with what it printed if it never does. */
export async function startServerProcess(options: ServerOptions): Promise<ServerProcess> {
  const { child, output, exited } = spawnServer(options);
  const ready = new Promise<RegExpExecArray>((resolve) => {
    child.stdout?.on('data', () => {
      const found = READY.exec(output.stdout);
      if (found) resolve(found);
    });
  });
  const started = await Promise.race([ready, exited]);
  if (!Array.isArray(started)) {
    throw new Error(`the server did not start: ${output.stderr}${output.stdout}`);
  }
  const kill = (signal: NodeJS.Signals = 'SIGKILL') => void child.kill(signal);
  return {
    url: `${started[1]}:${started[2]}`,
    port: Number(started[2]),
    pid: child.pid ?? -1,
    output,
    exited,
    kill,
    stop() {
      kill('SIGTERM');
      return exited;
    },
  };
}
