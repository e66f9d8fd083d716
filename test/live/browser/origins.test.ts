import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createSlipwayClient,
  type DeploymentPartsFragment,
  type SlipwayClient,
} from '../../../src/client/index.js';
import { launchChromium } from '../../support/chromium.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { bringUp, makeDeployment, patch } from '../../support/rig.js';
import { startServerProcess, type ServerProcess } from '../../support/server.js';
import { waitFor } from '../../support/wait-for.js';
import { startSite, type Site } from '../../support/web-page.js';

/** What the bundle puts into a page, as far as these tests call it. */
declare global {
  var slipway: typeof import('../../../src/client/index.js');
  var told: string[];
  var conditions: string[];
}

let database: TestDatabase;
let server: ServerProcess;
let friend: Site;
let stranger: Site;
let browser: Browser;
let client: SlipwayClient;
let endpoint: string;

const environment = (port: number) => ({
  SLIPWAY_ALLOWED_ORIGINS: friend.origin,
  SLIPWAY_PORT: String(port),
});

beforeAll(async () => {
  [friend, stranger, database, browser] = await Promise.all([
    startSite(),
    startSite(),
    createDatabase(),
    launchChromium(),
  ]);
  server = await startServerProcess({ databaseUrl: database.url, env: environment(0) });
  endpoint = `${server.url}/graphql`;
  client = createSlipwayClient({ url: endpoint, transport: 'sse' });
});

afterAll(async () => {
  client.close();
  server.kill();
  await Promise.all([browser.close(), friend.close(), stranger.close(), server.exited]);
  await database.drop();
});

async function openPage({ origin }: Site): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(origin);
  return page;
}

/** Subscribes in the page and keeps what comes in `told`. */
function subscribeIn(page: Page, transport: 'websocket' | 'sse'): Promise<void> {
  return page.evaluate(
    async ([url, chosen]) => {
      globalThis.told = [];
      globalThis.conditions = [];
      const { createSlipwayClient: create, DeploymentPhaseChangedDocument } = globalThis.slipway;
      const inPage = create({
        url,
        transport: chosen,
        timing: { retryBaseMs: 50, retryCapMs: 200 },
        onStatus: ({ condition }) => globalThis.conditions.push(condition),
      });
      const stream = inPage.subscribe(DeploymentPhaseChangedDocument, {});
      void (async () => {
        for await (const { deploymentPhaseChanged: event } of stream) {
          globalThis.told.push(`${event.to}@${event.version}`);
        }
      })();
      await stream.opened;
    },
    [endpoint, transport] as const,
  );
}

const toldIn = (page: Page): Promise<string[]> => page.evaluate(() => globalThis.told);

describe('a page on an allowed foreign origin', () => {
  it.each(['websocket', 'sse'] as const)(
    'resumes over %s after the server was killed and started again',
    { timeout: 90_000 },
    async (transport) => {
      const page = await openPage(friend);
      await subscribeIn(page, transport);
      let deployment: DeploymentPartsFragment = await bringUp(client, await makeDeployment(client));
      await waitFor(async () => (await toldIn(page)).length === 4, 'what was written before');

      server.kill('SIGKILL');
      await server.exited;
      await waitFor(
        () => page.evaluate(() => globalThis.conditions.includes('reconnecting')),
        'the page to notice',
      );
      server = await startServerProcess({ databaseUrl: database.url, env: environment(server.port) });
      // Written before the page is back, or after: it must not matter.
      deployment = await patch(client, deployment, { phase: 'REFRESH_FAILED' });
      await patch(client, deployment, { phase: 'RUNNING' });

      await waitFor(async () => (await toldIn(page)).length >= 6, 'what was written afterwards', 20_000);
      expect(await toldIn(page)).toEqual([
        'PENDING@1',
        'INITIAL_SETUP@2',
        'PROVISIONING@3',
        'RUNNING@4',
        'REFRESH_FAILED@5',
        'RUNNING@6',
      ]);
      await page.close();
    },
  );

  it('queries and mutates', async () => {
    const page = await openPage(friend);
    const names = await page.evaluate(async (url) => {
      const { createSlipwayClient: create, DeploymentsDocument } = globalThis.slipway;
      const { deployments } = await create({ url }).query(DeploymentsDocument, { first: 1 });
      return deployments.nodes.map(({ name }) => name);
    }, endpoint);
    expect(names).toHaveLength(1);
    await page.close();
  });
});

describe('a page on another origin', () => {
  it('is refused over HTTP, and its mutation does nothing', async () => {
    const page = await openPage(stranger);
    const statuses: number[] = [];
    page.on('response', (response) => {
      if (response.url() === endpoint) statuses.push(response.status());
    });
    const outcome = await page.evaluate(async (url) => {
      const { createSlipwayClient: create, CreateRuntimeDocument } = globalThis.slipway;
      try {
        await create({ url }).mutate(CreateRuntimeDocument, { input: { name: 'planted', type: 'external' } });
        return 'answered';
      } catch (error) {
        return (error as { code: string }).code;
      }
    }, endpoint);
    // What a browser sends without asking first: no preflight stands in the way of it.
    const simple = await page.evaluate(async (url) => {
      const query = 'mutation { createRuntime(input: { name: "planted", type: "external" }) { __typename } }';
      await fetch(url, {
        method: 'POST',
        mode: 'no-cors',
        headers: { 'content-type': 'text/plain' },
        body: JSON.stringify({ query }),
      }).catch(() => undefined);
      await fetch(`${url}?query=${encodeURIComponent('{ head }')}`, { mode: 'no-cors' }).catch(
        () => undefined,
      );
      return 'sent';
    }, endpoint);
    expect([outcome, simple]).toEqual(['NETWORK', 'sent']);
    expect(statuses.filter((status) => status < 400)).toEqual([]);
    const planted = await client.query(
      '{ runtimes(filter: { name: { equals: "planted" } }) { nodes { id } } }',
      {},
    );
    expect(planted).toEqual({ runtimes: { nodes: [] } });
    await page.close();
  });

  it('is refused over SSE', async () => {
    const page = await openPage(stranger);
    await expectUnreachable(page, 'sse');
    await page.close();
  });

  it('is refused over WebSocket', async () => {
    const page = await openPage(stranger);
    const closed = await page.evaluate(
      (url) =>
        new Promise<{ code: number; opened: boolean }>((resolve) => {
          let opened = false;
          const socket = new WebSocket(url.replace('http', 'ws'), 'graphql-transport-ws');
          socket.onopen = () => {
            opened = true;
          };
          socket.onclose = ({ code }) => resolve({ code, opened });
        }),
      endpoint,
    );
    expect(closed).toEqual({ code: 1006, opened: false });
    await expectUnreachable(page, 'websocket');
    await page.close();
  });
});

/** The client goes on trying, as it must, and never gets in. */
async function expectUnreachable(page: Page, transport: 'websocket' | 'sse'): Promise<void> {
  const conditions = await page.evaluate(
    ([url, chosen]) =>
      new Promise<string[]>((resolve) => {
        const { createSlipwayClient: create, WatchDeploymentsDocument } = globalThis.slipway;
        const seen: string[] = [];
        const inPage = create({
          url,
          transport: chosen,
          timing: { retryBaseMs: 10, retryCapMs: 20 },
          onStatus({ condition, worst }) {
            seen.push(condition);
            if ((worst?.attempt ?? 0) < 5) return;
            inPage.close();
            resolve(seen);
          },
        });
        inPage.subscribe(WatchDeploymentsDocument, {});
      }),
    [endpoint, transport] as const,
  );
  expect(conditions).not.toContain('connected');
}
