/**
 * Minutes of everything at once on one server: readers, controllers that patch, subscribers that get every patch, agents
 * that beat, each as fast as it is answered. What is looked at is whether the first minute, the middle and the last are alike:
 * the delay of the event loop and memory as the server's own metrics tell them.
 */
import { bodyOf, type Read } from '../reads/query.js';
import type { ReadStart } from '../reads/http-worker.js';
import type { HttpStart as PatchStart } from '../patches/http-worker.js';
import type { HttpStart as BeatStart } from '../heartbeats/http-worker.js';
import { documentsOf } from '../fanout/documents.js';
import type { SubscribersWorker } from '../fanout/subscribers-worker.js';
import type { TestDatabase } from '../../test/support/test-server.js';
import type { Closing } from '../support/closing.js';
import type { Contender } from '../support/contender.js';
import { rawContender, type Target } from '../support/contenders.js';
import { seedAgents, seedDeployments, type BenchAgent } from '../support/fixture.js';
import type { Options } from '../support/options.js';
import { embeddedPostgres } from '../support/postgres.js';
import { cpuMsOf } from '../support/processes.js';
import type { Report } from '../support/report.js';
import { startServer } from '../support/server.js';
import { startWorker, type Worker } from '../support/worker.js';
import { minutesOf, scrape, tableOf, trendOf, type Sample } from './samples.js';

const DEPLOYMENTS = 250;
const AGENTS = 500;
const READERS = 8;
const CONTROLLERS = 8;
const BEATERS = 4;
const SOCKETS = 100;
const STREAMS = 20;
const DOCUMENTS = documentsOf(5);
const SAMPLE_SECONDS = 10;
const SAMPLES_A_MINUTE = 60 / SAMPLE_SECONDS;

export async function benchLoad(options: Options, closing: Closing): Promise<Report> {
  const postgres = await embeddedPostgres(closing, 'socket');
  let ids: readonly string[] = [];
  let agents: readonly BenchAgent[] = [];
  const database = await postgres.createDatabase(async (client) => {
    ids = (await seedDeployments(client, DEPLOYMENTS)).deploymentIds;
    agents = await seedAgents(client, AGENTS);
  });
  const load = await startLoad(database, { ids, agents, profile: options.profile }, closing);
  const samples: Sample[] = [];
  await scrape(load.metricsUrl); // what happened until now is no part of the first sample
  for (let taken = 0; taken < options.minutes * SAMPLES_A_MINUTE; taken += 1) {
    const sample = await takeSample(load);
    samples.push(sample);
    process.stderr.write(
      `${(taken + 1) * SAMPLE_SECONDS} s: ${Math.round(sample.patches)} patches a second, ` +
        `event loop p99 ${sample.loopP99Ms.toFixed(1)} ms, ${Math.round(sample.residentMib)} MiB\n`,
    );
  }
  const minutes = minutesOf(samples, SAMPLES_A_MINUTE);
  return {
    name: 'load',
    options,
    groups: [],
    tables: [tableOf(minutes)],
    samples,
    notes: [
      `${READERS} readers (pages of 50 and single deployments), ${CONTROLLERS} controllers, ${SOCKETS} WebSockets and ` +
        `${STREAMS} event streams of ${DOCUMENTS.length} documents, ${BEATERS} beating connections of ${AGENTS} agents.`,
      'The delay of the event loop is measured by a timer of 10 ms: an idle process shows 10 ms.',
      ...trendOf(minutes),
    ],
  };
}

interface Load {
  readonly pid: number;
  readonly metricsUrl: string;
  readonly reads: Contender;
  readonly patches: Contender;
  readonly beats: Contender;
  readonly subscribers: Worker<SubscribersWorker>;
}

interface Facts {
  readonly ids: readonly string[];
  readonly agents: readonly BenchAgent[];
  readonly profile: boolean;
}

async function startLoad(database: TestDatabase, facts: Facts, closing: Closing): Promise<Load> {
  const { ids, agents, profile } = facts;
  const { graphql, url, pid } = await startServer(closing, database, { profile });
  const target: Target = { url: graphql, pid };
  const body = (read: Read, id: string) => bodyOf(read, id);
  const reads: ReadStart = {
    ...target,
    bodies: ids.flatMap((id) => [body('one', id), body('list', '')]),
    clients: READERS,
  };
  const patches: PatchStart & Target = { ...target, deploymentIds: ids, clients: CONTROLLERS };
  const beats: BeatStart & Target = { ...target, agents, clients: BEATERS };
  const subscribers = startWorker<SubscribersWorker>(
    new URL('../fanout/subscribers-worker.ts', import.meta.url),
  );
  closing.add(() => subscribers.stop());
  const sockets = graphql.replace('http:', 'ws:');
  await subscribers.call('open', { url: sockets, count: SOCKETS, documents: DOCUMENTS });
  await subscribers.call('open', { url: graphql, count: STREAMS, documents: DOCUMENTS });
  const worker = (folder: string) => new URL(`../${folder}/http-worker.ts`, import.meta.url);
  return {
    pid,
    metricsUrl: `${url}/metrics`,
    reads: await rawContender('reads', worker('reads'), reads, closing),
    patches: await rawContender('patches', worker('patches'), patches, closing),
    beats: await rawContender('beats', worker('heartbeats'), beats, closing),
    subscribers,
  };
}

async function takeSample(load: Load): Promise<Sample> {
  const receivedBefore = await load.subscribers.call('received', undefined);
  const cpuBefore = cpuMsOf([load.pid]);
  const start = performance.now();
  const [reads, patches, beats] = await Promise.all(
    [load.reads, load.patches, load.beats].map((contender) => contender.round(SAMPLE_SECONDS)),
  );
  const seconds = (performance.now() - start) / 1_000;
  const cpuAfter = cpuMsOf([load.pid]);
  const received = await load.subscribers.call('received', undefined);
  return {
    reads: reads?.perSecond ?? 0,
    patches: patches?.perSecond ?? 0,
    beats: beats?.perSecond ?? 0,
    deliveries: (received - receivedBefore) / seconds,
    core: cpuBefore === null || cpuAfter === null ? null : (cpuAfter - cpuBefore) / 1_000 / seconds,
    patchP99Ms: patches?.latency?.p99 ?? 0,
    ...(await scrape(load.metricsUrl)),
  };
}
