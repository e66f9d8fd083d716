/** How the client waits. Replaced as a whole in tests, so that no test has to sit out a real delay. */
export interface ClientClock {
  /** Milliseconds that never go back; for durations only. */
  monotonicMs(): number;
  /** Calls `run` once after `ms`; the returned function cancels. */
  after(ms: number, run: () => void): () => void;
}

export const systemClientClock: ClientClock = {
  monotonicMs: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

export interface Timing {
  /** Ceiling of the first wait before a stream is opened again; doubles with each failure in a row. */
  readonly retryBaseMs: number;
  /** Ceiling that the doubling stops at. */
  readonly retryCapMs: number;
  /** An attempt that lived this long counts as a success, though nothing was sent on it. */
  readonly stableMs: number;
  /** How long a connection may take until the server has acknowledged it. */
  readonly connectMs: number;
  /** WebSocket: silence after which the client asks whether the server is still there. */
  readonly pingMs: number;
  /** WebSocket: how long the answer may take before the connection counts as lost. */
  readonly pongMs: number;
  /** SSE: silence after which the stream counts as lost. The server sends a comment far more often. */
  readonly idleMs: number;
  /** Queries and mutations: how long an answer may take, unless the call says otherwise. */
  readonly requestMs: number;
  /** How long a socket without subscriptions stays open for the next one. */
  readonly lingerMs: number;
}

export const DEFAULT_TIMING: Timing = {
  retryBaseMs: 1_000,
  retryCapMs: 30_000,
  stableMs: 10_000,
  connectMs: 10_000,
  pingMs: 10_000,
  pongMs: 5_000,
  idleMs: 45_000,
  requestMs: 30_000,
  lingerMs: 1_000,
};

/** Full jitter: anywhere between 0 and the ceiling, so that clients cut at one moment come back spread out. */
export function retryDelayMs(
  attempt: number,
  draw: number,
  timing: Pick<Timing, 'retryBaseMs' | 'retryCapMs'>,
): number {
  // 2 ** 30 seconds is beyond any cap; a greater exponent would only lose precision.
  const ceiling = Math.min(timing.retryCapMs, timing.retryBaseMs * 2 ** Math.min(attempt, 30));
  return Math.floor(draw * ceiling);
}
