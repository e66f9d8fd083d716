import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import type { Slipway } from '../../../src/main.js';
import { ask } from '../../support/api.js';
import { createDatabase } from '../../support/database.js';
import { openEventStream } from '../../support/event-stream.js';
import { openAcknowledged, subscribe, type RawSocket } from '../../support/raw-socket.js';
import { advanceDeployment, seedDeployment } from '../../support/seed.js';
import { startTestServer } from '../../support/server.js';
import type { TestDatabase } from '../../support/test-server.js';
import { waitFor } from '../../support/wait-for.js';

/** The transports in front of the real graph, feed and database. */
const WATCH = `subscription ($filter: DeploymentFilter, $after: ChangeCursor) {
  watchDeployments(filter: $filter, after: $after) {
    __typename
    ... on StreamEvent { cursor }
    ... on DeploymentAdded { deployment { name version status { phase } } }
    ... on DeploymentChanged { deployment { name version status { phase } } }
  }
}`;

describe('a whole server', () => {
  let database: TestDatabase;
  let server: Slipway;
  let wsUrl: string;
  beforeEach(async () => {
    database = await createDatabase();
    server = await startTestServer({ databaseUrl: database.url });
    wsUrl = `${server.url.replace('http', 'ws')}/graphql`;
  });
  afterEach(async () => {
    await server.close();
    await database.drop();
  });

  const events = (socket: RawSocket) =>
    socket.messages
      .filter(({ type }) => type === 'next')
      .map(
        ({ payload }) =>
          (
            payload as {
              data: { watchDeployments: { __typename: string; cursor: string; deployment?: object } };
            }
          ).data.watchDeployments,
      ); // WATCH

  it('lists, goes on live, shares one execution, and says where it stands before it stops', async () => {
    const row = await seedDeployment(server.store.database);
    const sockets = await Promise.all([openAcknowledged(wsUrl), openAcknowledged(wsUrl)]);
    sockets.forEach((socket, n) =>
      socket.send(subscribe('s', WATCH, { filter: n === 0 ? null : { namespace: { equals: 'default' } } })),
    );
    const stream = await openEventStream(`${server.url}/graphql`, { query: WATCH });
    await waitFor(() => sockets.every((socket) => events(socket).length === 2), 'the snapshots came');
    expect(events(sockets[0]).map(({ __typename }) => __typename)).toEqual([
      'DeploymentAdded',
      'SnapshotEnd',
    ]); // opened above
    expect([(await stream.next())?.event, (await stream.next())?.event]).toEqual(['next', 'next']);

    const executions = async () =>
      Number(
        /slipway_event_executions_total (\d+)/.exec(await (await fetch(`${server.url}/metrics`)).text())?.[1],
      );
    const before = await executions();
    await advanceDeployment(server.store.database, row, { phase: 'INITIAL_SETUP' });
    await waitFor(() => sockets.every((socket) => events(socket).length === 3), 'the change came');
    const live = await stream.next();
    expect(live).toMatchObject({
      data: {
        data: {
          watchDeployments: {
            __typename: 'DeploymentChanged',
            deployment: { version: 2, status: { phase: 'INITIAL_SETUP' } },
          },
        },
      },
    });
    expect(events(sockets[1]).at(-1)).toEqual(
      (live?.data as { data: { watchDeployments: object } }).data.watchDeployments,
    ); // one payload for all of them
    expect((await executions()) - before).toBe(1);

    const drained = server.drain();
    await Promise.all(sockets.map(({ closed }) => closed));
    for (const socket of sockets) expect(events(socket).at(-1)).toMatchObject({ __typename: 'Bookmark' });
    await drained;

    // Another server, another time: nothing is told twice.
    const again = await startTestServer({ databaseUrl: database.url });
    const moved = await advanceDeployment(
      again.store.database,
      { ...row, version: 2 },
      { phase: 'PROVISIONING' },
    );
    const resumed = await openEventStream(
      `${again.url}/graphql`,
      { query: WATCH },
      { headers: { 'last-event-id': events(sockets[0]).at(-1)?.cursor ?? '' } },
    );
    expect(await resumed.next()).toMatchObject({
      data: {
        data: {
          watchDeployments: { __typename: 'DeploymentChanged', deployment: { version: moved.version } },
        },
      },
    });
    resumed.close();
    await again.close();
  });

  it('tells an event stream on which nothing happened where to go on, when it stops', async () => {
    const query = 'subscription { deploymentPhaseChanged { version } }';
    const row = await seedDeployment(server.store.database);
    const first = await startTestServer({ databaseUrl: database.url });
    const quiet = await openEventStream(`${first.url}/graphql`, { query });
    await waitFor(() => first.feed.stats.attached === 1, 'it is open');
    await first.close();
    expect(await quiet.next()).toBeUndefined();
    const moved = await advanceDeployment(server.store.database, row, { phase: 'INITIAL_SETUP' });
    const resumed = await openEventStream(
      `${server.url}/graphql`,
      { query },
      { headers: { 'last-event-id': quiet.lastEventId } },
    );
    expect(await resumed.next()).toMatchObject({
      data: { data: { deploymentPhaseChanged: { version: moved.version } } },
    });
    resumed.close();
  });

  it('measures from the commit to the send', async () => {
    const socket = await openAcknowledged(wsUrl);
    socket.send(subscribe('s', WATCH));
    await waitFor(() => events(socket).length === 1, 'the empty snapshot came');
    await seedDeployment(server.store.database);
    await waitFor(() => events(socket).length === 2, 'the change came');
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    expect(metrics).toMatch(/slipway_commit_to_send_seconds_count 1\n/);
    expect(metrics).toMatch(/slipway_feed_streams 1\n/);
    expect(metrics).toMatch(/nodejs_eventloop_lag_seconds /);
  });

  it('tells nothing of a cursor that it does not know', async () => {
    const socket = await openAcknowledged(wsUrl);
    socket.send(subscribe('s', WATCH, { after: 'made-up' }));
    expect(await socket.next()).toMatchObject({
      type: 'error',
      payload: [{ extensions: { code: 'CURSOR_INVALID' } }],
    });
    const stream = await openEventStream(
      `${server.url}/graphql`,
      { query: WATCH },
      { headers: { 'last-event-id': 'made-up' } },
    );
    expect(await stream.next()).toMatchObject({
      data: { errors: [{ extensions: { code: 'CURSOR_INVALID' } }] },
    });
  });

  it('is ready, and passes its own limits with the introspection that GraphiQL sends', async () => {
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
    const { getIntrospectionQuery } = await import('graphql');
    const response = await fetch(`${server.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        query: getIntrospectionQuery({
          inputValueDeprecation: true,
          schemaDescription: true,
          specifiedByUrl: true,
          oneOf: true,
        }),
      }),
    });
    expect(await response.json()).not.toHaveProperty('errors');
  });

  it('takes no moment that would stop the feed of every server', async () => {
    const create = (expiresAt: string) =>
      ask(
        server.url,
        'mutation ($input: CreateTokenInput!) { createToken(input: $input) { ... on CreateTokenPayload { token { expiresAt } } } }',
        { input: { name: 'ci', roles: ['VIEWER'], expiresAt } },
      );
    for (const moment of ['+010000-01-01T00:00:00.000Z', '2030-02-30T00:00:00Z', '2030-01-01T24:00:00Z']) {
      expect((await create(moment)).errors, moment).toMatchObject([
        { extensions: { code: 'BAD_USER_INPUT' } },
      ]);
    }
    const last = '9999-12-31T23:59:59.999Z';
    expect(await create(last)).toEqual({ data: { createToken: { token: { expiresAt: last } } } });
    const behind = server.store.database.pool.query(`UPDATE token SET version = 2, expires_at = 'infinity'`);
    await expect(behind).rejects.toMatchObject({ code: '23514' });
    await waitFor(async () => (await fetch(`${server.url}/readyz`)).status === 200, 'the feed goes on');
  });

  it.each([
    [
      'a variable',
      'mutation ($input: CreateRuntimeInput!) { createRuntime(input: $input) { __typename } }',
      '{"input":{"name":"a","type":"external","labels":{"__proto__":"x"}}}',
    ],
    [
      'a part of a variable',
      'mutation ($labels: Labels) { createRuntime(input: { name: "a", type: "external", labels: $labels }) { __typename } }',
      '{"labels":{"team":"a","__proto__":"x"}}',
    ],
    [
      'a literal',
      'mutation { createRuntime(input: { name: "a", type: "external", labels: { __proto__: "x" } }) { __typename } }',
      '{}',
    ],
  ])('refuses the label `__proto__` by name in %s', async (_what, query, variables) => {
    const { errors } = await ask(server.url, query, JSON.parse(variables) as object);
    expect(errors).toMatchObject([{ message: expect.stringContaining('`__proto__`') }]);
    expect(errors?.[0]?.extensions?.['code']).toMatch(/^(BAD_USER_INPUT|GRAPHQL_VALIDATION_FAILED)$/);
  });

  it.each([
    ['an argument', 'query ($x: ID = "a") { node(id: $x) { id } }'],
    ['an item of a list', 'query ($x: ID = "a") { nodes(ids: [$x]) { id } }'],
    ['a directive', 'query ($x: Boolean = true) { head @include(if: $x) }'],
    ['a directive below', 'query ($x: Boolean = true) { runtimes { nodes { id @skip(if: $x) } } }'],
    [
      'a part of an input',
      'mutation ($x: String = "a") { createRuntime(input: { name: $x, type: "external" }) { __typename } }',
    ],
    [
      'an event',
      'subscription ($x: Boolean = true) { watchAgents { ... on StreamEvent @include(if: $x) { cursor } } }',
    ],
  ])(
    'refuses, before anything runs, null for a variable that stands in place of %s',
    async (_what, query) => {
      const stream = await openEventStream(`${server.url}/graphql`, { query, variables: { x: null } });
      expect(await stream.next()).toEqual({
        event: 'next',
        data: {
          errors: [
            {
              message: 'The variable `$x` must not be null: it stands where null may not.',
              extensions: { code: 'BAD_USER_INPUT' },
            },
          ],
        },
      });
      expect(await stream.next()).toEqual({ event: 'complete' });
      const without = await openEventStream(`${server.url}/graphql`, { query });
      const { data } = (await without.next()) ?? {};
      expect(data).not.toHaveProperty('errors');
      without.close();
    },
  );
});
