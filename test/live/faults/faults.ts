/**
 * What is done to a fleet: each fault strikes and is over when its promise resolves. What breaks for a moment stays
 * broken for about `MOMENT_MS`; afterwards everything is as it was.
 */
import type { Failpoint } from '../../../src/kernel/failpoints.js';
import { xminOf } from '../../../src/kernel/snapshot.js';
import { createRetention } from '../../../src/changes/retention.js';
import type { Fault as Cut } from '../../support/fault-proxy.js';
import { openStore } from '../../support/open-store.js';
import { parseCursor } from './log-index.js';
import { wait, type Run } from './run.js';
import type { Order, Server } from './server-process.js';

const MOMENT_MS = 300;
const HIT_MS = 60_000;

type Strike = (run: Run, server: Server) => Promise<void>;

/** The point must be reached while writers write and readers read; a fault that strikes nothing is none. */
async function hit(run: Run, server: Server, point: Failpoint, order: Order): Promise<void> {
  const goal = (server.hits.get(point) ?? 0) + 1;
  await server.arm(point, order);
  await run.until(() => (server.hits.get(point) ?? 0) >= goal, `${server.name} reaches ${point}`, HIT_MS);
}

const killAt =
  (point: Failpoint, skip = 0): Strike =>
  async (run, server) => {
    await hit(run, server, point, { action: 'KILL', skip });
    await run.until(() => !server.running, `${server.name} is gone`);
    await server.start();
  };

const hold =
  (point: Failpoint, times = 4): Strike =>
  (run, server) =>
    hit(run, server, point, { action: 'STALL', ms: MOMENT_MS, times });

const fail =
  (point: Failpoint, times = 4): Strike =>
  (run, server) =>
    hit(run, server, point, { action: 'THROW', times });

const cut =
  (fault: Cut): Strike =>
  async (run, server) => {
    server.api.cut(fault, () => run.random.next() < 0.5);
    await wait(1);
  };

