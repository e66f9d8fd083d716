import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import {
  createSlipwayClient,
  DeleteDeploymentDocument,
  DeploymentsDocument,
  paginate,
  waitForDeployment,
  WatchDeploymentsDocument,
  watchObjects,
  type DeploymentPartsFragment,
  type SlipwayClient,
} from '../../../src/client/index.js';
import type { Slipway } from '../../../src/main.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { bringUp, makeDeployment, patch } from '../../support/rig.js';
import { startTestServer } from '../../support/server.js';
import { waitFor } from '../../support/wait-for.js';

let database: TestDatabase;
let server: Slipway;
const clients: SlipwayClient[] = [];

beforeAll(async () => {
  database = await createDatabase();
  server = await startTestServer({ databaseUrl: database.url });
});
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
});
afterAll(async () => {
  await server.close();
  await database.drop();
});

function connect(transport: 'websocket' | 'sse' = 'websocket'): SlipwayClient {
  const client = createSlipwayClient({ url: `${server.url}/graphql`, transport, webSocketImpl: WebSocket });
  clients.push(client);
  return client;
}

describe.each(['websocket', 'sse'] as const)('watchObjects over %s', (transport) => {
  it('begins with a snapshot and follows what enters, changes and leaves the filter', async () => {
    const client = connect(transport);
    const there = await makeDeployment(client, `watched-${transport}-a`);
    const changes: string[] = [];
    const filter = {
      name: { startsWith: `watched-${transport}` },
      phase: { in: ['PENDING', 'INITIAL_SETUP'] as const },
    };
    const watch = watchObjects(
      client,
      WatchDeploymentsDocument,
      { filter },
      {
        onChange: (change) =>
          changes.push(
            change.type === 'synced'
              ? 'synced'
              : `${change.type} ${change.object.name} ${change.object.status.phase}`,
          ),
      },
    );
    await watch.ready;
    expect([...watch.objects.values()].map(({ id }) => id)).toEqual([there.id]);
    const next = await makeDeployment(client, `watched-${transport}-b`);
    const moved = await patch(client, there, { phase: 'INITIAL_SETUP' });
    await patch(client, moved, { phase: 'PROVISIONING' });
    await client.mutate(DeleteDeploymentDocument, { input: { id: next.id, mode: 'FORGET' } });
    await waitFor(() => watch.objects.size === 0, 'both to leave');
    expect(changes).toEqual([
      `added watched-${transport}-a PENDING`,
      'synced',
      `added watched-${transport}-b PENDING`,
      `changed watched-${transport}-a INITIAL_SETUP`,
      `removed watched-${transport}-a INITIAL_SETUP`,
      `removed watched-${transport}-b PENDING`,
    ]);
    expect(watch.cursor).not.toBeNull();
    watch.close();
    await watch.closed;
  });

  it('goes on from a stored cursor with the objects that were stored beside it', async () => {
    const client = connect(transport);
    const filter = { name: { startsWith: `stored-${transport}` } };
    const kept = await makeDeployment(client, `stored-${transport}-kept`);
    const first = watchObjects(client, WatchDeploymentsDocument, { filter });
    await first.ready;
    const stored = { objects: [...first.objects.values()], cursor: first.cursor };
    first.close();
    await patch(client, kept, { phase: 'INITIAL_SETUP' });
    const seen: string[] = [];
    const second = watchObjects(
      client,
      WatchDeploymentsDocument,
      { filter, after: stored.cursor },
      {
        initial: stored.objects,
        onChange: (change) => seen.push(change.type),
      },
    );
    await second.ready;
    await waitFor(() => second.objects.get(kept.id)?.version === 2, 'the change made meanwhile');
    expect(seen).toEqual(['changed']);
  });
});

