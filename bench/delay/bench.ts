/**
 * How long a change takes to its subscribers when the server is not at its limit: 100 changes a second, 200 subscribers
 * of five documents. The time counts from the request that makes the change, so the patch itself is in it.
 */
import type { Closing } from '../support/closing.js';
import { seedDeployments } from '../support/fixture.js';
import type { Options } from '../support/options.js';
import { embeddedPostgres } from '../support/postgres.js';
import { figure, type Report } from '../support/report.js';
import { startServer } from '../support/server.js';
import { startWorker } from '../support/worker.js';
import type { WatchersWorker } from './watchers-worker.js';

const CHANGES_A_SECOND = 100;
const SUBSCRIBERS = 200;
/** So many that none is patched again before it was answered. */
const DEPLOYMENTS = 100;

export async function benchDelay(options: Options, closing: Closing): Promise<Report> {
  const postgres = await embeddedPostgres(closing, 'socket');
  let deploymentIds: readonly string[] = [];
  const database = await postgres.createDatabase(async (client) => {
    ({ deploymentIds } = await seedDeployments(client, DEPLOYMENTS));
  });
  const { graphql, pid } = await startServer(closing, database, { profile: options.profile });
  const worker = startWorker<WatchersWorker>(new URL('watchers-worker.ts', import.meta.url));
  closing.add(() => worker.stop());
  await worker.call('start', { url: graphql, pid, subscribers: SUBSCRIBERS, deploymentIds });
  const { seconds } = options;
  await worker.call('round', { seconds, rate: CHANGES_A_SECOND });
  const rows: string[][] = [];
  for (let round = 1; round <= options.rounds; round += 1) {
    const found = await worker.call('round', { seconds, rate: CHANGES_A_SECOND });
    const { changesPerSecond, p50, p99, most, patchP50, patchP99, core, generatorShare } = found;
    rows.push([
      String(round),
      ...[changesPerSecond, p50, p99, most, patchP50, patchP99, core, generatorShare].map(figure),
    ]);
  }
  return {
    name: 'delay',
    options,
    groups: [],
    tables: [
      {
        title: `${CHANGES_A_SECOND} changes a second, ${SUBSCRIBERS} subscribers, ${seconds} s a round`,
        head: [
          'round',
          'changes a second',
          'request to subscriber, p50 ms',
          'p99 ms',
          'most ms',
          'request to answer, p50 ms',
          'p99 ms',
          'core of the server',
          'of the generator',
        ],
        rows,
      },
    ],
    notes: ['Every change came to every subscriber; the time from its commit is shorter by most of a patch.'],
  };
}
