/**
 * N subscribers, one socket each, and the one who makes changes: the next change is made when every subscriber has the
 * last one (or the one `inFlight` before it).
 */
import { setTimeout as sleep } from 'node:timers/promises';

import type { Measurement } from '../support/contender.js';
import { HttpClient } from '../support/http-client.js';
import { cpuMsOf, ownCoreShare } from '../support/processes.js';
import { serveWorker } from '../support/worker.js';
import type { SubscriberEvents } from './counting.js';
import { CountingStream } from './event-stream.js';
import { CountingSocket } from './socket.js';

export interface Subscribers {
  /** `ws://…`, or `http://…` for event streams. */
  readonly url: string;
  readonly count: number;
  /** Subscriber n uses document n modulo their number. Empty: a socket alone subscribes. */
  readonly documents: readonly string[];
}

export interface Changes {
  /** Where a POST makes one change. */
  readonly url: string;
  /** The processes whose CPU time counts. */
  readonly pids: readonly number[];
  readonly inFlight: number;
  /** The deployment that is patched, at version 1 and RUNNING; null where the POST has no body. */
  readonly deploymentId: string | null;
}

/** Handshakes under way at the same time. */
const OPENING = 50;
const DELIVERY_TIMEOUT_MS = 10_000;

interface Subscriber {
  close(): void;
}

let sockets: Subscriber[] = [];
let received = 0;
let receivedBytes = 0;
/** How long each event was under way, in a paced round. */
let ages: number[] | undefined;
let progress: (() => void) | undefined;
let failure: Error | undefined;
let changes: Changes | undefined;
let version = 1;

function fail(error: Error): void {
  failure ??= error;
  progress?.();
}

/** Resolves when it is subscribed: the server has no more to say before the first event. */
async function subscriber(url: string, index: number, document: string | undefined): Promise<Subscriber> {
  let acknowledged: (() => void) | undefined;
  const ready = new Promise<void>((resolve) => {
    acknowledged = resolve;
  });
  const events: SubscriberEvents = {
    message(text) {
      if (text.includes('"type":"connection_ack"')) {
        acknowledged?.();
        return;
      }
      if (text.includes('"type":"error"') || text.includes('"errors"')) fail(new Error(text.toString()));
      ages?.push(ageOf(text));
      received += 1;
      receivedBytes += text.length;
      progress?.();
    },
    gone: (reason) => fail(new Error(`subscriber ${index}: ${reason}`)),
  };
  if (document !== undefined && url.startsWith('http:')) return CountingStream.open(url, document, events);
  const socket = await CountingSocket.open(url, events);
  if (document === undefined) return socket;
  socket.send('{"type":"connection_init"}');
  await ready;
  socket.send(JSON.stringify({ id: 's', type: 'subscribe', payload: { query: document } }));
  return socket;
}

const AT = Buffer.from('"at":"');
/** Since the time in its row, which is its transaction's start, in whole milliseconds. On one machine clocks agree. */
function ageOf(text: Buffer): number {
  const start = text.indexOf(AT) + AT.length;
  return Date.now() - Date.parse(text.toString('latin1', start, text.indexOf('"', start)));
}

function quantiles(took: number[]): { readonly p50: number; readonly p99: number } {
  took.sort((a, b) => a - b);
  const quantile = (part: number) => took[Math.min(took.length - 1, Math.floor(took.length * part))] ?? 0;
  return { p50: quantile(0.5), p99: quantile(0.99) };
}

async function until(count: number): Promise<void> {
  if (received >= count && !failure) return;
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new Error(`only ${received} of ${count} deliveries came`));
    }, DELIVERY_TIMEOUT_MS);
    progress = () => {
      if (received < count && !failure) return;
      clearTimeout(timer);
      progress = undefined;
      if (failure) reject(failure);
      else resolve();
    };
    progress();
  });
}

const PATCH = `mutation Patch($input: PatchDeploymentStatusInput!) {
  patchDeploymentStatus(input: $input) { ... on PatchDeploymentStatusPayload { deployment { version } } ... on Failure { message } }
}`;

