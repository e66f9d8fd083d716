/**
 * Fan-out: N subscribers, one change a time, until each has it. Limit: a raw `ws` server that writes one pre-built frame
 * of the same size to every socket. Ours: `deploymentPhaseChanged` over WebSocket and as event streams, a change being a
 * real patch over HTTP that is committed and logged. Peers: the same documents, a change being an event in memory.
 */
import { startPeer } from '../peers/start.js';
import type { Closing } from '../support/closing.js';
import { compare, type Summary } from '../support/contender.js';
import { seedDeployments } from '../support/fixture.js';
import type { Options } from '../support/options.js';
import { embeddedPostgres, type Postgres } from '../support/postgres.js';
import { figure, ratio, type Group, type Report } from '../support/report.js';
import { startServer } from '../support/server.js';
import { startWorker } from '../support/worker.js';
import { documentsOf } from './documents.js';
import type { LimitServer } from './limit-server-worker.js';
import { subscribed, type Subscribed } from './subscribed.js';

const PEERS = [
  { name: 'graphql-ws', file: 'graphql-ws.mjs', scheme: 'ws:' },
  { name: 'Mercurius, jit', file: 'mercurius-subscriptions.mjs', scheme: 'ws:' },
  { name: 'Yoga, event streams', file: 'yoga-sse.mjs', scheme: 'http:' },
] as const;
const OURS = [
  { name: 'Slipway', scheme: 'ws:' },
  { name: 'Slipway, event streams', scheme: 'http:' },
] as const;
/** What `delay` has. */
const CHANGES_A_SECOND = 100;
const WATCHERS = 200;
const WATCHED_DOCUMENTS = 5;
type Scheme = (typeof PEERS)[number]['scheme'];

interface Setting {
  readonly postgres: Postgres;
  readonly count: number;
  readonly documents: readonly string[];
  readonly options: Options;
  readonly closing: Closing;
}

export async function benchFanOut(options: Options, closing: Closing): Promise<Report> {
  const postgres = await embeddedPostgres(closing, 'socket');
  const groups: Group[] = [];
  const notes: string[] = [
    options.pace === undefined
      ? 'A change of Slipway is a patch over HTTP, committed and logged; of the others an event in memory.'
      : `${options.pace} changes a second; p50 and p99 are of each event to each subscriber, since its transaction began.`,
  ];
  for (const groupCount of options.groups) {
    for (const count of options.subscribers) {
      const setting = {
        postgres,
        count,
        documents: documentsOf(groupCount, options.pace !== undefined),
        options,
        closing,
      };
      const contenders = await contendersOf(setting);
      const summaries = await compare(contenders, options);
      const title = `${count} subscribers, ${groupCount} documents`;
      groups.push({ title, unit: 'deliveries', summaries });
      if (options.pace === undefined) notes.push(noteOf(title, summaries, contenders));
      for (const contender of contenders) await contender.stop();
    }
  }
  return { name: options.pace === undefined ? 'fanout' : 'delay', options, groups, notes };
}

/** How soon a change comes while the server is not at its limit. */
export function benchDelay(options: Options, closing: Closing): Promise<Report> {
  const { pace = CHANGES_A_SECOND } = options;
  return benchFanOut({ ...options, pace, subscribers: [WATCHERS], groups: [WATCHED_DOCUMENTS] }, closing);
}

async function contendersOf(setting: Setting): Promise<Subscribed[]> {
  const ours: Subscribed[] = [];
  for (const { name, scheme } of OURS) ours.push(await startOurs(name, scheme, setting));
  // How soon a commit comes is nothing that one without commits can be compared with.
  if (setting.options.pace !== undefined) return ours;
  // Its one frame is as large as ours are in the mean.
  const limit = await startLimit(ours[0]?.messageBytes ?? 0, setting);
  const peers: Subscribed[] = [];
  for (const { name, file, scheme } of PEERS) peers.push(await startPeers(name, file, scheme, setting));
  return [limit, ...ours, ...peers];
}

function noteOf(title: string, [limit, ...others]: readonly Summary[], contenders: readonly Subscribed[]) {
  const cpu = others.map((other) => `${ratio(other.cpuMs ?? 0, limit?.cpuMs ?? 0)} (${other.contender})`);
  const memory = contenders.map(({ name, idleKib }) => `${figure(idleKib)} KiB (${name})`);
  return (
    `${title}: CPU per delivery to the limit's ${cpu.join(', ')}; ` +
    `memory per idle subscription ${memory.join(', ')}.`
  );
}

async function startOurs(name: string, scheme: Scheme, setting: Setting): Promise<Subscribed> {
  const { postgres, count, documents, options, closing } = setting;
  let deploymentId = '';
  const database = await postgres.createDatabase(async (client) => {
    const { deploymentIds } = await seedDeployments(client, 1);
    deploymentId = deploymentIds[0] ?? '';
  });
  const server = await startServer(closing, database, { profile: options.profile, collects: true });
  const url = server.graphql.replace('http:', scheme);
  const changes = { url: server.graphql, pids: [server.pid], inFlight: options.inFlight, deploymentId };
  const { pace } = options;
  return subscribed({ name, url, count, documents, changes, pace }, server, closing);
}

async function startLimit(messageBytes: number, setting: Setting): Promise<Subscribed> {
  const { count, options, closing } = setting;
  const server = startWorker<LimitServer>(new URL('limit-server-worker.ts', import.meta.url));
  closing.add(() => server.stop());
  const address = await server.call('start', { messageBytes });
  const { inFlight } = options;
  const changes = { url: `http://${address}`, pids: [server.pid], inFlight, deploymentId: null };
  const url = `ws://${address}`;
  return subscribed({ name: 'one frame for all', url, count, documents: [], changes }, server, closing);
}

async function startPeers(name: string, file: string, scheme: Scheme, setting: Setting): Promise<Subscribed> {
  const { count, documents, options, closing } = setting;
  const server = await startPeer({ file, setting: {}, collects: true }, closing);
  const { inFlight } = options;
  const changes = {
    url: new URL('/change', server.url).href,
    pids: [server.pid],
    inFlight,
    deploymentId: null,
  };
  const url = server.url.replace('http:', scheme);
  return subscribed({ name, url, count, documents, changes }, server, closing);
}
