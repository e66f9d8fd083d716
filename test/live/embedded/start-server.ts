import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Connection } from '../../../src/store/embedded.js';

type Facts = {
  event: string;
  message?: string;
  pid: number;
  adopted: boolean;
  connection: Connection;
  reason: string;
  answer?: string;
};

export interface ServerProcess {
  readonly pid: number;
  /** The first such event, past or to come. Rejects when the process ends without it. */
  said(event: string, message?: string): Promise<Facts>;
  /** To the process alone, or to its group as a terminal does. */
  kill(signal: NodeJS.Signals, to?: 'process' | 'group'): void;
  readonly ended: Promise<number | null>;
}

const SCRIPT = fileURLToPath(new URL('server-process.ts', import.meta.url));

/** Another process that starts the embedded PostgreSQL in `dataDir` and stops it on SIGINT. */
export function startServer(dataDir: string, as: { uid?: number; gid?: number } = {}): ServerProcess {
  const child = spawn(process.execPath, ['--import', 'tsx', SCRIPT, dataDir], {
    ...as,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { pid } = child;
  if (pid === undefined) throw new Error('no process');
  const facts: Facts[] = [];
  const waiting = new Set<() => void>();
  let errors = '';
  let over = false;
  const wake = (): void => waiting.forEach((look) => look());
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  createInterface({ input: child.stdout }).on('line', (line) => {
    facts.push(JSON.parse(line) as Facts); // Written by server-process.ts.
    wake();
  });
  const ended = new Promise<number | null>((resolve) => {
    child.once('close', (code) => {
      over = true;
      wake();
      resolve(code);
    });
  });
  return {
    pid,
    ended,
    said: (event, message) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = facts.find(
            (fact) => fact.event === event && (message === undefined || fact.message === message),
          );
          if (found === undefined && !over) return;
          waiting.delete(look);
          if (found !== undefined) resolve(found);
          else reject(new Error(`the server never said "${event}", but ${JSON.stringify(facts)} ${errors}`));
        };
        waiting.add(look);
        look();
      }),
    kill(signal, to = 'process') {
      process.kill(to === 'group' ? -pid : pid, signal);
    },
  };
}
