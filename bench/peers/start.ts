/** Peers: servers of others on the same data, each in a process of its own under plain Node, in production mode. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

import type { Closing } from '../support/closing.js';
import type { Target } from '../support/contenders.js';
import { installPeers } from './install.js';

/** As many sessions as the server has by default. */
export const POOL_SIZE = 10;
const START_MS = 60_000;
/** Of what it wrote to stderr, for when it fails. */
const SAID_MAX = 10_000;

export interface Peer {
  /** Below this folder: `yoga.mjs`. */
  readonly file: string;
  /** What that file reads. */
  readonly setting: Readonly<Record<string, unknown>>;
  /** Whether its memory is to be measured: see support/collector.mjs. */
  readonly collects?: boolean;
}

export async function startPeer(
  { file, setting, collects = false }: Peer,
  closing: Closing,
): Promise<Target & { stop(): Promise<void> }> {
  await installPeers();
  const module = fileURLToPath(new URL(file, import.meta.url));
  const collector = new URL('../support/collector.mjs', import.meta.url).href;
  const child = fork(module, [JSON.stringify({ poolSize: POOL_SIZE, ...setting })], {
    // Not those of this process, which runs TypeScript.
    execArgv: collects ? ['--import', collector] : [],
    env: { ...process.env, NODE_ENV: 'production', GRAPHILE_ENV: 'production' },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => (said = `${said}${chunk.toString()}`.slice(-SAID_MAX)));
  const exited = once(child, 'exit');
  const stop = async () => {
    if (child.connected) child.disconnect();
    await exited;
  };
  closing.add(stop);
  const gone = exited.then(([code]) => {
    throw new Error(`the peer ${file} ended with ${String(code)}: ${said}`);
  });
  gone.catch(() => undefined);
  const ready = once(child, 'message', { signal: AbortSignal.timeout(START_MS) });
  const [{ url }] = (await Promise.race([ready, gone])) as [{ url: string }]; // sent by `serving`
  return { url, pid: child.pid ?? -1, stop };
}
