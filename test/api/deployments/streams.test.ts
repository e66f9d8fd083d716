import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { startTestGraph, type TestGraph, type TestStream } from '../../support/graph.js';
import { advanceDeployment, seedDeployment } from '../../support/seed.js';

let graph: TestGraph;
beforeAll(async () => {
  graph = await startTestGraph();
});
afterAll(() => graph.close());

const WATCH = `subscription Watch($filter: DeploymentFilter, $after: ChangeCursor, $onExpired: OnExpired) {
  event: watchDeployments(filter: $filter, after: $after, onExpired: $onExpired) {
    __typename
    ... on StreamEvent { cursor at }
    ... on DeploymentAdded { deployment { id version } }
    ... on DeploymentChanged { deployment { id version } }
    ... on DeploymentRemoved { id reason deployment { version } }
  }
}`;

async function next(stream: TestStream) {
  const { data, errors } = await stream.next();
  expect(errors).toEqual([]);
  return data.event;
}

describe('watchDeployments', () => {
  it('begins with what the filter holds, and then follows it in and out', async () => {
    const inside = await seedDeployment(graph.database, { labels: { set: 'one' } });
    const outside = await seedDeployment(graph.database, { labels: { set: 'two' } });
    const filter = { labels: [{ key: 'set', operator: 'IN', values: ['one'] }] };
    const stream = await graph.stream(WATCH, { filter });
    expect(await next(stream)).toMatchObject({
      __typename: 'DeploymentAdded',
      deployment: { id: inside.id, version: 1 },
    });
    expect(await next(stream)).toMatchObject({ __typename: 'SnapshotEnd', cursor: expect.any(String) });

    const entered = await advanceDeployment(graph.database, outside, { labels: { set: 'one' } });
    expect(await next(stream)).toMatchObject({
      __typename: 'DeploymentAdded',
      deployment: { id: outside.id, version: 2 },
    });
    await advanceDeployment(graph.database, entered, { phase: 'INITIAL_SETUP' });
    expect(await next(stream)).toMatchObject({ __typename: 'DeploymentChanged', deployment: { version: 3 } });
    await advanceDeployment(graph.database, inside, { labels: {} });
    expect(await next(stream)).toMatchObject({
      __typename: 'DeploymentRemoved',
      id: inside.id,
      reason: 'LEFT_FILTER',
      deployment: { version: 2 },
    });
    const { rows } = await graph.database.pool.query<{ at: Date }>('SELECT clock_timestamp() AS at');
    await graph.run(
      'mutation ($id: ID!) { deleteDeployment(input: { id: $id, mode: FORGET }) { __typename } }',
      { id: outside.id },
    );
    const removed = await next(stream);
    expect(removed).toMatchObject({ __typename: 'DeploymentRemoved', id: outside.id, reason: 'DELETED' });
    expect(Date.parse(removed.at)).toBeGreaterThanOrEqual(Number(rows[0]?.at));
    await stream.close();
  });

  it('goes on behind a cursor without a snapshot', async () => {
    const row = await seedDeployment(graph.database, { labels: { set: 'three' } });
    const filter = { labels: [{ key: 'set', operator: 'IN', values: ['three'] }] };
    const first = await graph.stream(WATCH, { filter });
    await next(first);
    const { cursor } = await next(first);
    await first.close();
    const moved = await advanceDeployment(graph.database, row, { phase: 'INITIAL_SETUP' });
    await advanceDeployment(graph.database, moved, { phase: 'PROVISIONING' });
    const again = await graph.stream(WATCH, { filter, after: cursor });
    const event = await next(again);
    expect(event).toMatchObject({ __typename: 'DeploymentChanged', deployment: { id: row.id } });
    await again.close();
  });

  it('ends with CURSOR_INVALID for a cursor that was made up', async () => {
    const stream = await graph.stream(WATCH, { after: 'nonsense' });
    expect(await stream.next()).toMatchObject({ errors: [{ extensions: { code: 'CURSOR_INVALID' } }] });
  });

  it('refuses a filter that is wrong before it opens anything', async () => {
    const before = graph.feed.stats.streams;
    await expect(graph.stream(WATCH, { filter: { or: [] } })).rejects.toThrow(/BAD_USER_INPUT/);
    expect(graph.feed.stats.streams).toBe(before);
  });
});

describe('deploymentPhaseChanged', () => {
  it('tells every move in order, and nothing of other changes', async () => {
    const row = await seedDeployment(graph.database, { name: 'steps' });
    const stream = await graph.stream(
      `subscription ($after: ChangeCursor) {
        deploymentPhaseChanged(after: $after, filter: { name: { equals: "steps" } }) { from to version reason actor }
      }`,
      { after: await graph.feed.head() },
    );
    let now = await advanceDeployment(graph.database, row, { labels: { unseen: 'yes' } });
    for (const phase of ['INITIAL_SETUP', 'PROVISIONING', 'RUNNING'] as const) {
      now = await advanceDeployment(graph.database, now, { phase });
    }
    const told: unknown[] = [];
    for (let move = 0; move < 3; move += 1) told.push((await stream.next()).data.deploymentPhaseChanged);
    expect(told).toEqual([
      { from: 'PENDING', to: 'INITIAL_SETUP', version: 3, reason: 'Seeded', actor: 'test' },
      { from: 'INITIAL_SETUP', to: 'PROVISIONING', version: 4, reason: 'Seeded', actor: 'test' },
      { from: 'PROVISIONING', to: 'RUNNING', version: 5, reason: 'Seeded', actor: 'test' },
    ]);
    await stream.close();
  });

  it('leaves nothing open when it is closed while it waits', async () => {
    const before = graph.feed.stats.streams;
    const stream = await graph.stream('subscription { deploymentPhaseChanged { version } }');
    const pending = stream.next();
    expect(graph.feed.stats.streams).toBe(before + 1);
    await stream.close();
    expect(await pending).toEqual({ data: undefined, errors: [] });
    expect(graph.feed.stats.streams).toBe(before);
  });
});

describe('a timeline', () => {
  it('tells what happened to one object, newest first', async () => {
    const row = await seedDeployment(graph.database);
    await advanceDeployment(graph.database, row, { phase: 'INITIAL_SETUP' });
    const { data, errors } = await graph.run(
      `query ($id: ID!) { deployment(id: $id) { changes(first: 1) { hasMore nodes { version op from to } } older: changes(beforeVersion: 2) { hasMore nodes { version op } } } }`,
      { id: row.id },
    );
    expect(errors).toEqual([]);
    expect(data.deployment).toEqual({
      changes: { hasMore: true, nodes: [{ version: 2, op: 'UPDATE', from: 'PENDING', to: 'INITIAL_SETUP' }] },
      older: { hasMore: false, nodes: [{ version: 1, op: 'INSERT' }] },
    });
  });
});
