/**
 * An obstacle course for resuming clients: they subscribe through a proxy that breaks their connections in every way,
 * while others write and servers are killed. Afterwards what each client received is held against the database's log.
 */
import { WebSocket } from 'ws';
import {
  createSlipwayClient,
  DeploymentDocument,
  DeploymentPhaseChangedDocument,
  PatchDeploymentStatusDocument,
  SlipwayRequestError,
  WatchDeploymentsDocument,
  watchObjects,
  type DeploymentPartsFragment,
  type SlipwayClient,
  type WatchedObject,
} from '../../src/client/index.js';
import type { DeploymentRow } from '../../src/store/rows.js';
import { FAULTS, startFaultProxy, type Fault } from './fault-proxy.js';
import { openStore } from './open-store.js';
import { seedDeployment, seedRuntime } from './seed.js';
import { startServerProcess, type ServerProcess } from './server.js';
import { withClient, type TestDatabase } from './test-server.js';
import { waitFor } from './wait-for.js';

export interface CourseOptions {
  readonly database: TestDatabase;
  /** Server processes on that database; clients move between them. */
  readonly servers: number;
  readonly clients: number;
  readonly rounds: number;
  /** In every so many rounds a server is killed with -9 and started again. */
  readonly killEvery: number;
  /** How long clients may take to catch up after the last write. */
  readonly settleMs?: number;
  /** For the check of the check: a subscription that resumes nothing. */
  readonly phases?: (client: SlipwayClient) => AsyncIterable<unknown>;
}

export interface CourseResult {
  /** `id@version` of every phase that was entered while the course ran, in the order of the log. */
  readonly written: readonly string[];
  /** What each subscriber of transitions received, in the order it came. */
  readonly received: readonly (readonly string[])[];
  /** `id@version` of what each watch holds at the end, and of what is in the database. */
  readonly held: readonly (readonly string[])[];
  readonly stored: readonly string[];
  /** Versions that a watch told out of order or twice. */
  readonly repeated: readonly string[];
  readonly cuts: Readonly<Record<Fault, number>>;
  readonly kills: number;
  readonly connections: number;
}

const OBJECTS = 6;
/** Small waits: the course is about order and counts, not about patience. */
const TIMING = {
  retryBaseMs: 20,
  retryCapMs: 200,
  pingMs: 250,
  pongMs: 150,
  connectMs: 1_000,
  idleMs: 1_000,
  requestMs: 2_000,
};
const SETTINGS = {
  SLIPWAY_SOCKET_PING_SECONDS: '0.2',
  SLIPWAY_SOCKET_PONG_TIMEOUT_SECONDS: '1',
  SLIPWAY_MAX_SOCKETS_LOOPBACK: '10000',
  SLIPWAY_LOG_LEVEL: 'warn',
};
const SETTLE_MS = 30_000;

export async function runResumeCourse(options: CourseOptions): Promise<CourseResult> {
  // First, since servers must be told by which name they are reached.
  const proxy = await startFaultProxy({ host: '127.0.0.1', port: 0 });
  const servers: ServerProcess[] = [];
  const start = (port = 0): Promise<ServerProcess> =>
    startServerProcess({
      databaseUrl: options.database.url,
      env: { ...SETTINGS, SLIPWAY_PORT: String(port), SLIPWAY_ALLOWED_HOSTS: `127.0.0.1:${proxy.port}` },
    });
  for (let index = 0; index < options.servers; index += 1) servers.push(await start());
  const rows = await seed(options.database);
  proxy.retarget({ host: '127.0.0.1', port: portOf(servers, 0) });
  const url = `http://127.0.0.1:${proxy.port}/graphql`;
  const runners = Array.from({ length: options.clients }, (_, index) => enter(url, index, options.phases));
  const cuts: Record<Fault, number> = { FIN: 0, RST: 0, BLACK_HOLE: 0, HALF_OPEN: 0 };
  let kills = 0;
  try {
    await Promise.all(runners.map(({ opened }) => opened));
    const writing = write(rows, () => servers.map(({ url: server }) => `${server}/graphql`));
    for (let round = 1; round <= options.rounds; round += 1) {
      const fault = FAULTS[round % FAULTS.length] ?? 'FIN';
      proxy.retarget({ host: '127.0.0.1', port: portOf(servers, round % servers.length) });
      // A third of all connections, a different one each time.
      cuts[fault] += proxy.cut(fault, () => Math.random() < 1 / 3);
      if (round % options.killEvery === 0) {
        const victim = (round / options.killEvery) % servers.length;
        kills += 1;
        await replace(servers, victim, start);
      }
      const goal = writing.count + 10;
      await waitFor(() => writing.count >= goal, 'writes between two rounds', SETTLE_MS);
    }
    await writing.stop();
    return await compare(options, runners, { cuts, kills, connections: proxy.accepted });
  } finally {
    for (const { client } of runners) client.close();
    await proxy.close();
    for (const server of servers) server.kill();
    await Promise.all(servers.map(({ exited }) => exited));
  }
}

