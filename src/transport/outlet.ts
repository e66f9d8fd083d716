import type { TransportLimits } from './limits.js';

/**
 * What bytes leave by: the TCP socket of a WebSocket, or the response of an event stream. Guarantees one write per
 * connection and tick, and tells streams when to pause: above `pauseAboveBytes` unsent, until below
 * `resumeBelowBytes`. It never refuses a write: how much may come after a pause is bounded by whoever asks `ready`
 * before each event, one event per stream.
 */
export interface ByteSink {
  write(chunk: Uint8Array, done: () => void): unknown;
  /** Bytes taken and not yet given to the kernel. */
  readonly writableLength: number;
}

export interface Outlet {
  /** Queues for the end of this tick. */
  push(chunk: Buffer): void;
  /** Writes what is queued now. */
  flush(): void;
  /** Undefined when a stream may send; otherwise resolves when it may, or when the outlet closed. */
  ready(): Promise<void> | undefined;
  readonly unsentBytes: number;
  /** True since `pauseAboveBytes` was passed, until `resumeBelowBytes` is. */
  readonly paused: boolean;
  /** Bytes that ever reached the kernel: whether a slow reader reads at all. */
  readonly drainedBytes: number;
  /** Drops what is queued, wakes who waits, and writes no more. */
  close(): void;
  readonly closed: boolean;
}

/** Flushes every outlet that was pushed to in one tick, after the promises of that tick. */
export type FlushQueue = (flush: () => void) => void;

export function createFlushQueue(): FlushQueue {
  let waiting: (() => void)[] = [];
  const flushAll = () => {
    const due = waiting;
    waiting = [];
    for (const flush of due) flush();
  };
  return (flush) => {
    // Ticks run after the microtasks that are pending now: all subscribers of a change have pushed by then.
    if (waiting.push(flush) === 1) process.nextTick(flushAll);
  };
}

export function createOutlet(
  sink: ByteSink,
  limits: Pick<TransportLimits, 'pauseAboveBytes' | 'resumeBelowBytes'>,
  onTickEnd: FlushQueue,
): Outlet {
  let queued: Buffer[] = [];
  let queuedBytes = 0;
  let paused = false;
  let closed = false;
  let pushedBytes = 0;
  let waiters: (() => void)[] = [];

  const wake = () => {
    paused = false;
    const woken = waiters;
    waiters = [];
    for (const resume of woken) resume();
  };
  const written = () => {
    if (paused && queuedBytes + sink.writableLength < limits.resumeBelowBytes) wake();
  };
  const flush = () => {
    if (queuedBytes === 0 || closed) return;
    const chunk = queued.length === 1 && queued[0] ? queued[0] : Buffer.concat(queued, queuedBytes);
    queued = [];
    queuedBytes = 0;
    sink.write(chunk, written);
    if (sink.writableLength > limits.pauseAboveBytes) paused = true;
  };

  return {
    push(chunk) {
      if (closed) return;
      if (queuedBytes === 0) onTickEnd(flush);
      queued.push(chunk);
      queuedBytes += chunk.length;
      pushedBytes += chunk.length;
    },
    flush,
    ready() {
      if (!paused || closed) return undefined;
      return new Promise((resolve) => {
        waiters.push(resolve);
      });
    },
    get unsentBytes() {
      return closed ? 0 : queuedBytes + sink.writableLength;
    },
    get paused() {
      return paused;
    },
    get drainedBytes() {
      return pushedBytes - queuedBytes - sink.writableLength;
    },
    close() {
      closed = true;
      queued = [];
      queuedBytes = 0;
      wake();
    },
    get closed() {
      return closed;
    },
  };
}
