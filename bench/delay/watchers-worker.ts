/**
 * Subscribers, and controllers that patch at a steady rate whether or not anybody has the last change: how long each
 * change takes to each subscriber, from the request that makes it.
 */
import { setTimeout as sleep } from 'node:timers/promises';

import { CountingSocket } from '../fanout/socket.js';
import { ownDeployments, patchBody, type OwnDeployment } from '../patches/patch.js';
import { HttpClient, operate } from '../support/http-client.js';
import { cpuMsOf, ownCoreShare } from '../support/processes.js';
import { serveWorker } from '../support/worker.js';

export interface Watch {
  readonly url: string;
  readonly pid: number;
  readonly subscribers: number;
  readonly deploymentIds: readonly string[];
}

export interface Delays {
  readonly changesPerSecond: number;
  /** From the request to the subscriber, in milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly most: number;
  /** From the request to its own answer, in milliseconds. */
  readonly patchP50: number;
  readonly patchP99: number;
  /** Of a core, that the server took; null where the system does not tell. */
  readonly core: number | null;
  readonly generatorShare: number;
}

const FIELDS = ['', 'cursor', 'from to', 'at reason', 'actor message'];
const TIMEOUT_MS = 10_000;

let watch: Watch | undefined;
let own: OwnDeployment[] = [];
/** When the request for a version of a deployment was sent. */
const sent = new Map<string, number>();
let delays: number[] = [];
let failure: Error | undefined;

function take(text: Buffer, acknowledge: () => void): void {
  const now = performance.now();
  const message = JSON.parse(text.toString()) as {
    readonly type: string;
    readonly payload?: {
      readonly data?: { readonly change: { version: number; deployment: { id: string } } };
    };
  }; // as the documents below ask for
  const change = message.payload?.data?.change;
  if (message.type === 'next' && change) {
    delays.push(now - (sent.get(`${change.deployment.id} ${change.version}`) ?? Number.NaN));
  } else if (message.type === 'connection_ack') {
    acknowledge();
  } else if (message.type !== 'ping') {
    failure ??= new Error(text.toString());
  }
}

async function subscribe(url: string, index: number): Promise<void> {
  const query = `subscription { change: deploymentPhaseChanged { version deployment { id } ${FIELDS[index % FIELDS.length]} } }`;
  let acknowledge = () => {};
  const ready = new Promise<void>((resolve) => {
    acknowledge = resolve;
  });
  const socket = await CountingSocket.open(url, {
    message: (text) => take(text, acknowledge),
    gone: (reason) => {
      failure ??= new Error(`subscriber ${index}: ${reason}`);
    },
  });
  socket.send('{"type":"connection_init"}');
  await ready;
  socket.send(JSON.stringify({ id: 's', type: 'subscribe', payload: { query } }));
}

/** One change, and how long its answer took. */
async function patch(client: HttpClient, deployment: OwnDeployment): Promise<number> {
  const start = performance.now();
  sent.set(`${deployment.id} ${deployment.version + 1}`, start);
  const answer = await operate(client, patchBody(deployment));
  deployment.version += 1;
  if (!answer.includes(`"version":${deployment.version},`)) throw new Error(`refused: ${answer.toString()}`);
  return performance.now() - start;
}

const methods = {
  async start(start: Watch) {
    watch = start;
    own = ownDeployments(start.deploymentIds, 0, 1);
    const sockets = start.url.replace('http:', 'ws:');
    for (let index = 0; index < start.subscribers; index += 1) await subscribe(sockets, index);
  },

  /** `rate` changes a second, each of another deployment than the ones just before it. */
  async round({ seconds, rate }: { readonly seconds: number; readonly rate: number }): Promise<Delays> {
    if (!watch) throw new Error('nobody watches');
    const { url, pid, subscribers } = watch;
    const clients = await Promise.all(own.map(() => HttpClient.open(url)));
    sent.clear();
    delays = [];
    const cpuBefore = cpuMsOf([pid]);
    const shareOf = ownCoreShare();
    const start = performance.now();
    const patches: Promise<number>[] = [];
    for (let made = 0; made < seconds * rate; made += 1) {
      const wait = start + (made * 1_000) / rate - performance.now();
      if (wait > 0) await sleep(wait);
      // Only where the server cannot keep up, and then the rate falls: nothing is sent twice at once on a connection.
      await patches[made - own.length];
      const [client, deployment] = [clients[made % own.length], own[made % own.length]];
      if (client && deployment) patches.push(patch(client, deployment));
    }
    const making = performance.now() - start;
    const answered = await Promise.all(patches);
    const deadline = performance.now() + TIMEOUT_MS;
    while (delays.length < patches.length * subscribers) {
      refuseFailure();
      if (performance.now() > deadline) throw new Error(`only ${delays.length} deliveries came`);
      await sleep(10);
    }
    const elapsed = performance.now() - start;
    const generatorShare = shareOf();
    const cpuAfter = cpuMsOf([pid]);
    for (const client of clients) client.close();
    const [toSubscriber, toAnswer] = [quantiles(delays), quantiles(answered)];
    return {
      changesPerSecond: (patches.length * 1_000) / making,
      p50: toSubscriber(0.5),
      p99: toSubscriber(0.99),
      most: toSubscriber(1),
      patchP50: toAnswer(0.5),
      patchP99: toAnswer(0.99),
      core: cpuBefore === null || cpuAfter === null ? null : (cpuAfter - cpuBefore) / elapsed,
      generatorShare,
    };
  },
};

function refuseFailure(): void {
  if (failure) throw failure;
}

function quantiles(values: number[]): (part: number) => number {
  const sorted = values.sort((a, b) => a - b);
  return (part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

export type WatchersWorker = typeof methods;
serveWorker(methods);