describe('a list, then a watch', () => {
  it('misses nothing that happened between the first page and the watch', async () => {
    const client = connect();
    const filter = { name: { startsWith: 'paged' } };
    const made: DeploymentPartsFragment[] = [];
    for (const letter of ['a', 'b', 'c']) made.push(await makeDeployment(client, `paged-${letter}`));
    const list = paginate((after) =>
      client.query(DeploymentsDocument, { filter, first: 1, after }).then(({ deployments }) => deployments),
    );
    const objects = [];
    for await (const deployment of list) {
      // While later pages are read, what is on earlier ones moves on.
      if (objects.push(deployment) === 1) await patch(client, deployment, { phase: 'INITIAL_SETUP' });
    }
    expect(objects.map(({ id, version }) => `${id}@${version}`)).toEqual(made.map(({ id }) => `${id}@1`));
    const watch = watchObjects(
      client,
      WatchDeploymentsDocument,
      { filter, after: list.asOf },
      { initial: objects },
    );
    await waitFor(() => watch.objects.get(made[0]?.id ?? '')?.version === 2, 'the change');
    expect(watch.objects.size).toBe(3);
  });
});

describe('waitForDeployment', () => {
  const timeoutMs = 20_000;

  it('resolves once the newest specification runs, and tells what happens on the way', async () => {
    const client = connect();
    const pending = await makeDeployment(client, 'awaited');
    const phases: string[] = [];
    const waited = waitForDeployment(
      client,
      { name: 'awaited' },
      { timeoutMs, onProgress: ({ status }) => phases.push(status.phase) },
    );
    await waitFor(() => phases.length > 0, 'the wait to begin');
    await bringUp(client, pending);
    expect(await waited).toMatchObject({ id: pending.id, status: { phase: 'RUNNING' } });
    expect([phases[0], phases.at(-1)]).toEqual(['PENDING', 'RUNNING']);
  });

  it('rejects as soon as it failed, with the error', async () => {
    const client = connect();
    const pending = await makeDeployment(client, 'failing');
    const waited = waitForDeployment(client, { id: pending.id }, { timeoutMs });
    const error = { code: 'ImageMissing', message: 'There is no such image', retryable: false };
    await patch(client, pending, { phase: 'PREFLIGHTS_FAILED', error });
    await expect(waited).rejects.toMatchObject({
      name: 'SlipwayWaitError',
      code: 'FAILED',
      deployment: { status: { error } },
    });
  });

  it('tells deleted from deleted on the way to running', async () => {
    const client = connect();
    const { id } = await makeDeployment(client, 'forgotten');
    const running = waitForDeployment(client, { id }, { timeoutMs });
    const gone = expect(running).rejects.toMatchObject({ code: 'GONE' });
    await client.mutate(DeleteDeploymentDocument, { input: { id, mode: 'FORGET' } });
    await gone;
    await expect(waitForDeployment(client, { id }, { goal: 'DELETED', timeoutMs })).resolves.not.toThrow();
  });

  it('rejects when somebody sent it elsewhere', async () => {
    const client = connect();
    const { id } = await makeDeployment(client, 'diverted');
    const waited = waitForDeployment(client, { id }, { timeoutMs });
    const diverted = expect(waited).rejects.toMatchObject({ code: 'ELSEWHERE' });
    await client.mutate(DeleteDeploymentDocument, { input: { id } });
    await diverted;
  });

  it('gives up in time, by its signal, and at once where there is nothing', async () => {
    const client = connect();
    const { id } = await makeDeployment(client, 'stuck');
    await expect(waitForDeployment(client, { id }, { timeoutMs: 300 })).rejects.toMatchObject({
      code: 'TIMEOUT',
      deployment: { id },
    });
    const controller = new AbortController();
    const waited = waitForDeployment(
      client,
      { id },
      { timeoutMs, signal: controller.signal, onProgress: () => controller.abort() },
    );
    await expect(waited).rejects.toMatchObject({ code: 'ABORTED' });
    await expect(waitForDeployment(client, { name: 'nothing' }, { timeoutMs })).rejects.toMatchObject({
      code: 'GONE',
    });
  });
});
