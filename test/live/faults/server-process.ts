/** Real server processes behind proxies: killed, stopped, woken, interrupted and started again on their port. */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import type { Failpoint } from '../../../src/kernel/failpoints.js';
import type { Connection } from '../../../src/store/embedded.js';
import { startFaultProxy, type FaultProxy } from '../../support/fault-proxy.js';
import { waitFor } from '../../support/wait-for.js';
import type { Door } from './stream-client.js';

export interface Order {
  readonly action: 'KILL' | 'STALL' | 'THROW';
  /** How often the point is passed before. */
  readonly skip?: number;
  /** How often it holds. */
  readonly times?: number;
  /** Of a stall. */
  readonly ms?: number;
}

export interface Server extends Door {
  /** Between its clients and itself. */
  readonly api: FaultProxy;
  /** Between itself and PostgreSQL. */
  readonly sql: FaultProxy;
  /** Past the proxy: for those who break no connection. */
  readonly direct: Door;
  readonly pid: number;
  readonly running: boolean;
  /** How the process before this one ended. */
  readonly lastExit: string;
  /** The end of what it logged, over all its lives. */
  readonly said: string;
  /** How often each failpoint was hit, over all its lives. */
  readonly hits: ReadonlyMap<Failpoint, number>;
  /** What must not happen: ends that nobody asked for, uncaught errors. */
  readonly problems: readonly string[];
  arm(point: Failpoint, order: Order): Promise<void>;
  disarm(): Promise<void>;
  jump(ms: number): Promise<void>;
  /** Resolves when the process is gone; for SIGSTOP and SIGCONT at once. */
  signal(signal: NodeJS.Signals): Promise<void>;
  /** Resolves when it answers. Does nothing for one that runs. */
  start(): Promise<void>;
  ready(): Promise<boolean>;
  /** One number of /metrics; 0 where it has none. */
  metric(name: string): Promise<number>;
  close(): Promise<void>;
}

export interface ServerSpec {
  readonly name: string;
  readonly postgres: Connection;
  readonly database: string;
  readonly env?: Readonly<Record<string, string>>;
}

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const ENTRY = fileURLToPath(new URL('server-entry.mjs', import.meta.url));
const START_MS = 60_000;
const SAID_MAX = 200_000;
const FAST: Readonly<Record<string, string>> = {
  SLIPWAY_DRAIN_NOTICE_SECONDS: '0.2',
  SLIPWAY_DRAIN_SPREAD_SECONDS: '0.5',
  SLIPWAY_SOCKET_PING_SECONDS: '0.7',
  SLIPWAY_SOCKET_PONG_TIMEOUT_SECONDS: '5',
  SLIPWAY_MAX_SOCKETS_LOOPBACK: '10000',
  SLIPWAY_SOCKET_INIT_TIMEOUT_SECONDS: '20',
  SLIPWAY_LOG_LEVEL: 'warn',
};

let built: Promise<unknown> | undefined;
/** Servers run from `dist/`; nothing is done where it is current. */
function build(): Promise<unknown> {
  built ??= promisify(execFile)(process.execPath, ['.config/build.mjs', '--no-declarations'], { cwd: ROOT });
  return built;
}

export async function startServer(spec: ServerSpec): Promise<Server> {
  await build();
  const sql = await startFaultProxy({ host: spec.postgres.host, port: spec.postgres.port });
  const api = await startFaultProxy({ host: '127.0.0.1', port: 1 });
  const server = new Process(spec, api, sql);
  await server.start();
  return server;
}

class Process implements Server {
  readonly name: string;
  readonly url: string;
  readonly api: FaultProxy;
  readonly sql: FaultProxy;
  readonly hits = new Map<Failpoint, number>();
  readonly problems: string[] = [];
  readonly #spec: ServerSpec;
  #port = 0;
  #child: ChildProcess | undefined;
  /** Ends that are no problem: somebody asked for them. */
  #asked = false;
  lastExit = '';
  said = '';
  #orders = 0;
  readonly #done = new Map<number, () => void>();

  constructor(spec: ServerSpec, api: FaultProxy, sql: FaultProxy) {
    this.#spec = spec;
    this.name = spec.name;
    this.api = api;
    this.sql = sql;
    this.url = `http://127.0.0.1:${api.port}`;
  }

