import type { Clock } from '../kernel/clock.js';
import type { Log } from '../kernel/log.js';
import { CLOSE, type Connections } from './connections.js';
import type { InFlight } from './in-flight.js';

/**
 * The way out on SIGTERM: not ready at once; notice for load balancers; no new connections; the open ones closed one by
 * one with a final bookmark, so that their clients do not all come to the next replica at one moment; what runs is
 * finished. Bounded: whatever is left at `finishMs` is cut.
 */
export interface DrainSettings {
  /** Between "not ready" and the first close: load balancers ask in intervals. */
  readonly noticeMs: number;
  /** Over which closes are spread. */
  readonly spreadMs: number;
  /** For what still runs after the last close. */
  readonly finishMs: number;
}

/** For requests that are still arriving when all is closed: of the time to finish, and no more of it than this. */
const ARRIVAL_MS = 1_000;

export const DEFAULT_DRAIN: DrainSettings = { noticeMs: 3_000, spreadMs: 20_000, finishMs: 5_000 };

export interface DrainDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly settings: DrainSettings;
  readonly connections: Connections;
  readonly inFlight: InFlight;
  /** No more waiting. */
  readonly hurry: AbortSignal;
  /** Stops accepting; idle keep-alive connections go at once. */
  readonly stopAccepting: () => void;
  /** Cuts whatever connection is left. */
  readonly cut: () => void;
}

export async function drainConnections(deps: DrainDeps): Promise<void> {
  const { clock, connections, hurry, inFlight, settings } = deps;
  const wait = (ms: number) =>
    new Promise<void>((resolve) => {
      if (hurry.aborted) {
        resolve();
        return;
      }
      const finish = () => {
        cancel();
        hurry.removeEventListener('abort', finish);
        resolve();
      };
      const cancel = clock.after(ms, finish);
      hurry.addEventListener('abort', finish);
    });

  const { count, arriving } = inFlight;
  deps.log.info({ connections: connections.open.size, inFlight: count, arriving }, 'draining');
  // With nobody connected there is nobody to give notice to.
  if (connections.open.size > 0 || count > 0 || arriving > 0) await wait(settings.noticeMs);
  deps.stopAccepting();

  const all = [...connections.open];
  const startMs = clock.monotonicMs();
  for (const [index, connection] of all.entries()) {
    const dueMs = (settings.spreadMs * index) / Math.max(1, all.length);
    const leftMs = dueMs - (clock.monotonicMs() - startMs);
    if (leftMs > 1) await wait(leftMs);
    connection.end(CLOSE.restart, 'Server stops: connect again');
  }
  // Those that came in during the notice or were just shaking hands.
  for (const connection of connections.open) connection.end(CLOSE.restart, 'Server stops: connect again');

  await finishWork(deps, wait);
  // Lets last answers and close frames leave: an end is no more than a promise until the kernel has it.
  await wait(Math.min(100, settings.finishMs));
  deps.cut();
}

/** First the arrivals, so that one that comes in time is waited for as the operation that it is then. */
async function finishWork(
  { clock, inFlight, log, settings }: DrainDeps,
  wait: (ms: number) => Promise<void>,
): Promise<void> {
  const fromMs = clock.monotonicMs();
  await Promise.race([inFlight.arrived(), wait(Math.min(ARRIVAL_MS, settings.finishMs))]);
  const leftMs = settings.finishMs - (clock.monotonicMs() - fromMs);
  await Promise.race([inFlight.idle(), wait(Math.max(0, leftMs))]);
  const { count, arriving } = inFlight;
  if (count > 0) log.warn({ inFlight: count }, 'drain cut operations that did not end');
  if (arriving > 0) log.info({ arriving }, 'drain cut requests that never arrived in full');
}