const terminate = (run: Run, which: string): Promise<unknown> =>
  run.fleet.sql(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and ${which}`,
  );

/** A session is opened anew because the one before was ended. */
const reopened =
  (name: 'feed' | 'listen', point: Failpoint, order: Order): Strike =>
  async (run, server) => {
    const goal = (server.hits.get(point) ?? 0) + 1;
    await server.arm(point, order);
    await terminate(run, `application_name = 'slipway ${name}'`);
    await run.until(() => (server.hits.get(point) ?? 0) >= goal, `${server.name} reaches ${point}`, HIT_MS);
  };

const STRIKES = {
  'killed before a commit': killAt('commit.before'),
  'killed after a commit': killAt('commit.after'),
  'killed before a write': killAt('write.before', 3),
  'killed after a write': killAt('write.after', 3),
  'commits held': hold('commit.before'),
  'writes held': hold('write.before'),
  'answers lost': fail('write.after'),
  'commits refused': fail('commit.before'),
  'own wakes lost': fail('wake.own', 20),
  'notifications lost': fail('notify.send', 10),
  'feed steps delayed': hold('feed.step'),
  'feed steps failed': fail('feed.step', 2),
  'feed session refused': reopened('feed', 'feed.open', { action: 'THROW', times: 2 }),
  'LISTEN cut': reopened('listen', 'listen.open', { action: 'THROW', times: 1 }),
  async 'snapshot reads delayed'(run, server) {
    const goal = (server.hits.get('snapshot.read') ?? 0) + 1;
    await server.arm('snapshot.read', { action: 'STALL', ms: MOMENT_MS, times: 4 });
    run.open('LATEST', { door: () => server });
    await run.until(
      () => (server.hits.get('snapshot.read') ?? 0) >= goal,
      'a snapshot is read slowly',
      HIT_MS,
    );
  },
  async 'replays delayed'(run, server) {
    const after = await run.fleet.head();
    await server.signal('SIGKILL');
    await wait(MOMENT_MS);
    // Its ring is empty now: who comes with an older cursor has to be told from the log.
    await server.start();
    const goal = (server.hits.get('replay.read') ?? 0) + 1;
    await server.arm('replay.read', { action: 'STALL', ms: MOMENT_MS, times: 4 });
    run.open('EVERY', { after, door: () => server });
    await run.until(() => (server.hits.get('replay.read') ?? 0) >= goal, 'a replay is read slowly', HIT_MS);
  },
  'server killed': async (_run, server) => {
    await server.signal('SIGKILL');
    await server.start();
  },
  async 'server stopped and woken'(_run, server) {
    await server.signal('SIGSTOP');
    await wait(MOMENT_MS * 4);
    await server.signal('SIGCONT');
  },
  async drained(_run, server) {
    await server.signal('SIGTERM');
    await server.start();
  },
  async 'sessions of the pool ended'(run, server) {
    // While transactions hold some of them, between two statements.
    await hit(run, server, 'commit.before', { action: 'STALL', ms: MOMENT_MS, times: 4 });
    await terminate(run, "application_name in ('slipway', 'slipway-read')");
    await wait(MOMENT_MS);
  },
  'database stopped at once': (run) => run.fleet.postgres.crash('SIGQUIT'),
  'database killed': (run) => run.fleet.postgres.crash('SIGKILL'),
  async 'way to the database cut'(run, server) {
    server.sql.cut('RST', () => run.random.next() < 0.5);
    await wait(MOMENT_MS);
  },
  async 'slow sockets'(run, server) {
    server.api.shape({ bytesPerSecond: 4_000, delayMs: 20 }, () => run.random.next() < 0.5);
    await wait(MOMENT_MS * 3);
    server.api.shape({});
  },
  async 'clock jumps'(run, server) {
    await server.jump((run.random.next() < 0.5 ? -1 : 1) * 600_000);
    await wait(MOMENT_MS);
  },
  async 'reset inside a frame'(run, server) {
    server.api.cutAfter(1 + run.random.below(600), 'RST', () => run.random.next() < 0.5);
    await wait(MOMENT_MS);
  },
  'connections ended': cut('FIN'),
  'connections reset': cut('RST'),
  'connections black-holed': cut('BLACK_HOLE'),
  'connections half open': cut('HALF_OPEN'),
  'log pruned': (run) => prune(run),
  async 'dates at the end of time'(run) {
    // What the database takes, every reader of the log must be able to read.
    for (const date of [
      '9999-12-31 23:59:59.999+00',
      '0001-01-01 00:00:00+00',
      '9999-12-31 23:00:00-05',
      'infinity',
    ]) {
      await run.fleet
        .sql(
          `update deployment set deletion_requested_at = $2::timestamptz, version = version + 1, changed_by = 'system:test',
             change_message = null, change_token = gen_random_uuid()::text where id = $1`,
          [run.random.pick(run.fleet.objects), date],
        )
        .catch(() => undefined); // refused, as it may be
    }
  },
} as const satisfies Record<string, Strike>;

export type FaultName = keyof typeof STRIKES;
export const FAULT_NAMES = Object.keys(STRIKES) as readonly FaultName[];

export async function strike(
  run: Run,
  name: FaultName,
  server: Server = run.fleet.any(run.random),
): Promise<void> {
  run.fault(name, server.name);
  await STRIKES[name](run, server);
}

/** Everything that no reader can need any more is made old and taken away. */
async function prune(run: Run): Promise<void> {
  const places = run.clients.flatMap(({ cursor }) => (cursor === null ? [] : [parseCursor(cursor)]));
  const lowest = places
    .map((place) => xminOf(place.form === 'within' ? place.from : place.at))
    .reduce((least, xmin) => (xmin < least ? xmin : least), places[0]?.at.xmax ?? 0n);
  await run.fleet.sql(
    `update change set at = at - interval '9 days' where xid < $1::xid8 and at > now() - interval '1 day'`,
    [String(lowest)],
  );
  const store = openStore(run.fleet.database, 'retention', 2);
  try {
    await createRetention({ database: store }).run();
  } finally {
    await store.close();
  }
}
