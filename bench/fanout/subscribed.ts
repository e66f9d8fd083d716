/** A contender with all its subscribers open, and what each of them takes of the server's memory. */
import { setTimeout as sleep } from 'node:timers/promises';

import type { Closing } from '../support/closing.js';
import type { Contender } from '../support/contender.js';
import { residentKib } from '../support/processes.js';
import { startWorker, type Worker } from '../support/worker.js';
import type { Changes, SubscribersWorker } from './subscribers-worker.js';

/** Opened and closed again first, so that what a server allocates once is not counted for subscriptions. */
const WARM_UP_SOCKETS = 200;
/** With fewer, what a server allocates for itself meanwhile is more than what they take. */
const MEASURABLE = 1_000;
/** For what is freed or allocated late to show in the resident size. */
const SETTLE_MS = 1_000;

export interface Subscribed extends Contender {
  /** KiB of the server's memory per idle subscription; null where the system does not tell. */
  readonly idleKib: number | null;
  /** Of one event, as it is on the wire. */
  readonly messageBytes: number;
}

export interface Subscription {
  readonly name: string;
  /** `ws://…`, or `http://…` for event streams. */
  readonly url: string;
  readonly count: number;
  readonly documents: readonly string[];
  readonly changes: Changes;
  /** Changes a second; undefined: the next as soon as all have the last. */
  readonly pace?: number | undefined;
}

export async function subscribed(
  { name, url, count, documents, changes, pace }: Subscription,
  server: { stop(): Promise<unknown> },
  closing: Closing,
): Promise<Subscribed> {
  const workers = startWorker<SubscribersWorker>(new URL('subscribers-worker.ts', import.meta.url));
  closing.add(() => workers.stop());
  const idleKib = await open(workers, { url, count, documents }, changes.pids[0] ?? -1);
  await workers.call('prepare', changes);
  return {
    name,
    idleKib,
    messageBytes: await workers.call('sample', undefined),
    round: (seconds) =>
      pace === undefined ? workers.call('round', { seconds }) : workers.call('paced', { seconds, pace }),
    async stop() {
      await workers.stop();
      await server.stop();
    },
  };
}

/** Opens them all; what each adds to the server's resident size. */
async function open(
  workers: Worker<SubscribersWorker>,
  subscribers: Pick<Subscription, 'url' | 'count' | 'documents'>,
  pid: number,
): Promise<number | null> {
  await workers.call('open', { ...subscribers, count: WARM_UP_SOCKETS });
  await sleep(SETTLE_MS);
  await workers.call('close', undefined);
  const before = await settledKib(pid);
  await workers.call('open', subscribers);
  const after = await settledKib(pid);
  if (before === null || after === null || subscribers.count < MEASURABLE) return null;
  return (after - before) / subscribers.count;
}

async function settledKib(pid: number): Promise<number | null> {
  await sleep(SETTLE_MS);
  process.kill(pid, 'SIGUSR2'); // collector.mjs
  await sleep(SETTLE_MS);
  return residentKib(pid);
}
