/**
 * Tells the feeds of other processes that something was committed, and hears it from them. Only hints: the poll finds
 * every change without them. Nothing here runs inside a writer's transaction: a NOTIFY there would put all commits of the
 * cluster in one queue.
 */
import { randomUUID } from 'node:crypto';

import { backoffMs } from '../kernel/backoff.js';
import type { Clock } from '../kernel/clock.js';
import type { Log } from '../kernel/log.js';
import type { OpenSession, Session } from '../store/session.js';

const CHANNEL = 'slipway_change';
/** At most one NOTIFY in so long, however many commits; and a longer pause behind one that told of many. */
const NOTIFY_INTERVAL_MS = 5;
const NOTIFY_INTERVAL_MAX_MS = 20;
/** How often the listening session shows that a notification still reaches it, and how long that may take. */
export const PROOF_INTERVAL_MS = 10_000;
export const PROOF_TIMEOUT_MS = 3_000;
const RETRY_BASE_MS = 200;
const RETRY_CAP_MS = 5_000;

export interface Wakes {
  start(): void;
  stop(): void;
  /** Something was committed here. */
  notify(): void;
  /** Times that the listening session had to be opened anew. */
  readonly reconnects: number;
}

export interface WakesDeps {
  readonly openSession: OpenSession;
  readonly clock: Clock;
  readonly log: Log;
  /** Another process committed something, or may have while nobody listened. */
  readonly onWake: () => void;
}

export function createWakes(deps: WakesDeps): Wakes {
  const sender = new Sender(deps);
  const listener = new Listener(deps, () => sender.processId);
  return {
    start: () => listener.open(),
    stop() {
      listener.stop();
      sender.stop();
    },
    notify: () => sender.notify(),
    get reconnects() {
      return listener.reconnects;
    },
  };
}

class Sender {
  readonly #deps: WakesDeps;
  #session: Session | undefined;
  #sending = false;
  /** Commits that no NOTIFY has told of. */
  #untold = 0;
  #stopped = false;
  #cancel: (() => void) | undefined;

  constructor(deps: WakesDeps) {
    this.#deps = deps;
  }

  /** So that our own listener does not take our own notifications for news. */
  get processId(): number {
    return this.#session?.processId ?? 0;
  }

  /** The first at once; what comes while it is under way, or in the pause behind it, becomes one more. */
  notify(): void {
    if (this.#stopped) return;
    this.#untold += 1;
    if (this.#sending) return;
    this.#sending = true;
    void this.#send();
  }

  async #send(): Promise<void> {
    const told = this.#untold;
    this.#untold = 0;
    try {
      this.#session ??= await this.#connect();
      await this.#session.query({ text: `notify ${CHANNEL}` });
    } catch (error) {
      this.#session?.close();
      this.#session = undefined;
      if (!this.#stopped) {
        this.#deps.log.warn({ err: error }, 'Could not tell other processes of a change; they poll');
      }
    }
    if (this.#stopped) return;
    const pauseMs = Math.min(NOTIFY_INTERVAL_MS + told - 1, NOTIFY_INTERVAL_MAX_MS);
    this.#cancel = this.#deps.clock.after(pauseMs, () => {
      if (this.#untold > 0) void this.#send();
      else this.#sending = false;
    });
  }

  async #connect(): Promise<Session> {
    const session = await this.#deps.openSession('notify', PROOF_TIMEOUT_MS);
    if (this.#stopped) session.close();
    session.onEnd(() => {
      if (this.#session === session) this.#session = undefined;
    });
    return session;
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
    this.#session?.close();
  }
}

class Listener {
  readonly #deps: WakesDeps;
  readonly #ownSender: () => number;
  /** A channel that only this process listens on: what comes back on it proves the whole way. */
  readonly #proofChannel = `slipway_proof_${randomUUID().replaceAll('-', '')}`;
  #session: Session | undefined;
  #stopped = false;
  #failures = 0;
  #cancel: (() => void) | undefined;
  #proven = false;
  reconnects = 0;

  constructor(deps: WakesDeps, ownSender: () => number) {
    this.#deps = deps;
    this.#ownSender = ownSender;
  }

  open(): void {
    void this.#connect().catch((error: unknown) => this.#lost(error));
  }

  async #connect(): Promise<void> {
    const session = await this.#deps.openSession('listen', PROOF_TIMEOUT_MS);
    if (this.#stopped) return session.close();
    this.#session = session;
    session.onNotification((channel, processId) => {
      if (channel === this.#proofChannel) this.#proven = true;
      else if (processId !== this.#ownSender()) this.#deps.onWake();
    });
    session.onEnd(() => this.#lost(new Error('the listening session ended'), session));
    await session.query({ text: `listen ${CHANNEL}` });
    await session.query({ text: `listen ${this.#proofChannel}` });
    this.#deps.onWake(); // what was sent before we listened
    this.#failures = 0;
    this.#later(PROOF_INTERVAL_MS, () => this.#prove(session));
  }

  #prove(session: Session): void {
    this.#proven = false;
    session.query({ text: `notify ${this.#proofChannel}` }).catch(() => undefined); // the check below judges
    this.#later(PROOF_TIMEOUT_MS, () => {
      if (!this.#proven) return session.close(); // ends in #lost
      this.#later(PROOF_INTERVAL_MS - PROOF_TIMEOUT_MS, () => this.#prove(session));
    });
  }

  #lost(error: unknown, session?: Session): void {
    if (this.#stopped || (session && session !== this.#session)) return;
    this.#session?.close();
    this.#session = undefined;
    this.reconnects += 1;
    this.#failures += 1;
    this.#deps.log.warn(
      { err: error, attempt: this.#failures },
      'Listening for changes anew; polling meanwhile',
    );
    this.#later(backoffMs(this.#failures, RETRY_BASE_MS, RETRY_CAP_MS, Math.random), () => this.open());
  }

  #later(ms: number, run: () => void): void {
    this.#cancel?.();
    this.#cancel = this.#deps.clock.after(ms, run);
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
    this.#session?.close();
  }
}
