import type { Reader } from '../kernel/tap.js';
import type { TransportLimits } from './limits.js';

/**
 * What bytes leave by: the TCP socket of a WebSocket, or the response of an event stream. Guarantees one write per
 * connection and tick (more only where a tick brings more than `pauseAboveBytes`), and tells streams when to pause: above
 * `pauseAboveBytes` unsent, until below `resumeBelowBytes`. It never refuses a write: how much may come after a pause is
 * bounded by whoever asks `ready` before each event, one event per stream.
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
  /** True when a stream may send; if not, its reader is woken when it may, or when the outlet closed. */
  ready(reader: Reader): boolean;
  /** This reader no longer waits. */
  forget(reader: Reader): void;
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
export type FlushQueue = (outlet: Pick<Outlet, 'flush'>) => void;

export function createFlushQueue(): FlushQueue {
  let waiting: Pick<Outlet, 'flush'>[] = [];
  const flushAll = () => {
    const due = waiting;
    waiting = [];
    for (const outlet of due) outlet.flush();
  };
  return (outlet) => {
    // Ticks run after the microtasks that are pending now: all subscribers of a change have pushed by then.
    if (waiting.push(outlet) === 1) process.nextTick(flushAll);
  };
}

export function createOutlet(
  sink: ByteSink,
  limits: Pick<TransportLimits, 'pauseAboveBytes' | 'resumeBelowBytes'>,
  onTickEnd: FlushQueue,
): Outlet {
  return new SinkOutlet(sink, limits, onTickEnd);
}

/** A class, since there are twenty thousand of them. */
class SinkOutlet implements Outlet {
  readonly #sink: ByteSink;
  readonly #limits: Pick<TransportLimits, 'pauseAboveBytes' | 'resumeBelowBytes'>;
  readonly #onTickEnd: FlushQueue;
  readonly #written = () => {
    if (this.#paused) this.#resume();
  };
  /** The first chunk of a tick is mostly the only one. */
  #queued: Buffer | undefined;
  #more: Buffer[] | undefined;
  #queuedBytes = 0;
  #pushedBytes = 0;
  #paused = false;
  #closed = false;
  #readers: Set<Reader> | undefined;

  constructor(
    sink: ByteSink,
    limits: Pick<TransportLimits, 'pauseAboveBytes' | 'resumeBelowBytes'>,
    onTickEnd: FlushQueue,
  ) {
    this.#sink = sink;
    this.#limits = limits;
    this.#onTickEnd = onTickEnd;
  }

  push(chunk: Buffer): void {
    if (this.#closed) return;
    if (this.#queued === undefined) {
      this.#queued = chunk;
      this.#onTickEnd(this);
    } else if (this.#more === undefined) {
      this.#more = [chunk];
    } else {
      this.#more.push(chunk);
    }
    this.#queuedBytes += chunk.length;
    this.#pushedBytes += chunk.length;
    if (this.#queuedBytes > this.#limits.pauseAboveBytes) this.flush();
  }

  flush(): void {
    const chunk = this.#queued;
    if (chunk === undefined || this.#closed) return;
    const more = this.#more;
    const bytes = this.#queuedBytes;
    this.#queued = undefined;
    this.#more = undefined;
    this.#queuedBytes = 0;
    this.#sink.write(more === undefined ? chunk : Buffer.concat([chunk, ...more], bytes), this.#written);
    if (this.#sink.writableLength > this.#limits.pauseAboveBytes) this.#paused = true;
  }

  ready(reader: Reader): boolean {
    if (!this.#paused || this.#closed) return true;
    (this.#readers ??= new Set()).add(reader);
    return false;
  }

  forget(reader: Reader): void {
    this.#readers?.delete(reader);
  }

  get unsentBytes(): number {
    return this.#closed ? 0 : this.#queuedBytes + this.#sink.writableLength;
  }

  get paused(): boolean {
    return this.#paused;
  }

  get drainedBytes(): number {
    return this.#pushedBytes - this.#queuedBytes - this.#sink.writableLength;
  }

  close(): void {
    this.#closed = true;
    this.#queued = undefined;
    this.#more = undefined;
    this.#queuedBytes = 0;
    this.#wake();
  }

  get closed(): boolean {
    return this.#closed;
  }

  #resume(): void {
    if (this.#queuedBytes + this.#sink.writableLength < this.#limits.resumeBelowBytes) this.#wake();
  }

  #wake(): void {
    this.#paused = false;
    const readers = this.#readers;
    this.#readers = undefined;
    if (!readers) return;
    const inTurn: Reader[] = [];
    for (const reader of readers) {
      if (this.ready(reader)) reader.wake();
      else inTurn.push(reader);
    }
    // Whoever found it full again comes before those who made it so.
    if (inTurn.length > 0) this.#readers = new Set([...inTurn, ...this.#waiting()]);
  }

  #waiting(): Iterable<Reader> {
    return this.#readers ?? [];
  }
}
