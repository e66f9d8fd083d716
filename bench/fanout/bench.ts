/**
 * Fan-out: N subscribers over WebSocket, one change a time, until each has it. Limit: a raw `ws` server that writes one
 * pre-built frame of the same size to every socket. Ours: `deploymentPhaseChanged` in five documents, a change being a
 * real patch over HTTP that is committed and logged.
 */
import { setTimeout as sleep } from 'node:timers/promises';

import type { Closing } from '../support/closing.js';
import { compare, type Contender, type Summary } from '../support/contender.js';
import { seedDeployments } from '../support/fixture.js';
import type { Options } from '../support/options.js';
import { embeddedPostgres, type Postgres } from '../support/postgres.js';
import { residentKib } from '../support/processes.js';
import { figure, ratio, type Group, type Report } from '../support/report.js';
import { startServer } from '../support/server.js';
import { startWorker, type Worker } from '../support/worker.js';
import type { LimitServer } from './limit-server-worker.js';
import type { SubscribersWorker } from './subscribers-worker.js';

const FIELDS = [
  'cursor deployment { id status { phase } }',
  'cursor to deployment { id version }',
  'cursor from to reason deployment { id name status { phase } }',
  'cursor at to version deployment { id namespace name app }',
  'cursor at from to message actor deployment { id labels status { phase summary } }',
];
const DOCUMENTS = FIELDS.map((fields) => `subscription { deploymentPhaseChanged { ${fields} } }`);

/** Opened and closed again first, so that what a server allocates once is not counted for subscriptions. */
const WARM_UP_SOCKETS = 200;
/** With fewer, what a server allocates for itself meanwhile is more than what they take. */
const MEASURABLE = 1_000;
/** For what is freed or allocated late to show in the resident size. */
const SETTLE_MS = 2_000;

/** With every subscriber open. */
interface FanOut extends Contender {
  /** KiB of the server's memory per idle subscription; null where the system does not tell. */
  readonly idleKib: number | null;
}

export async function benchFanOut(options: Options, closing: Closing): Promise<Report> {
  const postgres = await embeddedPostgres(closing, 'socket');
  const groups: Group[] = [];
  const notes: string[] = [];
  for (const count of options.subscribers) {
    const ours = await startOurs(postgres, count, options, closing);
    const limit = await startLimit(ours.messageBytes, count, options.inFlight, closing);
    const summaries = await compare([limit, ours], options);
    groups.push({ title: `${count} subscribers`, unit: 'deliveries', summaries });
    notes.push(noteOf(count, summaries, [limit, ours]));
    for (const contender of [limit, ours]) await contender.stop();
  }
  return { name: 'fanout', options, groups, notes };
}

function noteOf(count: number, [limit, ours]: readonly Summary[], contenders: readonly FanOut[]): string {
  const cpu = ratio(ours?.cpuMs ?? 0, limit?.cpuMs ?? 0);
  const memory = contenders.map(({ name, idleKib }) => `${figure(idleKib)} KiB (${name})`).join(', ');
  return `${count} subscribers: CPU per delivery ${cpu} of the limit; memory per idle subscription ${memory}.`;
}

async function startOurs(postgres: Postgres, count: number, options: Options, closing: Closing) {
  let deploymentId = '';
  const database = await postgres.createDatabase(async (client) => {
    const { deploymentIds } = await seedDeployments(client, 1);
    deploymentId = deploymentIds[0] ?? '';
  });
  const server = await startServer(closing, database, { profile: options.profile, collects: true });
  const url = server.graphql.replace('http:', 'ws:');
  const workers = startSubscribers(closing);
  const idleKib = await open(workers, url, count, DOCUMENTS, server.pid);
  await workers.call('prepare', {
    url: server.graphql,
    pid: server.pid,
    inFlight: options.inFlight,
    deploymentId,
  });
  const stop = () => server.stop();
  return {
    ...fanOut('Slipway', workers, idleKib, stop),
    messageBytes: await workers.call('sample', undefined),
  };
}

async function startLimit(messageBytes: number, count: number, inFlight: number, closing: Closing) {
  const server = startWorker<LimitServer>(new URL('limit-server-worker.ts', import.meta.url));
  closing.add(() => server.stop());
  const address = await server.call('start', { messageBytes });
  const workers = startSubscribers(closing);
  const idleKib = await open(workers, `ws://${address}`, count, [], server.pid);
  await workers.call('prepare', { url: `http://${address}`, pid: server.pid, inFlight, deploymentId: null });
  return fanOut('one frame for all', workers, idleKib, () => server.stop());
}

function fanOut(
  name: string,
  workers: Worker<SubscribersWorker>,
  idleKib: number | null,
  stop: () => Promise<unknown>,
): FanOut {
  return {
    name,
    idleKib,
    round: (seconds) => workers.call('round', { seconds }),
    async stop() {
      await workers.stop();
      await stop();
    },
  };
}

function startSubscribers(closing: Closing): Worker<SubscribersWorker> {
  const workers = startWorker<SubscribersWorker>(new URL('subscribers-worker.ts', import.meta.url));
  closing.add(() => workers.stop());
  return workers;
}

/** Opens them all; what each adds to the server's resident size. */
async function open(
  workers: Worker<SubscribersWorker>,
  url: string,
  count: number,
  documents: readonly string[],
  pid: number,
): Promise<number | null> {
  await workers.call('open', { url, count: WARM_UP_SOCKETS, documents });
  await sleep(SETTLE_MS);
  await workers.call('close', undefined);
  const before = await settledKib(pid);
  await workers.call('open', { url, count, documents });
  const after = await settledKib(pid);
  if (before === null || after === null || count < MEASURABLE) return null;
  return (after - before) / count;
}

async function settledKib(pid: number): Promise<number | null> {
  await sleep(SETTLE_MS);
  process.kill(pid, 'SIGUSR2'); // collector.mjs
  await sleep(SETTLE_MS);
  return residentKib(pid);
}
