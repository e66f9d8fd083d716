import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { createTokenBeside } from '../../../src/access/protection.js';
import { tokenCommands, type CreatedToken } from '../../../src/access/tokens.js';
import { systemClock } from '../../../src/kernel/clock.js';
import type { Slipway } from '../../../src/main.js';
import type { DeploymentRow } from '../../../src/store/rows.js';
import { local } from '../../support/callers.js';
import { createDatabase } from '../../support/database.js';
import { openEventStream, type StreamEvent } from '../../support/event-stream.js';
import { openAcknowledged, subscribe } from '../../support/raw-socket.js';
import { advanceDeployment, seedDeployment } from '../../support/seed.js';
import { startTestServer } from '../../support/server.js';
import type { TestDatabase } from '../../support/test-server.js';
import { waitFor } from '../../support/wait-for.js';

const WATCH = `subscription { watchDeployments {
  __typename
  ... on DeploymentAdded { deployment { version } }
  ... on DeploymentChanged { deployment { version } }
} }`;

/**
 * What a stream of either transport was sent, and how it ended. The server that streams is not the one where the
 * token is changed: it learns of it from the log alone.
 */
interface Watcher {
  versions(): number[];
  readonly ended: Promise<string>;
}

describe('a stream whose token is no longer what it was', () => {
  let database: TestDatabase;
  let streaming: Slipway;
  let elsewhere: Slipway;
  let row: DeploymentRow;
  beforeEach(async () => {
    database = await createDatabase();
    const options = {
      databaseUrl: database.url,
      env: { SLIPWAY_AUTH: 'tokens', SLIPWAY_BOOTSTRAP_TOKEN: `slp_${'b'.repeat(40)}` },
    };
    streaming = await startTestServer(options);
    elsewhere = await startTestServer(options);
    row = await seedDeployment(elsewhere.store.database);
  });
  afterEach(async () => {
    await streaming.close();
    await elsewhere.close();
    await database.drop();
  });

  const viewer = async (more: object = {}): Promise<CreatedToken> =>
    createTokenBeside(elsewhere.store.database, systemClock, {
      ...{ name: 'viewer', roles: ['VIEWER'], namespaces: ['default'] },
      ...more,
    });
  const change = async (): Promise<number> => {
    row = await advanceDeployment(elsewhere.store.database, row, { labels: { n: String(row.version) } });
    return row.version;
  };
  const commands = () => tokenCommands({ database: elsewhere.store.database, clock: systemClock });
  const versionOf = (data: unknown): number | undefined =>
    (data as { data?: { watchDeployments?: { deployment?: { version: number } } } } | undefined)?.data
      ?.watchDeployments // WATCH
    ?.deployment?.version;

  async function overWebSocket({ secret }: CreatedToken): Promise<Watcher> {
    const socket = await openAcknowledged(`${streaming.url.replace('http', 'ws')}/graphql`, secret);
    socket.send(subscribe('s', WATCH));
    return {
      versions: () =>
        socket.messages.flatMap(({ type, payload }) => (type === 'next' ? (versionOf(payload) ?? []) : [])),
      ended: socket.closed.then(({ code }) => String(code)),
    };
  }

  async function overEvents({ secret }: CreatedToken): Promise<Watcher> {
    const stream = await openEventStream(
      `${streaming.url}/graphql`,
      { query: WATCH },
      { headers: { authorization: `Bearer ${secret}` } },
    );
    const seen: StreamEvent[] = [];
    const read = async (): Promise<string> => {
      for (;;) {
        const event = await stream.next();
        if (!event) return JSON.stringify(seen.slice(-2));
        seen.push(event);
      }
    };
    return { versions: () => seen.flatMap(({ data }) => versionOf(data) ?? []), ended: read() };
  }

  const transports = [
    ['WebSocket', overWebSocket, '4401', '4440'],
    ['server-sent events', overEvents, 'UNAUTHENTICATED', 'UNAUTHENTICATED'],
  ] as const;

  it.each(transports)('gets nothing of what follows its revocation: %s', async (_name, open, revoked) => {
    const token = await viewer();
    const watcher = await open(token);
    const last = await change();
    await waitFor(() => watcher.versions().includes(last), 'the stream is live');
    await commands().revokeToken(local, { id: token.token.id });
    for (let i = 0; i < 5; i += 1) await change();
    expect(await watcher.ended).toContain(revoked);
    expect(Math.max(...watcher.versions())).toBe(last);
  });

  it.each(transports)(
    'gets nothing of what follows its narrowing: %s',
    async (_name, open, _revoked, again) => {
      const token = await viewer();
      const watcher = await open(token);
      const last = await change();
      await waitFor(() => watcher.versions().includes(last), 'the stream is live');
      await commands().updateToken(local, { id: token.token.id, namespaces: ['other'] });
      for (let i = 0; i < 5; i += 1) await change();
      expect(await watcher.ended).toContain(again);
      expect(Math.max(...watcher.versions())).toBe(last);
    },
  );

  it.each(transports)(
    'gets nothing of what follows its end, after 3 s of life: %s',
    async (_name, open, _revoked, again) => {
      const expiresAt = new Date(systemClock.now().getTime() + 3_000);
      const watcher = await open(await viewer({ expiresAt }));
      const seen = { ended: false };
      const end = watcher.ended.finally(() => (seen.ended = true));
      let lastBefore = 0;
      let after = 0;
      while (!seen.ended || after < 3) {
        const early = systemClock.now() < expiresAt;
        const version = await change();
        if (early) lastBefore = version;
        else after += 1;
      }
      expect(await end).toContain(again);
      expect(watcher.versions().length).toBeGreaterThan(1);
      expect(Math.max(...watcher.versions())).toBeLessThanOrEqual(lastBefore);
    },
  );
});
