import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ask, mutate, valueOf, watch } from '../../support/api.js';
import { createDatabase, withClient, type TestDatabase } from '../../support/database.js';
import { startServerProcess, type ServerProcess } from '../../support/server.js';
import { waitFor } from '../../support/wait-for.js';

interface HealthChange {
  readonly from: string | null;
  readonly to: string;
  readonly reason: string | null;
  readonly agent: { readonly name: string };
}
const HEALTH = `subscription ($filter: AgentFilter, $after: ChangeCursor) {
  agentHealthChanged(filter: $filter, after: $after) { from to reason agent { name } }
}`;

interface Registered {
  readonly agent: { readonly id: string };
  readonly session: string;
  readonly heartbeatIntervalSeconds: number;
}

const register = (url: string, name: string): Promise<Registered> =>
  mutate<Registered>(
    url,
    'registerAgent',
    { name, protocolVersion: 1, serviceTypes: ['process'] },
    '... on RegisterAgentPayload { session heartbeatIntervalSeconds agent { id } } ... on Failure { message }',
  );

const beat = (url: string, { agent, session }: Registered, sequence: number) =>
  mutate<{ applied: boolean }>(
    url,
    'heartbeatAgent',
    { id: agent.id, session, sequence, consumerLag: 0 },
    '... on HeartbeatAgentPayload { applied } ... on Failure { message }',
  );

describe('agents and two servers', () => {
  let database: TestDatabase;
  let servers: readonly [ServerProcess, ServerProcess];
  beforeAll(async () => {
    database = await createDatabase();
    const start = () =>
      startServerProcess({
        databaseUrl: database.url,
        env: {
          SLIPWAY_HEARTBEAT_INTERVAL_SECONDS: '0.2',
          SLIPWAY_HEARTBEAT_TIMEOUT_SECONDS: '1',
          SLIPWAY_AGENT_SWEEP_SECONDS: '0.1',
        },
      });
    servers = await Promise.all([start(), start()]);
  });
  afterAll(async () => {
    for (const server of servers) server.kill('SIGKILL');
    await Promise.all(servers.map(({ exited }) => exited));
    await database.drop();
  });

  it('stream READY, UNAVAILABLE when the beats stop, and READY with the next one', async () => {
    const [one, other] = servers;
    const after = await valueOf<string>(ask(one.url, '{ head }'));
    const filter = { name: { equals: 'edge' } };
    const streams = [one, other].map(({ url }) => watch<HealthChange>(url, HEALTH, { filter, after }));
    const moves = () => streams.map(({ events }) => events.map(({ to }) => to));

    const agent = await register(one.url, 'edge');
    expect(agent.heartbeatIntervalSeconds).toBe(0.2);
    expect(await beat(other.url, agent, 1)).toMatchObject({ applied: true });
    for (const stream of streams) await stream.seen(({ to }) => to === 'READY', 'READY');
    for (const stream of streams) {
      const silent = await stream.seen(({ to }) => to === 'UNAVAILABLE', 'UNAVAILABLE');
      expect(silent).toMatchObject({ from: 'READY', agent: { name: 'edge' } });
    }
    // Late, doubled or out of order: it says nothing new.
    expect(await beat(one.url, agent, 1)).toMatchObject({ applied: false });
    expect(await beat(one.url, agent, 2)).toMatchObject({ applied: true });
    await waitFor(
      () => moves().every((to) => to.at(-1) === 'READY' && to.includes('UNAVAILABLE')),
      'READY again',
    );
    for (const stream of streams) expect(stream.errors).toEqual([]);
    const [left, right] = moves();
    expect(left).toEqual(right);
  });

  it('write no change for beats that change nothing', async () => {
    const [one, other] = servers;
    const agent = await register(one.url, 'steady');
    await beat(one.url, agent, 1);
    const changes = async () => {
      const { rows } = await withClient(database.connection, (client) =>
        client.query<{ n: number }>('select count(*)::int as n from change where object_id = $1', [
          agent.agent.id,
        ]),
      );
      return rows[0]?.n;
    };
    const before = await changes();
    for (let sequence = 2; sequence <= 20; sequence += 1) {
      await beat(sequence % 2 === 0 ? one.url : other.url, agent, sequence);
    }
    expect(await changes()).toBe(before);
  });
});
