import type { Log } from '../../kernel/log.js';

/** What can be ended. Both may be called, the second while the first is at work. */
export interface Endable {
  /** Gracefully. */
  drain(): Promise<void>;
  /** At once. */
  close(): Promise<void>;
}

/**
 * SIGTERM and SIGINT, from the first moment of a start: the first one drains, a second one cuts, a third one gives up.
 * One that comes during the start waits for its end, since a PostgreSQL that is being started would be left behind.
 * The process ends here: with 0 after an orderly end, with 1 otherwise. `start` rejecting is the caller's to handle.
 */
export async function untilSignalled<Server extends Endable>(
  log: Log,
  start: () => Promise<Server>,
): Promise<{ readonly server: Server; readonly asked: boolean }> {
  const running: { server?: Server } = {};
  let signals = 0;
  const onSignal = (signal: NodeJS.Signals) => {
    signals += 1;
    const { server } = running;
    if (server === undefined) {
      if (signals > 1) process.exit(1);
      log.info({ signal }, 'Stopping when the start is complete; once more to give up at once');
      return;
    }
    if (signals > 2) process.exit(1);
    log.info({ signal }, signals === 1 ? 'Draining; once more to stop at once' : 'Stopping at once');
    exitAfter(signals === 1 ? server.drain() : server.close(), log);
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  const server = (running.server = await start());
  const asked = signals > 0;
  if (asked) exitAfter(server.close(), log);
  return { server, asked };
}

/** Timers of the server never hold the process, so this one does. */
function exitAfter(end: Promise<void>, log: Log): void {
  setInterval(() => undefined, 60_000);
  end.then(
    () => process.exit(0),
    (error: unknown) => {
      log.error({ err: error }, 'The end was not orderly');
      process.exit(1);
    },
  );
}