function portOf(servers: readonly ServerProcess[], index: number): number {
  const server = servers[index];
  if (!server) throw new Error(`there is no server ${index}`);
  return server.port;
}

async function replace(
  servers: ServerProcess[],
  index: number,
  start: (port: number) => Promise<ServerProcess>,
): Promise<void> {
  const victim = servers[index];
  if (!victim) return;
  victim.kill('SIGKILL');
  await victim.exited;
  servers[index] = await start(victim.port);
}

async function seed(database: TestDatabase): Promise<readonly DeploymentRow[]> {
  const store = openStore(database, 'seed', 2);
  const runtime = await seedRuntime(store);
  const rows: DeploymentRow[] = [];
  for (let index = 0; index < OBJECTS; index += 1) {
    rows.push(await seedDeployment(store, { runtimeId: runtime.id, phase: 'RUNNING' }));
  }
  await store.close();
  return rows;
}

interface Runner {
  readonly client: SlipwayClient;
  readonly opened: Promise<void>;
  /** Of a subscriber of transitions; null for a watch. */
  readonly received: string[] | null;
  readonly objects: ReadonlyMap<string, WatchedObject> | null;
  readonly repeated: string[];
  failure: unknown;
}

/** Every second one watches, the others take every transition; every third one comes by SSE. */
function enter(url: string, index: number, phases: CourseOptions['phases']): Runner {
  const client = createSlipwayClient({
    url,
    webSocketImpl: WebSocket,
    transport: index % 3 === 2 ? 'sse' : 'websocket',
    timing: TIMING,
  });
  const repeated: string[] = [];
  if (index % 2 === 1) {
    const versions = new Map<string, number>();
    const watch = watchObjects(
      client,
      WatchDeploymentsDocument,
      {},
      {
        onChange(change) {
          if (change.type === 'synced') return;
          const { id, version } = change.object;
          if (change.type !== 'removed' && version <= (versions.get(id) ?? 0)) {
            repeated.push(nameOf(change.object));
          }
          versions.set(id, version);
        },
      },
    );
    return { client, opened: watch.ready, received: null, objects: watch.objects, repeated, failure: null };
  }
  const received: string[] = [];
  const stream = phases?.(client) ?? client.subscribe(DeploymentPhaseChangedDocument, {});
  const opened = 'opened' in stream ? (stream as { opened: Promise<void> }).opened : Promise.resolve(); // every stream of the client has it
  const runner: Runner = { client, opened, received, objects: null, repeated, failure: null };
  void (async () => {
    for await (const result of stream) {
      // The document selects these of every event.
      const { deploymentPhaseChanged: event } = result as {
        deploymentPhaseChanged: { deployment: WatchedObject };
      };
      received.push(nameOf(event.deployment));
    }
  })().catch((error: unknown) => {
    runner.failure = error;
  });
  return runner;
}

const nameOf = ({ id, version }: WatchedObject): string => `${id}@${version}`;

