/**
 * N subscribers, one socket each, and the one who makes changes: the next change is made when every subscriber has the
 * last one (or the one `inFlight` before it).
 */
import type { Measurement } from '../support/contender.js';
import { HttpClient } from '../support/http-client.js';
import { cpuMsOf, ownCoreShare } from '../support/processes.js';
import { serveWorker } from '../support/worker.js';
import { CountingStream } from './event-stream.js';
import { CountingSocket, type SubscriberEvents } from './socket.js';

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
  readonly pid: number;
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
let progress: (() => void) | undefined;
let failure: Error | undefined;
let maker: HttpClient | undefined;
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

async function change(): Promise<void> {
  if (!maker || !changes) throw new Error('no one makes changes');
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

  async prepare(how: Changes) {
    changes = how;
    maker = await HttpClient.open(how.url);
  },

  /** One change; the mean size of what came of it, in bytes. */
  async sample() {
    const [countBefore, bytesBefore] = [received, receivedBytes];
    await change();
    await until(countBefore + sockets.length);
    return (receivedBytes - bytesBefore) / sockets.length;
  },

  async round({ seconds }: { readonly seconds: number }): Promise<Measurement> {
    if (!changes) throw new Error('no one makes changes');
    const { pid, inFlight } = changes;
    const took: number[] = [];
    const before = received;
    const cpuBefore = cpuMsOf(pid);
    const shareOf = ownCoreShare();
    const start = performance.now();
    let made = 0;
    for (let at = start; at < start + seconds * 1_000;) {
      await change();
      made += 1;
      await until(before + (made - inFlight + 1) * sockets.length);
      const now = performance.now();
      took.push(now - at);
      at = now;
    }
    await until(before + made * sockets.length);
    const elapsed = performance.now() - start;
    const generatorShare = shareOf();
    const cpuAfter = cpuMsOf(pid);
    const deliveries = received - before;
    took.sort((a, b) => a - b);
    const quantile = (part: number) => took[Math.min(took.length - 1, Math.floor(took.length * part))] ?? 0;
    return {
      perSecond: (deliveries * 1_000) / elapsed,
      cpuMs: cpuBefore === null || cpuAfter === null ? null : (cpuAfter - cpuBefore) / deliveries,
      latency: { p50: quantile(0.5), p99: quantile(0.99) },
      generatorShare,
    };
  },
};

export type SubscribersWorker = typeof methods;
serveWorker(methods);
