import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSlipwayClient, type SlipwayClient } from '../../../src/client/index.js';
import type { Slipway } from '../../../src/main.js';
import { launchChromium } from '../../support/chromium.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { makeDeployment, patch } from '../../support/rig.js';
import { startTestServer } from '../../support/server.js';

/** From a known place on: that the socket sent it does not say that the server has begun to listen. */
const subscriptionAfter = (cursor: string) =>
  `subscription Typed { deploymentPhaseChanged(after: "${cursor}") { to deployment { name } } }`;

let database: TestDatabase;
let server: Slipway;
let client: SlipwayClient;
let browser: Browser;
let page: Page;
/** Requests that would have left this machine. */
const foreign: string[] = [];

beforeAll(async () => {
  database = await createDatabase();
  server = await startTestServer({ databaseUrl: database.url });
  client = createSlipwayClient({ url: `${server.url}/graphql`, transport: 'sse' });
  browser = await launchChromium();
  const context = await browser.newContext();
  await context.route('**/*', async (route) => {
    const { hostname, protocol } = new URL(route.request().url());
    if (protocol === 'data:' || protocol === 'blob:' || hostname === '127.0.0.1') return route.continue();
    foreign.push(route.request().url());
    return route.abort();
  });
  page = await context.newPage();
  await page.goto(`${server.url}/graphql`);
});

afterAll(async () => {
  await browser.close();
  client.close();
  await server.close();
  await database.drop();
});

describe('GraphiQL', () => {
  it('offers three example operations', { timeout: 60_000 }, async () => {
    const tabs = page.locator('[role="tab"], .graphiql-tab');
    await tabs.first().waitFor();
    const names = (await page.locator('.graphiql-tab').allInnerTexts()).map((text) => text.trim());
    expect(names).toEqual(['Deployments', 'DeploymentPhases', 'AgentHealth']);
  });

  it(
    'shows a change of another client by a subscription that was typed in',
    { timeout: 60_000 },
    async () => {
      const pending = await makeDeployment(client, 'typed');
      const editor = page.locator('.graphiql-query-editor');
      await editor.click();
      await page.keyboard.press('Control+a');
      // Inserted as a paste is: typing letter by letter would close brackets by itself.
      await page.keyboard.insertText(subscriptionAfter(await server.feed.head()));
      // The tab takes the operation's name once the editor has understood it; before, there is nothing to run.
      await page.locator('.graphiql-tab').getByText('Typed').waitFor();
      const opened = page.waitForEvent('websocket');
      await page.keyboard.press('Control+Enter');
      const socket = await opened;
      expect(socket.url()).toBe(`${server.url.replace('http', 'ws')}/graphql`);
      await patch(client, pending, { phase: 'INITIAL_SETUP' });
      const result = page.locator('.result-window, .graphiql-response');
      await result.getByText('INITIAL_SETUP').first().waitFor();
      await result.getByText('typed').first().waitFor();
    },
  );

  it('asks nothing of any other machine', () => {
    expect(foreign).toEqual([]);
  });
});
