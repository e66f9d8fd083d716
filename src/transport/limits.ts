import { COST_MAX } from '../graph/cost.js';

/**
 * Every bound of the transports, with its default. What happens at a bound stands with the code that holds it; no
 * error text tells its value, so that a stranger cannot measure how far to go.
 */

const KIB = 1024;

export interface TransportLimits {
  /** Bytes of one request body, one URL, or one WebSocket message. HTTP: 413; WebSocket: close 1009. */
  readonly payloadBytes: number;
  /** Lexical tokens of one document. */
  readonly documentTokens: number;
  /** Nested fields, introspection not counted (graphql-js bounds that itself). */
  readonly documentDepth: number;
  readonly documentAliases: number;
  readonly documentDirectives: number;
  /** How often one selection set may name the same result key. */
  readonly fieldRepeats: number;
  /** What `operationCost` of the graph counts. */
  readonly operationCost: number;
  /** Milliseconds one execution may take. The work behind it is bounded by the database's own timeouts. */
  readonly executionMs: number;
  /** Parsed and validated documents kept, and their total text. */
  readonly cachedDocuments: number;
  readonly cachedDocumentBytes: number;

  readonly subscriptionsPerSocket: number;
  /** Open sockets and event streams of one principal; the next one is refused (4442, or RATE_LIMITED). */
  readonly socketsPerPrincipal: number;
  /** The same for the local actor of a server without tokens. */
  readonly socketsLoopback: number;
  /** Open operations of all sockets and event streams; a new socket is closed with 1013 then. */
  readonly subscriptionsPerProcess: number;
  /** Open TCP connections of all kinds; the kernel's backlog holds the rest. */
  readonly connections: number;
  /** Messages of one socket; above, it is closed with 4442. */
  readonly messagesPerSecond: number;
  readonly messagesBurst: number;

  readonly initTimeoutMs: number;
  readonly pingEveryMs: number;
  readonly pongWithinMs: number;
  /** A connection is ended with 1012 at this age ± 10 %, so that load spreads over replicas. */
  readonly connectionAgeMs: number;
  /** Unsent bytes of a connection above which its streams pause, and below which they go on. */
  readonly pauseAboveBytes: number;
  readonly resumeBelowBytes: number;
  /** A connection with more unsent bytes than this for `stalledMs`, or that drains nothing for as long, is ended. */
  readonly stalledBytes: number;
  readonly stalledMs: number;
}

export const DEFAULT_LIMITS: TransportLimits = {
  payloadBytes: 64 * KIB,
  documentTokens: 2_000,
  documentDepth: 12,
  documentAliases: 30,
  documentDirectives: 20,
  fieldRepeats: 10,
  operationCost: COST_MAX,
  executionMs: 30_000,
  cachedDocuments: 1_000,
  cachedDocumentBytes: 8 * KIB * KIB,

  subscriptionsPerSocket: 100,
  socketsPerPrincipal: 10,
  socketsLoopback: 100,
  subscriptionsPerProcess: 20_000,
  connections: 25_000,
  messagesPerSecond: 20,
  messagesBurst: 50,

  initTimeoutMs: 3_000,
  pingEveryMs: 10_000,
  pongWithinMs: 5_000,
  connectionAgeMs: 60 * 60_000,
  pauseAboveBytes: 512 * KIB,
  resumeBelowBytes: 64 * KIB,
  stalledBytes: 2 * KIB * KIB,
  stalledMs: 15_000,
};

/** One adjacent limit that holds for a node whatever the settings: repeated directives on one field. */
export const DIRECTIVES_PER_NODE_MAX = 5;
/** Errors listed for one invalid document. */
export const VALIDATION_ERRORS_MAX = 20;

/** Refills `perSecond` tokens a second up to `burst`. Pure but for its own count; the caller says what time it is. */
export class TokenBucket {
  readonly #perMs: number;
  readonly #burst: number;
  #tokens: number;
  #atMs: number;

  constructor(perSecond: number, burst: number, nowMs: number) {
    this.#perMs = perSecond / 1_000;
    this.#burst = burst;
    this.#tokens = burst;
    this.#atMs = nowMs;
  }

  /** False when there is none left. */
  take(nowMs: number): boolean {
    this.#tokens = Math.min(this.#burst, this.#tokens + Math.max(0, nowMs - this.#atMs) * this.#perMs);
    this.#atMs = nowMs;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}

/** Counts what is open per key; keys without any are forgotten. */
export class Tally {
  readonly #counts = new Map<string, number>();

  /** Takes one unless `max` are out already. */
  take(key: string, max: number): boolean {
    const count = this.#counts.get(key) ?? 0;
    if (count >= max) return false;
    this.#counts.set(key, count + 1);
    return true;
  }

  giveBack(key: string): void {
    const count = this.#counts.get(key) ?? 0;
    if (count <= 1) this.#counts.delete(key);
    else this.#counts.set(key, count - 1);
  }

  get keys(): number {
    return this.#counts.size;
  }
}
