import type { Actor } from '../access/actor.js';
import type { ActorState } from '../access/authenticator.js';
import type { Clock } from '../kernel/clock.js';
import { Tally, type TransportLimits } from './limits.js';
import type { Verdict } from './liveness.js';
import type { TransportMetrics } from './metrics.js';
import type { Outlet } from './outlet.js';

/**
 * All sockets and event streams of the process: how many each principal may hold, and one sweep over all of them that
 * ends what does not live, is too old, or came in on credentials that no longer hold. One timer, whatever their number.
 */
export const CLOSE = {
  /** The server stops, or the connection is old: come back, another one answers. */
  restart: 1012,
  /** Full: come back later. */
  overload: 1013,
  /** Never allowed, or revoked: final. */
  denied: 4401,
  /** Expired, or other rights than at the start: come back with fresh ones. */
  expired: 4440,
  slow: 4441,
  limit: 4442,
  /** Our bug. */
  internal: 4500,
} as const;
export type CloseCode = (typeof CLOSE)[keyof typeof CLOSE];

export interface SweptConnection {
  readonly actor: Actor | undefined;
  readonly outlet: Pick<Outlet, 'unsentBytes'>;
  judge(nowMs: number): Verdict;
  ping(): void;
  end(code: CloseCode, reason: string): void;
}

export interface Connections {
  /** False when the principal holds as many as it may. */
  admit(actor: Actor): boolean;
  dismiss(actor: Actor): void;
  add(connection: SweptConnection): void;
  remove(connection: SweptConnection, code: number): void;
  /** Milliseconds that count only while this process ran: what a stopped process missed is not held against its peers. */
  readonly nowMs: number;
  readonly open: ReadonlySet<SweptConnection>;
  readonly principals: number;
  /** Of all connections together: what slow readers make us hold. */
  readonly unsentBytes: number;
  stop(): void;
}

export interface ConnectionsDeps {
  readonly clock: Clock;
  readonly limits: TransportLimits;
  readonly metrics: TransportMetrics;
  readonly actorState: (actor: Actor) => ActorState;
}

const OWN_CODES: ReadonlySet<number> = new Set([
  1000,
  1001,
  1005,
  1006,
  1009,
  4400,
  4401,
  4403,
  4406,
  4408,
  4409,
  4429,
  ...Object.values(CLOSE),
]);

export function createConnections(deps: ConnectionsDeps): Connections {
  const { clock, limits } = deps;
  const open = new Set<SweptConnection>();
  const perPrincipal = new Tally();
  const sweepEveryMs = Math.min(1_000, Math.max(10, Math.min(limits.pingEveryMs, limits.pongWithinMs) / 5));
  let nowMs = 0;
  let lastMs = clock.monotonicMs();
  let cancel = () => {};

  const sweep = () => {
    const realMs = clock.monotonicMs();
    // A late sweep means that this process stood still: answers may wait unread in the kernel.
    nowMs += Math.min(realMs - lastMs, 2 * sweepEveryMs);
    lastMs = realMs;
    for (const connection of open) sweepOne(connection, nowMs, deps.actorState);
    cancel = clock.after(sweepEveryMs, sweep);
  };
  cancel = clock.after(sweepEveryMs, sweep);

  return {
    admit: (actor) =>
      perPrincipal.take(
        actor.id,
        actor.tokenId === null ? limits.socketsLoopback : limits.socketsPerPrincipal,
      ),
    dismiss: (actor) => perPrincipal.giveBack(actor.id),
    add: (connection) => void open.add(connection),
    remove(connection, code) {
      if (open.delete(connection)) {
        deps.metrics.closes.inc({ code: OWN_CODES.has(code) ? String(code) : 'other' });
      }
    },
    get nowMs() {
      return nowMs;
    },
    open,
    get principals() {
      return perPrincipal.keys;
    },
    get unsentBytes() {
      let bytes = 0;
      for (const { outlet } of open) bytes += outlet.unsentBytes;
      return bytes;
    },
    stop: () => cancel(),
  };
}

function sweepOne(
  connection: SweptConnection,
  nowMs: number,
  actorState: (actor: Actor) => ActorState,
): void {
  const state = connection.actor ? actorState(connection.actor) : 'valid';
  if (state !== 'valid') {
    const [code, reason] = closeOf(state);
    connection.end(code, reason);
    return;
  }
  switch (connection.judge(nowMs)) {
    case 'fine':
      return;
    case 'ping':
      connection.ping();
      return;
    case 'silent':
      connection.end(CLOSE.slow, 'No answer to a ping');
      return;
    case 'stalled':
      connection.end(CLOSE.slow, 'Too slow to read');
      return;
    case 'aged':
      connection.end(CLOSE.restart, 'Connection age: connect again');
  }
}

/** Clients read this text: what they hold was chosen by other rights, so a cursor alone does not carry them on. */
export const ACCESS_CHANGED = 'access changed';

/** What credentials that no longer hold do to their connection. */
export function closeOf(state: Exclude<ActorState, 'valid'>): readonly [CloseCode, string] {
  switch (state) {
    case 'expired':
      return [CLOSE.expired, 'Credentials expired'];
    case 'changed':
      return [CLOSE.expired, ACCESS_CHANGED];
    case 'revoked':
      return [CLOSE.denied, 'Credentials revoked'];
  }
}
