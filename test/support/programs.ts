import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';

import { inject } from 'vitest';

import type { Adapter } from '../../src/adapters/contract.js';
import { processAdapter, type ProcessAdapterOptions } from '../../src/adapters/process/adapter.js';
import { procfs, type HostProcess } from '../../src/adapters/process/process-table.js';
import { systemClock } from '../../src/kernel/clock.js';
import { silentLog } from '../../src/kernel/log.js';
import { waitFor } from './wait-for.js';

/** A data folder of its own, and whatever runs in its name. */
export interface ProgramHost {
  readonly dataDir: string;
  readonly hostName: string;
  /** Another server on the same folder. */
  adapter(options?: Partial<ProcessAdapterOptions>): Adapter;
  /** Everything that lives and is marked as started from this folder. */
  processes(): Promise<readonly HostProcess[]>;
  /** Names below `process/` in the data folder, such as `runs` or `directories`. */
  names(folder: string): string[];
  /** Kills what still lives, and tells how many that were: a test file leaves none. */
  end(): Promise<number>;
}

export function programHost(): ProgramHost {
  const dataDir = mkdtempSync(join(inject('postgres').runFolder, 'programs-'));
  mkdirSync(dataDir, { recursive: true });
  const hostName = hostname();
  const processes = async (): Promise<readonly HostProcess[]> =>
    (await procfs.list()).filter(({ mark }) => mark.folder.startsWith(dataDir));
  return {
    dataDir,
    hostName,
    processes,
    adapter: (options = {}) =>
      processAdapter({
        dataDir,
        hostName,
        clock: systemClock,
        log: silentLog,
        environment: { PATH: process.env['PATH'], HOME: dataDir },
        ...options,
      }),
    names(folder) {
      try {
        return readdirSync(join(dataDir, 'process', folder));
      } catch {
        return [];
      }
    },
    async end() {
      const left = await processes();
      for (const { pid } of left) {
        try {
          process.kill(pid, 'SIGKILL');
        } catch {
          // It ended by itself.
        }
      }
      await waitFor(async () => (await processes()).length === 0, 'the end of what was left');
      rmSync(dataDir, { recursive: true, force: true });
      return left.length;
    },
  };
}

/** A port that nothing listens on now. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listenSomewhere(server);
  server.close();
  await once(server, 'close');
  return port;
}

/** Has the server listen on a free port of the loopback address; gives the port. */
export async function listenSomewhere(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port; // of a TCP server that listens
}

/** As specs write it; a template string in quotes would look like a slip. */
export function binding(resource: string, output: string): string {
  return `\${${resource}.${output}}`;
}

/**
 * A program that answers on its port: `/health` with the status that its file says (200 when there is none), `/env` with
 * its environment, `/exit/<code>` by ending. Prints `listening` first.
 */
export function webProgram(port: number, { statusFile = '/nonexistent', text = '' } = {}): string[] {
  const source = `
    const fs = require('node:fs');
    const server = require('node:http').createServer((request, response) => {
      const exit = /^\\/exit\\/(\\d+)$/.exec(request.url);
      if (exit) { console.log('told to exit'); process.exit(Number(exit[1])); }
      let status = 200;
      try { status = Number(fs.readFileSync(process.argv[2], 'utf8')); } catch {}
      response.writeHead(request.url === '/health' ? status : 200);
      response.end(request.url === '/env' ? JSON.stringify(process.env) : process.argv[3]);
    });
    server.listen(Number(process.argv[1]), '127.0.0.1', () => console.log('listening'));
    process.on('SIGTERM', () => { console.log('told to stop'); process.exit(0); });
  `;
  return [process.execPath, '-e', source, String(port), statusFile, text];
}

export function webHealth(port: number) {
  return { http: { port, path: '/health' }, intervalSeconds: 0.1, timeoutSeconds: 2, startSeconds: 20 };
}
