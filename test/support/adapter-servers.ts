import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { build } from 'esbuild';

import type { AdapterAnswer, AdapterTarget } from '../../src/adapters/contract.js';
import type { AdapterCommand } from './adapter-server.js';
import type { ProgramHost } from './programs.js';

export interface AdapterServer {
  readonly pid: number;
  /** Whether it came to the change that it was to stop or die after. */
  readonly hit: Promise<boolean>;
  /** Its last answer; undefined when it died before. */
  readonly answer: Promise<AdapterAnswer | undefined>;
  wake(): void;
}

export type StartAdapterServer = (
  call: AdapterCommand['call'],
  target: AdapterTarget,
  at?: AdapterCommand['at'],
) => AdapterServer;

/** Starts servers on that folder, each a process of its own. Bundled once: they are started by the hundred. */
export async function adapterServers(host: ProgramHost): Promise<StartAdapterServer> {
  const bundle = join(host.dataDir, 'server.mjs');
  await build({
    entryPoints: [fileURLToPath(new URL('./adapter-server.ts', import.meta.url))],
    outfile: bundle,
    bundle: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'error',
  });
  return (call, target, at) => {
    const command: AdapterCommand = {
      dataDir: host.dataDir,
      hostName: host.hostName,
      call,
      target: { ...target, fence: String(target.fence) },
      ...(at ? { at } : {}),
    };
    const child = spawn(process.execPath, [bundle, JSON.stringify(command)], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { PATH: process.env['PATH'] },
    });
    const events: { event: string; answer?: AdapterAnswer }[] = [];
    let heard = (): void => undefined;
    const hit = new Promise<boolean>((resolve) => {
      heard = () => {
        if (events.some(({ event }) => event === 'hit')) resolve(true);
        else if (events.some(({ event }) => event === 'done')) resolve(false);
      };
      child.once('close', () => resolve(false));
    });
    createInterface(child.stdout).on('line', (line) => {
      events.push(JSON.parse(line) as { event: string; answer?: AdapterAnswer }); // as the script prints it
      heard();
    });
    const answer = new Promise<AdapterAnswer | undefined>((resolve) => {
      child.once('close', () => resolve(events.find(({ event }) => event === 'done')?.answer));
    });
    return { pid: child.pid ?? 0, hit, answer, wake: () => child.kill('SIGCONT') };
  };
}