/** Moves each object between two phases by optimistic patches, straight to a server that answers. */
function write(
  rows: readonly DeploymentRow[],
  urls: () => readonly string[],
): { readonly count: number; stop(): Promise<void> } {
  let count = 0;
  const stopping = new AbortController();
  const loops = rows.map(async (row, index) => {
    let seen: { id: string; version: number; phase: string } = {
      id: row.id,
      version: row.version,
      phase: row.phase,
    };
    for (let turn = index; !stopping.signal.aborted; turn += 1) {
      const all = urls();
      const client = createSlipwayClient({
        url: all[turn % all.length] ?? '',
        transport: 'sse',
        timing: TIMING,
      });
      try {
        const next = await move(client, seen);
        if (next.version !== seen.version) count += 1;
        seen = next;
      } catch (error) {
        if (!(error instanceof SlipwayRequestError)) throw error;
        // That server was killed just now, and whether the patch was made is not known: look again, at whichever answers.
        seen = (await look(client, seen.id)) ?? seen;
        await new Promise((resolve) => {
          setTimeout(resolve, 20);
        });
      }
    }
  });
  return {
    get count() {
      return count;
    },
    async stop() {
      stopping.abort();
      await Promise.all(loops);
    },
  };
}

async function move(
  client: SlipwayClient,
  seen: { id: string; version: number; phase: string },
): Promise<{ id: string; version: number; phase: string }> {
  const phase = seen.phase === 'RUNNING' ? 'REFRESH_FAILED' : 'RUNNING';
  const input = { id: seen.id, expectedVersion: seen.version, phase } as const;
  const { patchDeploymentStatus: result } = await client.mutate(PatchDeploymentStatusDocument, { input });
  if (result.__typename === 'PatchDeploymentStatusPayload') return factsOf(result.deployment);
  if (result.__typename === 'DeploymentVersionConflict') return factsOf(result.current);
  throw new Error(`${result.__typename}: ${result.message}`);
}

async function look(
  client: SlipwayClient,
  id: string,
): Promise<{ id: string; version: number; phase: string } | undefined> {
  try {
    const { deployment } = await client.query(DeploymentDocument, { id });
    return deployment ? factsOf(deployment) : undefined;
  } catch {
    return undefined; // that server is not back yet
  }
}

const factsOf = ({ id, version, status }: DeploymentPartsFragment) => ({ id, version, phase: status.phase });

async function compare(
  { database, settleMs = SETTLE_MS }: CourseOptions,
  runners: readonly Runner[],
  counts: Pick<CourseResult, 'cuts' | 'kills' | 'connections'>,
): Promise<CourseResult> {
  const { written, stored } = await withClient(database.connection, async (sql) => ({
    written: (
      await sql.query<{ name: string }>(
        `select object_id || '@' || version as name from change
         where kind = 'DEPLOYMENT' and version > 1 and from_state is distinct from to_state order by seq`,
      )
    ).rows.map(({ name }) => name),
    stored: (await sql.query<{ name: string }>(`select id || '@' || version as name from deployment`)).rows
      .map(({ name }) => name)
      .sort(),
  }));
  const held = () =>
    runners.flatMap(({ objects }) => (objects ? [[...objects.values()].map(nameOf).sort()] : []));
  const received = runners.flatMap((runner) => (runner.received ? [runner.received] : []));
  const settled = () =>
    runners.every(
      ({ failure, received: got }) => failure === null && (got === null || got.length >= written.length),
    ) && held().every((names) => names.join() === stored.join());
  // What is lost stays away: then the comparison says which.
  await waitFor(settled, 'all clients have caught up', settleMs).catch(() => undefined);
  const failures = runners.flatMap(({ failure }) => (failure === null ? [] : [failure]));
  if (failures.length > 0) throw new AggregateError(failures, 'subscriptions failed');
  return {
    written,
    received,
    held: held(),
    stored,
    repeated: runners.flatMap(({ repeated }) => repeated),
    ...counts,
  };
}

/** Per object in order, each once, none missing. Gives what is wrong, at most a few of each kind. */
export function faultsIn(written: readonly string[], received: readonly string[]): readonly string[] {
  const got = new Map<string, number>();
  for (const name of received) got.set(name, (got.get(name) ?? 0) + 1);
  const lost = written.filter((name) => !got.has(name)).map((name) => `lost ${name}`);
  const repeated = [...got].filter(([, times]) => times > 1).map(([name]) => `repeated ${name}`);
  const newest = new Map<string, number>();
  const disordered = received.filter((name) => {
    const [id = '', version = '0'] = name.split('@');
    const later = Number(version) <= (newest.get(id) ?? 0);
    newest.set(id, Number(version));
    return later;
  });
  return [
    ...lost.slice(0, 3),
    ...repeated.slice(0, 3),
    ...disordered.slice(0, 3).map((name) => `out of order ${name}`),
  ];
}
