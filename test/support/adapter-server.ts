/**
 * A server that owns an adapter, as a process that can be killed and frozen at a chosen point. What it does is one command,
 * in its first argument; it prints `{"event":"done","answer":…}`. With `at`, it kills or stops itself right after the `at`-th
 * time that it changed something on the host; between two such points nothing that others could see happens.
 */
import childProcess from 'node:child_process';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';

import type { AdapterAnswer, AdapterTarget } from '../../src/adapters/contract.js';
import { processAdapter } from '../../src/adapters/process/adapter.js';
import { systemClock } from '../../src/kernel/clock.js';
import { silentLog } from '../../src/kernel/log.js';

export interface AdapterCommand {
  readonly dataDir: string;
  readonly hostName: string;
  readonly call: 'apply' | 'remove';
  /** The fence as text: JSON has no such integers. */
  readonly target: Omit<AdapterTarget, 'fence'> & { readonly fence: string };
  readonly at?: { readonly change: number; readonly do: 'SIGKILL' | 'SIGSTOP' };
}

const CHANGES_ASYNC = ['mkdir', 'writeFile', 'rename', 'rm', 'rmdir', 'unlink', 'chmod'] as const;
const CHANGES_SYNC = ['openSync', 'writeFileSync', 'renameSync', 'ftruncateSync'] as const;

type AnyFunction = (...args: unknown[]) => unknown;

function failpoint({ change, do: signal }: NonNullable<AdapterCommand['at']>): void {
  let changes = 0;
  const changed = (): void => {
    changes += 1;
    if (changes !== change) return;
    fs.writeSync(1, `${JSON.stringify({ event: 'hit' })}\n`);
    kill(process.pid, signal);
  };
  const kill = process.kill.bind(process);
  const after = (owner: Record<string, AnyFunction>, name: string, wait: boolean): void => {
    const real = owner[name]?.bind(owner);
    if (!real) throw new Error(`no ${name} to watch`);
    owner[name] = (...args) => {
      const result = real(...args);
      if (!wait) {
        changed();
        return result;
      }
      return (result as Promise<unknown>).then((value) => {
        changed();
        return value;
      });
    };
  };
  const promises = fs.promises as unknown as Record<string, AnyFunction>;
  for (const name of CHANGES_ASYNC) after(promises, name, true);
  for (const name of CHANGES_SYNC) after(fs as unknown as Record<string, AnyFunction>, name, false);
  after(childProcess as unknown as Record<string, AnyFunction>, 'spawn', false);
  after(process as unknown as Record<string, AnyFunction>, 'kill', false);
  syncBuiltinESMExports();
}

async function settle(call: () => Promise<AdapterAnswer>): Promise<AdapterAnswer> {
  for (;;) {
    const answer = await call();
    if (answer.outcome.kind !== 'inProgress') return answer;
    await delay(20);
  }
}

async function main(): Promise<void> {
  const { dataDir, hostName, call, target: given, at } = JSON.parse(process.argv[2] ?? '') as AdapterCommand; // the test's
  const target: AdapterTarget = { ...given, fence: BigInt(given.fence) };
  const adapter = processAdapter({
    dataDir,
    hostName,
    clock: systemClock,
    log: silentLog,
    environment: process.env,
  });
  const { signal } = new AbortController();
  if (at) failpoint(at);
  const scopes = call === 'apply' ? (['FROZEN', 'LIVE'] as const) : (['LIVE', 'FROZEN'] as const);
  let answer: AdapterAnswer | undefined;
  for (const scope of scopes) {
    answer = await settle(() => adapter[call](target, scope, signal));
    if (answer.outcome.kind !== 'done') break;
  }
  fs.writeSync(1, `${JSON.stringify({ event: 'done', answer })}\n`);
}

void main();