/** For each round: a server may close what is idle, and others have their turns meanwhile. */
function openMaker(): Promise<HttpClient> {
  if (!changes) throw new Error('no one makes changes');
  return HttpClient.open(changes.url);
}

async function change(maker: HttpClient): Promise<void> {
  if (!changes) throw new Error('no one makes changes');
  const { deploymentId: id } = changes;
  if (id === null) {
    await maker.post('');
    return;
  }
  // The parity of the version tells the phase, as it was seeded.
  const phase = version % 2 === 1 ? 'REFRESH_FAILED' : 'RUNNING';
  const input = { id, expectedVersion: version, phase };
  const { body } = await maker.post(JSON.stringify({ query: PATCH, variables: { input } }));
  version += 1;
  if (!body.includes(`"version":${version}`)) throw new Error(`refused: ${body.toString()}`);
}

const methods = {
  async open({ url, count, documents }: Subscribers) {
    for (let first = 0; first < count; first += OPENING) {
      const group = Array.from({ length: Math.min(OPENING, count - first) }, (_, at) => first + at);
      const document = (index: number) => documents[index % documents.length];
      sockets.push(...(await Promise.all(group.map((index) => subscriber(url, index, document(index))))));
    }
  },

  close() {
    for (const socket of sockets) socket.close();
    sockets = [];
    return Promise.resolve();
  },

  prepare(how: Changes) {
    changes = how;
    return Promise.resolve();
  },

  /** One change; the mean size of what came of it, in bytes. */
  async sample() {
    const [countBefore, bytesBefore] = [received, receivedBytes];
    const maker = await openMaker();
    await change(maker);
    maker.close();
    await until(countBefore + sockets.length);
    return (receivedBytes - bytesBefore) / sockets.length;
  },

  /** Since they were opened. */
  received() {
    return failure ? Promise.reject(failure) : Promise.resolve(received);
  },

  /** The next change as soon as all have the last. */
  round: ({ seconds }: { readonly seconds: number }) =>
    measured(async (make) => {
      const took: number[] = [];
      const before = received;
      const start = performance.now();
      for (let at = start; at < start + seconds * 1_000;) {
        await make();
        await until(before + (took.length + 2 - inFlight()) * sockets.length);
        const now = performance.now();
        took.push(now - at);
        at = now;
      }
      return took;
    }),

  /** A change each so often, whoever has which; the latency is that of each event to each subscriber. */
  paced: ({ seconds, pace }: { readonly seconds: number; readonly pace: number }) =>
    measured(async (make) => {
      const took: number[] = [];
      ages = took;
      const start = performance.now();
      for (let n = 0; n < seconds * pace; n += 1) {
        const dueInMs = start + (n * 1_000) / pace - performance.now();
        if (dueInMs > 0) await sleep(dueInMs);
        await make();
      }
      return took;
    }),
};

function inFlight(): number {
  return changes?.inFlight ?? 1;
}

/** `course` makes changes, and answers its latencies. */
async function measured(course: (make: () => Promise<void>) => Promise<number[]>): Promise<Measurement> {
  if (!changes) throw new Error('no one makes changes');
  const { pids } = changes;
  const maker = await openMaker();
  const before = received;
  const cpuBefore = cpuMsOf(pids);
  const shareOf = ownCoreShare();
  const start = performance.now();
  let made = 0;
  const took = await course(async () => {
    await change(maker);
    made += 1;
  });
  await until(before + made * sockets.length);
  maker.close();
  ages = undefined;
  const elapsed = performance.now() - start;
  const generatorShare = shareOf();
  const cpuAfter = cpuMsOf(pids);
  const deliveries = received - before;
  return {
    perSecond: (deliveries * 1_000) / elapsed,
    cpuMs: cpuBefore === null || cpuAfter === null ? null : (cpuAfter - cpuBefore) / deliveries,
    latency: quantiles(took),
    generatorShare,
  };
}

export type SubscribersWorker = typeof methods;
serveWorker(methods);
