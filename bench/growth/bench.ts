/**
 * How times grow with the fleet and its log: the same operations on fleets of several sizes, each with a server and a
 * database of its own, in rounds that take turns. What counts is the ratio of each size to the smallest.
 */
import type { TestDatabase } from '../../test/support/test-server.js';
import { withClient } from '../../test/support/test-server.js';
import { fleetId, seedFleet } from '../../test/support/fleet.js';
import { cursorBack } from '../../test/support/plan-asking.js';
import type { Closing } from '../support/closing.js';
import { HttpClient } from '../support/http-client.js';
import type { Options } from '../support/options.js';
import { embeddedPostgres, type Postgres } from '../support/postgres.js';
import { figure, ratio, type Report, type Table } from '../support/report.js';
import { startServer } from '../support/server.js';
import { OPERATIONS, patch, running, type Fleet } from './operations.js';
import { prune, type Pruning } from './pruning.js';
import { openSocket, refused, resume, subscribe, unsubscribe, type Messages } from './streams.js';

const CHANGES_EACH = 10;
const PAYLOADS_MAX = 1_000_000;
const STARTS = 3;
const START = 'start of a server';
const WARM_UP_SECONDS = 4;
/** Of one operation in one round: a connection may not send too many messages a second. */
const RUNS_MAX = 8;
const RESUME_CHANGES = 1_000;
/** Several changes of one deployment come as one event, and the last ones may be of the same. */
const RESUME_EVENTS = 400;

interface Seeded {
  readonly deployments: number;
  readonly changes: number;
  readonly versions: number;
  readonly database: TestDatabase;
  readonly middleCreatedAt: Date;
  readonly cursors: { readonly back: string; readonly lost: string };
}

/** One size: a database, its server, and what was measured so far, in milliseconds by operation. */
interface Size extends Seeded {
  readonly graphql: string;
  readonly fleet: Omit<Fleet, 'client'>;
  readonly socket: Messages;
  readonly times: Map<string, number[]>;
}

export async function benchGrowth(options: Options, closing: Closing): Promise<Report> {
  const postgres = await embeddedPostgres(closing, 'socket');
  const seeded: Seeded[] = [];
  for (const deployments of options.deployments) seeded.push(await seed(postgres, deployments, options));
  // Only now, since a connection that says nothing for as long as the largest fleet takes would be closed.
  const sizes: Size[] = [];
  for (const one of seeded) sizes.push(await openSize(one, closing));
  for (const size of sizes) {
    const starts = size.times.get(START) ?? [];
    // What a fresh server answers more slowly is no matter of size.
    await measure(size, WARM_UP_SECONDS, 0);
    size.times.clear();
    size.times.set(START, starts);
  }
  for (let round = 1; round <= options.rounds; round += 1) {
    for (const size of round % 2 === 0 ? sizes : [...sizes].reverse()) {
      await measure(size, options.seconds, round);
    }
  }
  const prunings: Pruning[] = [];
  for (const size of sizes) {
    let turn = 0;
    const fleet = { ...size.fleet, client: await HttpClient.open(size.graphql) };
    const once = () => patch(fleet, running(fleet, (turn += 1)));
    prunings.push(await prune(size.database, once, options.seconds));
    fleet.client.close();
  }
  return {
    name: 'growth',
    options,
    groups: [],
    tables: [timesTable(sizes), pruningTable(sizes, prunings)],
    notes: [
      'Seen by one client, one operation at a time; a patch until its event comes is over HTTP and a WebSocket.',
      `Of the changes, the newest ${PAYLOADS_MAX} at most have their payloads, the oldest tenth at least never.`,
    ],
  };
}

async function seed(postgres: Postgres, deployments: number, options: Options): Promise<Seeded> {
  const versions = Math.max(1, Math.floor(Math.min(CHANGES_EACH, options.changes / deployments)));
  const changes = deployments * versions;
  const payloads = Math.min(PAYLOADS_MAX, Math.floor(changes * 0.9));
  process.stderr.write(`Making ${deployments} deployments and ${changes} changes\n`);
  const database = await postgres.createDatabase((client) =>
    seedFleet(client, { deployments, changes, payloads, others: 2_000 }),
  );
  return withClient(database.connection, async (client) => {
    await client.query('CHECKPOINT');
    const { rows } = await client.query<{ created_at: Date }>(
      'SELECT created_at FROM deployment WHERE id = $1',
      [fleetId('dep', Math.floor(deployments / 2))],
    );
    const middleCreatedAt = rows[0]?.created_at ?? new Date(0);
    const back = await cursorBack(client, Math.min(RESUME_CHANGES, payloads - 1));
    const lost = await cursorBack(client, payloads + 1);
    return { deployments, changes, versions, database, middleCreatedAt, cursors: { back, lost } };
  });
}