  get direct(): Door {
    return { name: this.name, url: `http://127.0.0.1:${this.#port}` };
  }
  get pid(): number {
    return this.#child?.pid ?? -1;
  }
  get running(): boolean {
    return this.#child !== undefined;
  }

  async start(): Promise<void> {
    if (this.#child) return;
    const { user, password = '', database } = { ...this.#spec.postgres, database: this.#spec.database };
    const child = spawn(process.execPath, [ENTRY], {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: {
        PATH: process.env['PATH'] ?? '',
        ...FAST,
        DATABASE_URL: `postgresql://${user}:${encodeURIComponent(password)}@127.0.0.1:${this.sql.port}/${database}`,
        SLIPWAY_PORT: String(this.#port),
        SLIPWAY_ALLOWED_HOSTS: `127.0.0.1:${this.api.port}`,
        ...this.#spec.env,
      },
    });
    this.#child = child;
    this.#asked = false;
    let printed = '';
    child.stdout?.on('data', (chunk: Buffer) => (printed += chunk.toString()));
    child.stderr?.on('data', (chunk: Buffer) => this.#hear(chunk.toString()));
    child.on('message', (message) => this.#told(message as { hit?: Failpoint; done?: number })); // of server-entry.mjs
    child.on('error', () => undefined); // a message to a process that is gone; its end is told below
    child.once('exit', (code, signal) => {
      this.#child = undefined;
      this.lastExit = String(signal ?? code);
      for (const done of this.#done.values()) done();
      if (!this.#asked) {
        this.problems.push(`${this.name} ended with ${code ?? signal}: ${this.said.slice(-2_000)}`);
      }
    });
    const port = await waitFor(
      () => {
        if (!this.#child) throw new Error(`${this.name} did not start: ${this.said.slice(-2_000)}`);
        return /GraphQL +http:\/\/\S+?:(\d+)\/graphql/.exec(printed)?.[1];
      },
      `${this.name} starts`,
      START_MS,
    );
    this.#port = Number(port);
    this.api.retarget({ host: '127.0.0.1', port: this.#port });
  }

  arm(point: Failpoint, order: Order): Promise<void> {
    const { action, skip = 0, times = 1, ms = 0 } = order;
    if (action === 'KILL') this.#asked = true;
    return this.#order({ arm: { point, action, skip, times, ms } });
  }
  disarm(): Promise<void> {
    return this.#order({ disarm: true });
  }
  jump(ms: number): Promise<void> {
    return this.#order({ jumpMs: ms });
  }

  async signal(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (!child) return;
    if (signal === 'SIGSTOP' || signal === 'SIGCONT') {
      child.kill(signal);
      return;
    }
    this.#asked = true;
    const gone = once(child, 'exit');
    child.kill(signal);
    await gone;
  }

  async ready(): Promise<boolean> {
    try {
      const response = await fetch(`http://127.0.0.1:${this.#port}/readyz`, {
        signal: AbortSignal.timeout(2_000),
      });
      return response.status === 200;
    } catch {
      return false;
    }
  }

  async metric(name: string): Promise<number> {
    const response = await fetch(`http://127.0.0.1:${this.#port}/metrics`, {
      signal: AbortSignal.timeout(10_000),
    });
    const line = (await response.text()).split('\n').find((one) => one.startsWith(`${name} `));
    return Number(line?.split(' ')[1] ?? 0);
  }

  async close(): Promise<void> {
    await this.signal('SIGCONT');
    await this.signal('SIGKILL');
    await Promise.all([this.api.close(), this.sql.close()]);
  }

  #hear(text: string): void {
    this.said = (this.said + text).slice(-SAID_MAX);
    if (text.includes('A bug ends this process')) this.problems.push(`${this.name}: ${text}`);
  }

  #told({ hit, done }: { readonly hit?: Failpoint; readonly done?: number }): void {
    if (hit !== undefined) this.hits.set(hit, (this.hits.get(hit) ?? 0) + 1);
    if (done !== undefined) this.#done.get(done)?.();
  }

  /** Resolves when the process has it, or is gone. */
  async #order(order: object): Promise<void> {
    const child = this.#child;
    if (!child?.connected) return;
    const id = (this.#orders += 1);
    await new Promise<void>((resolve) => {
      this.#done.set(id, resolve);
      child.send({ ...order, id });
    });
    this.#done.delete(id);
  }
}
