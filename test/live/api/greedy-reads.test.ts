import http from 'node:http';

import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { READS_AT_ONCE } from '../../../src/kernel/read-turns.js';
import type { Slipway } from '../../../src/main.js';
import { ask } from '../../support/api.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { openAcknowledged, subscribe } from '../../support/raw-socket.js';
import { startTestServer } from '../../support/server.js';
import { waitFor } from '../../support/wait-for.js';

const ALIASES = 30;
/** As many fields as one operation may have, each a statement of its own. */
const MANY = `{ ${Array.from({ length: ALIASES }, (_, at) => `d${at}: deployments(first: 1) { nodes { id } }`).join(' ')} }`;

/** Whoever reads deployments waits, as a statement without an index would in a large fleet. */
describe('an operation with many slow fields', () => {
  let database: TestDatabase;
  let server: Slipway;
  let owner: pg.Client;
  let watcher: pg.Client;
  beforeAll(async () => {
    database = await createDatabase();
    server = await startTestServer({
      databaseUrl: database.url,
      env: {
        SLIPWAY_POOL_SIZE: String(READS_AT_ONCE + 1),
        SLIPWAY_REQUEST_TIMEOUT_SECONDS: '4',
        SLIPWAY_WS_MUTATIONS: 'true',
      },
    });
    owner = new pg.Client(database.connection);
    watcher = new pg.Client(database.connection);
    await Promise.all([owner.connect(), watcher.connect()]);
  });
  afterAll(async () => {
    await Promise.all([owner.end(), watcher.end()]);
    await server.close();
    await database.drop();
  });

  async function waiting(): Promise<number> {
    const { rows } = await watcher.query<{ count: string }>(
      `select count(*) from pg_stat_activity
        where datname = current_database() and application_name = 'slipway-read' and wait_event_type = 'Lock'`,
    );
    return Number(rows[0]?.count);
  }

  async function whileDeploymentsAreSlow(work: () => Promise<void>): Promise<void> {
    await owner.query('begin');
    await owner.query('lock table deployment in access exclusive mode');
    try {
      await work();
    } finally {
      await owner.query('rollback');
    }
  }

  const its = () =>
    waitFor(async () => (await waiting()) === READS_AT_ONCE, 'it has its share of the sessions');
  const none = () => waitFor(async () => (await waiting()) === 0, 'nothing of it is at work');

  it('leaves sessions to the others, and nothing of it runs on when its time is over', async () => {
    await whileDeploymentsAreSlow(async () => {
      const slow = ask(server.url, MANY);
      await its();
      for (let time = 0; time < 20; time += 1) {
        expect(await ask(server.url, '{ runtimes(first: 1) { nodes { id } } }')).toEqual({
          data: { runtimes: { nodes: [] } },
        });
      }
      expect(await waiting()).toBe(READS_AT_ONCE);
      expect((await slow).errors?.[0]?.extensions?.['code']).toBe('UNAVAILABLE');
      await none();
    });
    const { data } = await ask(server.url, MANY);
    expect(Object.keys(data ?? {})).toHaveLength(ALIASES);
  });

  it('ends when its client goes away', async () => {
    await whileDeploymentsAreSlow(async () => {
      const request = http.request(`${server.url}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
      });
      request.on('error', () => undefined);
      request.end(JSON.stringify({ query: MANY }));
      await its();
      request.destroy();
      await none();
    });
  });

  it('ends when its socket says that it is complete', async () => {
    await whileDeploymentsAreSlow(async () => {
      const socket = await openAcknowledged(`${server.url.replace('http', 'ws')}/graphql`);
      socket.send(subscribe('1', MANY));
      await its();
      socket.send({ type: 'complete', id: '1' });
      await none();
      socket.close();
    });
  });
});