async function openSize(seeded: Seeded, closing: Closing): Promise<Size> {
  const { database, deployments, middleCreatedAt, versions: seededVersion } = seeded;
  const times = new Map<string, number[]>();
  for (let start = 1; start < STARTS; start += 1) {
    const { stop, took } = await timedStart(closing, database);
    note(times, START, took);
    await stop();
  }
  const { graphql, took } = await timedStart(closing, database);
  note(times, START, took);
  const socket = await openSocket(graphql);
  closing.add(() => socket.close());
  const fleet = { deployments, middleCreatedAt, versions: new Map<string, number>(), seededVersion };
  return { ...seeded, graphql, fleet, socket, times };
}

async function timedStart(closing: Closing, database: TestDatabase) {
  const begun = performance.now();
  const server = await startServer(closing, database, {});
  return { ...server, took: performance.now() - begun };
}

function note(times: Map<string, number[]>, name: string, took: number): void {
  const known = times.get(name);
  if (known) known.push(took);
  else times.set(name, [took]);
}

/** Each operation for its share of the seconds, at least once. */
async function measure(size: Size, seconds: number, round: number): Promise<void> {
  const { socket, cursors, times } = size;
  // A new one each time: the server closes a connection that was silent while others were measured.
  const client = await HttpClient.open(size.graphql);
  const fleet = { ...size.fleet, client };
  let turn = round * 10_000;
  const share = (seconds * 1_000) / OPERATIONS.length;
  const repeat = async (name: string, run: () => Promise<number | undefined>) => {
    const end = performance.now() + share;
    let runs = 0;
    do {
      const begun = performance.now();
      const own = await run();
      note(times, name, own ?? performance.now() - begun);
      turn += 1;
      runs += 1;
    } while (performance.now() < end && runs < RUNS_MAX);
  };
  for (const { name, run } of OPERATIONS) {
    await repeat(name, async () => {
      await run(fleet, turn);
      return undefined;
    });
  }
  const live = `live-${round}`;
  subscribe(socket, live, 'subscription { deploymentPhaseChanged { deployment { id } version } }');
  await repeat('status patch until its event comes', async () => {
    const id = running(fleet, turn);
    const begun = performance.now();
    const event = socket.next((text) => text.includes(`"${id}"`), 'event of a patch');
    await patch(fleet, id);
    await event;
    return performance.now() - begun;
  });
  unsubscribe(socket, live);
  await repeat(`resume, ${RESUME_EVENTS} events from ${RESUME_CHANGES} changes ago`, () =>
    resume(socket, `resume-${turn}`, cursors.back, RESUME_EVENTS),
  );
  await repeat('resume, from before the floor: refused', () => refused(socket, `lost-${turn}`, cursors.lost));
  client.close();
}

function timesTable(sizes: readonly Size[]): Table {
  const [smallest] = sizes;
  const names = [...(smallest?.times.keys() ?? [])];
  const rows = names.map((name) => {
    const medians = sizes.map(({ times }) => median(times.get(name) ?? []));
    return [name, ...medians.map((value) => figure(value)), ratio(medians.at(-1) ?? 0, medians[0] ?? 0)];
  });
  const heads = sizes.map(({ deployments, changes }) => `${deployments} (${changes} changes)`);
  return {
    title: 'Median milliseconds by number of deployments',
    head: ['operation', ...heads, 'largest to smallest'],
    rows,
  };
}

function pruningTable(sizes: readonly Size[], prunings: readonly Pruning[]): Table {
  return {
    title: 'Old payloads pruned beside patches, one pass of the retention',
    head: [
      'deployments',
      'payloads',
      'a second',
      'patch p50 ms before',
      'meanwhile',
      'p99 ms before',
      'meanwhile',
    ],
    rows: prunings.map(({ rows, rowsPerSecond, before, meanwhile }, index) => [
      String(sizes[index]?.deployments ?? 0),
      String(rows),
      figure(rowsPerSecond),
      ...[
        quantile(before, 0.5),
        quantile(meanwhile, 0.5),
        quantile(before, 0.99),
        quantile(meanwhile, 0.99),
      ].map((value) => figure(value)),
    ]),
  };
}

const median = (values: readonly number[]): number => quantile(values, 0.5);

function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}
