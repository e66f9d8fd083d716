/** Makes contenders of workers: a raw one that measures itself, and the server with a worker that loads it. */
import type { TestDatabase } from '../../test/support/test-server.js';
import type { Closing } from './closing.js';
import type { Contender, Measurement } from './contender.js';
import { startServer } from './server.js';
import { startWorker, type Worker } from './worker.js';

/** What every load generator offers. */
export interface LoadWorker<Start> {
  start(start: Start): Promise<void>;
  round(round: { readonly seconds: number }): Promise<Measurement>;
}

/** Where the server under test is, and whose CPU time counts. */
export interface Target {
  readonly url: string;
  readonly pid: number;
}

export async function rawContender<Start>(
  name: string,
  module: URL,
  start: Start,
  closing: Closing,
): Promise<Contender> {
  const worker = await startLoad(module, start, closing);
  return { name, round: (seconds) => worker.call('round', { seconds }), stop: () => worker.stop() };
}

export async function serverContender<Start>(
  name: string,
  module: URL,
  database: TestDatabase,
  start: Start,
  { closing, profile }: { readonly closing: Closing; readonly profile: boolean },
): Promise<Contender> {
  const { graphql, pid, stop } = await startServer(closing, database, { profile });
  const worker = await startLoad<Start & Target>(module, { ...start, url: graphql, pid }, closing);
  return {
    name,
    round: (seconds) => worker.call('round', { seconds }),
    async stop() {
      await worker.stop();
      await stop();
    },
  };
}

async function startLoad<Start>(
  module: URL,
  start: Start,
  closing: Closing,
): Promise<Worker<LoadWorker<Start>>> {
  const worker = startWorker<LoadWorker<Start>>(module);
  closing.add(() => worker.stop());
  await worker.call('start', start);
  return worker;
}
