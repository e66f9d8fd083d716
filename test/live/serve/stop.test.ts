import { createClient, type Client } from 'graphql-ws';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import WebSocket from 'ws';
import type { Database } from '../../../src/store/database.js';
import { ask, deploy, patchStatus } from '../../support/api.js';
import { createDatabase, withClient, type TestDatabase } from '../../support/database.js';
import { openEventStream } from '../../support/event-stream.js';
import { openStore } from '../../support/open-store.js';
import { seedDeployment } from '../../support/seed.js';
import { spawnServer, type ServerProcess } from '../../support/server.js';
import { waitFor } from '../../support/wait-for.js';
import { logLines, probe, served } from './served.js';

const WATCH = `subscription {
  watchDeployments { __typename ... on StreamEvent { cursor } ... on DeploymentAdded { deployment { name } } }
}`;
const PHASES = 'subscription { deploymentPhaseChanged { cursor } }';
/** From the signal to the end of the process, with the short drain of these tests. A bound against hanging, no figure. */
const END_MS = 5_000;

interface Socket {
  readonly client: Client;
  /** Of each watch that it opened. */
  readonly events: { readonly __typename: string; readonly cursor: string }[];
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
}

function openSocket(server: ServerProcess): Socket {
  let tell: (event: { code: number; reason: string }) => void;
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    tell = resolve;
  });
  const client = createClient({
    url: `${server.url.replace('http', 'ws')}/graphql`,
    webSocketImpl: WebSocket,
    retryAttempts: 0,
    lazy: false,
    onNonLazyError: () => undefined, // the end of the connection, which is what is looked at
    on: { closed: (event) => tell(event as { code: number; reason: string }) }, // the close event of `ws`
  });
  onTestFinished(() => void client.dispose());
  const events: Socket['events'] = [];
  const ignore = () => undefined;
  client.subscribe<{ watchDeployments: Socket['events'][number] }>(
    { query: WATCH },
    {
      next: ({ data }) => data && events.push(data.watchDeployments),
      error: ignore,
      complete: ignore,
    },
  );
  client.subscribe({ query: PHASES }, { next: ignore, error: ignore, complete: ignore });
  return { client, events, closed };
}

async function endOf(
  server: ServerProcess,
  signal: NodeJS.Signals,
): Promise<{ code: number | null; ms: number }> {
  const from = performance.now();
  server.kill(signal);
  const { code } = await server.exited;
  return { code, ms: performance.now() - from };
}

