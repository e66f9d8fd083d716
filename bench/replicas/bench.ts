/**
 * One, two and three servers on one database: the same readers spread over them, and the same subscribers, who all get
 * what one server changes. The first contender, which the ratios are to, is one server. Besides, what a replica pays for
 * changes that another made.
 */
import { cpus } from 'node:os';

import type { TestDatabase } from '../../test/support/test-server.js';
import { documentsOf } from '../fanout/documents.js';
import type { SubscribersWorker } from '../fanout/subscribers-worker.js';
import type { HttpStart as PatchStart } from '../patches/http-worker.js';
import type { ReadStart } from '../reads/http-worker.js';
import { bodyOf } from '../reads/query.js';
import type { Closing } from '../support/closing.js';
import { compare, type Contender, type Measurement } from '../support/contender.js';
import { rawContender, type Target } from '../support/contenders.js';
import { seedDeployments } from '../support/fixture.js';
import type { Options } from '../support/options.js';
import { embeddedPostgres, type Postgres } from '../support/postgres.js';
import { cpuMsOf } from '../support/processes.js';
import { figure, ratio, type Group, type Report } from '../support/report.js';
import { startServer } from '../support/server.js';
import { startWorker } from '../support/worker.js';
import { together } from './together.js';

const SIZES = [1, 2, 3];
const DEPLOYMENTS = 250;
const READERS = 24;
const SUBSCRIBERS = 900;
const CONTROLLERS = 4;
const DOCUMENTS = documentsOf(5);
/** So that a wake-up between servers, which waits for more of them, is not what is measured. */
const IN_FLIGHT = 4;

/** Servers on a database of their own; the first makes the changes. */
interface Cluster {
  readonly name: string;
  readonly servers: readonly Target[];
  readonly deploymentIds: readonly string[];
}

export async function benchReplicas(options: Options, closing: Closing): Promise<Report> {
  const postgres = await embeddedPostgres(closing, 'socket');
  const clusters: Cluster[] = [];
  for (const size of SIZES) clusters.push(await startCluster(postgres, size, options, closing));

  const readers: Contender[] = [];
  for (const cluster of clusters) readers.push(await startReaders(cluster, closing));
  const reads: Group = {
    title: `page of 50, ${READERS} connections`,
    unit: 'requests',
    summaries: await compare(readers, options),
  };
  for (const contender of readers) await contender.stop();

  const subscribers: Contender[] = [];
  for (const cluster of clusters) subscribers.push(await startSubscribers(cluster, closing));
  const fanOut: Group = {
    title: `${SUBSCRIBERS} subscribers, ${DOCUMENTS.length} documents`,
    unit: 'deliveries',
    summaries: await compare(subscribers, options),
  };
  for (const contender of subscribers) await contender.stop();

  const [, pair] = clusters;
  const feed = pair === undefined ? [] : [await feedCost(pair, options, closing)];
  return {
    name: 'replicas',
    options,
    groups: [reads, fanOut],
    notes: [
      `${cpus().length} cores for the servers, PostgreSQL and the clients together: where there are no more cores than these ` +
        'already use with one server, rates cannot add up. What tells is the CPU of all servers a unit: as long as it ' +
        'stays, each further server with a core of its own adds what the first one does.',
      ...[reads, fanOut].map(cpuNote),
      ...feed,
    ],
  };
}

async function startCluster(postgres: Postgres, size: number, options: Options, closing: Closing) {
  let deploymentIds: readonly string[] = [];
  const database = await postgres.createDatabase(async (client) => {
    ({ deploymentIds } = await seedDeployments(client, DEPLOYMENTS));
  });
  const servers: Target[] = [];
  for (let count = 0; count < size; count += 1) servers.push(await server(database, options, closing));
  return { name: size === 1 ? '1 server' : `${size} servers`, servers, deploymentIds };
}

async function server(database: TestDatabase, { profile }: Options, closing: Closing): Promise<Target> {
  const { graphql, pid } = await startServer(closing, database, { profile });
  return { url: graphql, pid };
}

/** A worker for each server, with its share of the connections. */
async function startReaders({ name, servers }: Cluster, closing: Closing): Promise<Contender> {
  const workers: Contender[] = [];
  for (const target of servers) {
    const load: ReadStart = { ...target, bodies: [bodyOf('list', '')], clients: READERS / servers.length };
    workers.push(
      await rawContender(name, new URL('../reads/http-worker.ts', import.meta.url), load, closing),
    );
  }
  return together(name, workers);
}

/** Of patches, and of what the subscribers get. */
async function startSubscribers(cluster: Cluster, closing: Closing): Promise<Contender> {
  const { name, servers, deploymentIds } = cluster;
  const worker = startSubscribersWorker(closing);
  for (const { url } of servers) {
    const sockets = url.replace('http:', 'ws:');
    await worker.call('open', { url: sockets, count: SUBSCRIBERS / servers.length, documents: DOCUMENTS });
  }
  const [first] = servers;
  await worker.call('prepare', {
    url: first?.url ?? '',
    pids: servers.map(({ pid }) => pid),
    inFlight: IN_FLIGHT,
    deploymentId: deploymentIds[0] ?? null,
  });
  return { name, round: (seconds) => worker.call('round', { seconds }), stop: () => worker.stop() };
}

function startSubscribersWorker(closing: Closing) {
  const worker = startWorker<SubscribersWorker>(new URL('../fanout/subscribers-worker.ts', import.meta.url));
  closing.add(() => worker.stop());
  return worker;
}

/** The CPU that a server with one subscriber takes while another one patches as fast as it can. */
async function feedCost(
  { servers, deploymentIds }: Cluster,
  { seconds }: Options,
  closing: Closing,
): Promise<string> {
  const [busy, idle] = servers;
  if (!busy || !idle) throw new Error('two servers are needed');
  const watcher = startSubscribersWorker(closing);
  await watcher.call('open', { url: idle.url.replace('http:', 'ws:'), count: 1, documents: DOCUMENTS });
  // The first one was patched before.
  const load: PatchStart & Target = { ...busy, deploymentIds: deploymentIds.slice(1), clients: CONTROLLERS };
  const module = new URL('../patches/http-worker.ts', import.meta.url);
  const controllers = await rawContender('patches', module, load, closing);
  await controllers.round(1);
  const before = cpuMsOf([idle.pid]);
  const receivedBefore = await watcher.call('received', undefined);
  const start = performance.now();
  const patches: Measurement = await controllers.round(seconds);
  const elapsed = (performance.now() - start) / 1_000;
  const after = cpuMsOf([idle.pid]);
  const received = (await watcher.call('received', undefined)) - receivedBefore;
  await controllers.stop();
  await watcher.stop();
  const cpuMs = before === null || after === null ? null : (after - before) / (patches.perSecond * elapsed);
  return (
    `Feed: while one server answered ${figure(patches.perSecond)} patches a second for ${figure(patches.cpuMs)} ms of CPU ` +
    `each, another one with one subscriber took ${figure(cpuMs)} ms for each of them and sent on ${received}.`
  );
}

function cpuNote({ title, summaries }: Group): string {
  const [one, ...more] = summaries;
  const ratios = more.map(({ contender, cpuMs }) => `${ratio(cpuMs ?? 0, one?.cpuMs ?? 0)} (${contender})`);
  return `${title}: CPU a unit to that of one server ${ratios.join(', ')}.`;
}