describe('a server that is told to stop', () => {
  let database: TestDatabase;
  let store: Database;
  beforeAll(async () => {
    database = await createDatabase();
    store = openStore(database);
    await seedDeployment(store, { name: 'shop' });
  });
  afterAll(async () => {
    await store.close();
    await database.drop();
  });

  it('ends at once when nobody is connected', async () => {
    const server = await served({
      databaseUrl: database.url,
      // What would be waited for if somebody were.
      env: { SLIPWAY_DRAIN_NOTICE_SECONDS: '60', SLIPWAY_DRAIN_SPREAD_SECONDS: '60' },
    });
    const { code, ms } = await endOf(server, 'SIGTERM');
    expect(code).toBe(0);
    expect(ms).toBeLessThan(END_MS);
    expect(logLines(server).at(-1)).toMatchObject({ level: 30, msg: 'Stopped' });
  });

  it('ends at once when the last client has only kept its connection open', async () => {
    const server = await served({
      databaseUrl: database.url,
      env: { SLIPWAY_DRAIN_NOTICE_SECONDS: '60', SLIPWAY_DRAIN_SPREAD_SECONDS: '60' },
    });
    await ask(server.url, '{ head }'); // `fetch` keeps it
    expect(await endOf(server, 'SIGTERM')).toMatchObject({ code: 0 });
  });

  it('tells every stream where it stands and to come back, and ends with 0', async () => {
    const server = await served({
      databaseUrl: database.url,
      env: { SLIPWAY_DRAIN_NOTICE_SECONDS: '0.5', SLIPWAY_DRAIN_SPREAD_SECONDS: '0.3' },
    });
    const sockets = [openSocket(server), openSocket(server), openSocket(server)];
    const streams = await Promise.all(
      [1, 2].map(() => openEventStream(`${server.url}/graphql`, { query: WATCH })),
    );
    for (const socket of sockets) {
      await waitFor(
        () => socket.events.some((event) => event.__typename === 'SnapshotEnd'),
        'the snapshot came',
      );
    }
    for (const stream of streams) {
      expect(await stream.next()).toMatchObject({
        data: { data: { watchDeployments: { deployment: { name: 'shop' } } } },
      });
      expect(await stream.next()).toMatchObject({
        data: { data: { watchDeployments: { __typename: 'SnapshotEnd' } } },
      });
    }

    const ended = endOf(server, 'SIGTERM');
    await waitFor(
      async () => (await probe(server, '/readyz')) === '503 not ready: draining',
      'it is not ready',
    );
    for (const socket of sockets) {
      expect(await socket.closed).toMatchObject({ code: 1012, reason: 'Server stops: connect again' });
      expect(socket.events.at(-1)).toEqual({ __typename: 'Bookmark', cursor: expect.any(String) });
    }
    for (const stream of streams) {
      const last = await stream.next();
      expect(last).toMatchObject({
        event: 'next',
        data: { data: { watchDeployments: { __typename: 'Bookmark' } } },
      });
      expect(last?.id).toEqual(expect.any(String));
      // No `complete`: a browser comes back by itself, to where it was.
      expect(await stream.next()).toBeUndefined();
    }
    const { code, ms } = await ended;
    expect(code).toBe(0);
    expect(ms).toBeLessThan(END_MS);
  });

  it('finishes what it began: a mutation in flight is carried out and answered', async () => {
    const server = await served({ databaseUrl: database.url });
    const { id, version } = await deploy(server.url);
    await withClient(database.connection, async (holder) => {
      await holder.query('begin');
      await holder.query('select from deployment where id = $1 for update', [id]);
      const answer = patchStatus(server.url, { id, expectedVersion: version, phase: 'INITIAL_SETUP' });
      await waitFor(async () => {
        const { rowCount } = await store.pool.query(
          `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
        );
        return rowCount !== 0;
      }, 'the mutation waits for the row');
      const ended = endOf(server, 'SIGTERM');
      await waitFor(() => logLines(server).some(({ msg }) => msg === 'draining'), 'it drains');
      await holder.query('commit');
      expect(await answer).toMatchObject({
        deployment: { version: version + 1, status: { phase: 'INITIAL_SETUP' } },
      });
      expect(await ended).toMatchObject({ code: 0 });
    });
  });

  it('ends although a client does not answer its close', async () => {
    const server = await served({ databaseUrl: database.url });
    const socket = new WebSocket(`${server.url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
    onTestFinished(() => socket.terminate());
    await new Promise((resolve) => {
      socket.once('message', resolve);
      socket.once('open', () => socket.send(JSON.stringify({ type: 'connection_init' })));
    });
    socket.pause();
    const { code, ms } = await endOf(server, 'SIGTERM');
    expect(code).toBe(0);
    expect(ms).toBeLessThan(END_MS);
  });

  it('stops at once at the second signal', async () => {
    const server = await served({
      databaseUrl: database.url,
      env: { SLIPWAY_DRAIN_NOTICE_SECONDS: '60', SLIPWAY_DRAIN_SPREAD_SECONDS: '60' },
    });
    const socket = openSocket(server);
    await waitFor(
      () => socket.events.some((event) => event.__typename === 'SnapshotEnd'),
      'the snapshot came',
    );
    server.kill('SIGTERM');
    await waitFor(() => logLines(server).some(({ signal }) => signal === 'SIGTERM'), 'it drains');
    const { code, ms } = await endOf(server, 'SIGTERM');
    expect(code).toBe(0);
    expect(ms).toBeLessThan(END_MS);
    expect(await socket.closed).toMatchObject({ code: 1012 });
  });

  it('completes its start before it stops, when it is told in the middle', async () => {
    const { child, exited, output } = spawnServer({ databaseUrl: database.url });
    onTestFinished(() => void child.kill('SIGKILL'));
    await waitFor(async () => {
      const { rowCount } = await store.pool.query(
        `select 1 from pg_stat_activity where application_name = 'slipway' and datname = current_database()`,
      );
      return rowCount !== 0;
    }, 'it has reached the database');
    child.kill('SIGTERM');
    const { code, signal } = await exited;
    expect({ code, signal, stdout: output.stdout }).toEqual({ code: 0, signal: null, stdout: '' });
  });
});
