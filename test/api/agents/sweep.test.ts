import type { PoolClient } from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { systemGrant } from '../../../src/access/authorise.js';
import { agentSweep } from '../../../src/agents/index.js';
import { agentSweepStale } from '../../../src/agents/store.js';
import { silentLog } from '../../../src/kernel/log.js';
import type { Database } from '../../../src/store/database.js';
import { agentsOf, agentState, changesOf, registered, silenced, valueOf } from '../../support/agents.js';
import { local } from '../../support/callers.js';
import { createDatabase, withClient, type TestDatabase } from '../../support/database.js';
import { openStore } from '../../support/open-store.js';
import { waitFor } from '../../support/wait-for.js';

const TIMEOUT_SECONDS = 60;

describe('the health sweep', () => {
  let test: TestDatabase;
  let one: Database;
  let two: Database;
  beforeEach(async () => {
    test = await createDatabase();
    // The plan that leaves the longest time between the sweep's snapshot and its last row: one row after the other.
    await withClient(test.connection, async (client) => {
      await client.query(`ALTER DATABASE ${test.name} SET enable_hashjoin = off`);
      await client.query(`ALTER DATABASE ${test.name} SET enable_mergejoin = off`);
    });
    one = openStore(test, 'one');
    two = openStore(test, 'two');
  });
  afterEach(async () => {
    await one.close();
    await two.close();
    await test.drop();
  });

  const sweep = async (database = one) =>
    agentSweep({ database, log: silentLog, heartbeatTimeoutSeconds: TIMEOUT_SECONDS })();
  const beat = async (
    { agent, session }: Awaited<ReturnType<typeof registered>>,
    sequence: number,
    consumerLag = 0,
  ) => agentsOf(two).heartbeatAgent(local, { id: agent.id, session, sequence, consumerLag });
  /** Until some session of this database waits for a row that another holds. */
  const someoneWaits = async () =>
    waitFor(async () => {
      const { rows } = await two.pool.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      return rows.length > 0;
    }, 'a session that waits for a lock');

  it('makes exactly the silent agents unavailable, once, with the reason', async () => {
    const silent = await registered(one, 'silent');
    const alive = await registered(one, 'alive');
    await silenced(one, 61, silent.agent.id);
    await silenced(one, 58, alive.agent.id);
    await sweep();
    await sweep(two);
    expect(await agentState(one, silent.agent.id)).toMatchObject({ health: 'UNAVAILABLE', version: 2 });
    expect(await agentState(one, alive.agent.id)).toMatchObject({ health: 'READY', version: 1 });
    expect((await changesOf(one, silent.agent.id)).slice(1)).toEqual([
      {
        version: 2,
        op: 'UPDATE',
        from: 'READY',
        to: 'UNAVAILABLE',
        reason: 'HeartbeatTimeout',
        actor: 'system:agents',
        lag: 0,
      },
    ]);
  });

  it('takes agents that never sent a heartbeat, and congested ones', async () => {
    const quiet = await registered(one, 'quiet');
    const busy = await registered(one, 'busy', { congestionThreshold: 1 });
    await beat(busy, 1, 5);
    await silenced(one, 100);
    await sweep();
    expect(await agentState(one, quiet.agent.id)).toMatchObject({ health: 'UNAVAILABLE' });
    expect((await changesOf(one, busy.agent.id)).at(-1)).toMatchObject({
      from: 'CONGESTED',
      to: 'UNAVAILABLE',
      lag: 5,
    });
  });

  it('sweeps once, on however many replicas at the same time', async () => {
    const agents = await Promise.all(
      Array.from({ length: 40 }, async (_, i) => registered(one, `many-${i}`)),
    );
    await silenced(one, 100);
    await Promise.all([sweep(one), sweep(two), sweep(one), sweep(two)]);
    await sweep();
    for (const { agent } of agents) {
      expect(await agentState(one, agent.id)).toMatchObject({ health: 'UNAVAILABLE', version: 2 });
    }
  });

  it('takes more agents than one statement does', async () => {
    await one.pool.query(
      `INSERT INTO agent (id, name, topic, service_types) SELECT 'agt_' || n, 'n' || n, 'n' || n, '{}' FROM generate_series(1, 2500) AS n`,
    );
    await one.pool.query(`INSERT INTO agent_internal (agent_id, session) SELECT id, 's' FROM agent`);
    await silenced(one, 100);
    await sweep();
    const { rows } = await one.pool.query(
      `SELECT count(*)::int AS n FROM agent WHERE health = 'UNAVAILABLE' AND version = 2`,
    );
    expect(rows).toEqual([{ n: 2500 }]);
  });

  /**
   * Two silent agents. The sweep takes its snapshot, in which both are silent, and is held at the first one's row of
   * `agent` by somebody else's transaction. The second one's heartbeat is then applied and committed: it lies after
   * the sweep's snapshot and before its lock. Then the sweep goes on.
   */
  async function heartbeatBetweenSnapshotAndLock(
    run: () => Promise<unknown>,
  ): Promise<{ first: string; second: string }> {
    const all = [await registered(one, 'a'), await registered(one, 'b')] as const;
    const [first, second] = [...all].sort((a, b) => (a.agent.id < b.agent.id ? -1 : 1)) as [
      (typeof all)[0],
      (typeof all)[0],
    ]; // two go in
    await silenced(one, 100);
    await one.pool.query('ANALYZE agent, agent_internal');
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let holding = (): void => undefined;
    const locked = new Promise<void>((resolve) => {
      holding = resolve;
    });
    const holder = one.inTransaction(async (tx: PoolClient) => {
      await tx.query('SELECT FROM agent WHERE id = $1 FOR UPDATE', [first.agent.id]);
      holding();
      await held;
    });
    // The sweep must find the row held: one that came first would be through before there is anything to wait for.
    await locked;
    const sweeping = run();
    try {
      await someoneWaits();
      expect(valueOf(await beat(second, 1))).toMatchObject({ applied: true });
    } finally {
      release();
    }
    await holder;
    await sweeping;
    const healthOf = async (id: string) => (await agentState(one, id)).health;
    return { first: await healthOf(first.agent.id), second: await healthOf(second.agent.id) };
  }

  it('never overwrites a heartbeat that came between its look and its write', async () => {
    expect(await heartbeatBetweenSnapshotAndLock(sweep)).toEqual({ first: 'UNAVAILABLE', second: 'READY' });
  });

  it('(control) would overwrite it, in the same interleaving, if it wrote without locking what it looked at', async () => {
    const naive = async () =>
      one.pool.query(
        `WITH stale AS MATERIALIZED (SELECT agent_id FROM agent_internal
           WHERE health <> 'UNAVAILABLE' AND last_heartbeat_at < statement_timestamp() - make_interval(secs => 60) ORDER BY agent_id)
         UPDATE agent SET health = 'UNAVAILABLE', version = version + 1 FROM stale WHERE agent.id = stale.agent_id`,
      );
    expect(await heartbeatBetweenSnapshotAndLock(naive)).toEqual({
      first: 'UNAVAILABLE',
      second: 'UNAVAILABLE',
    });
  });

  it('leaves alone an agent whose heartbeat is being written, without waiting for it', async () => {
    const { agent, session } = await registered(one, 'beating');
    await silenced(one, 100);
    await one.inTransaction(async (tx) => {
      await tx.query(
        'UPDATE agent_internal SET sequence = 1, last_heartbeat_at = clock_timestamp() WHERE session = $1',
        [session],
      );
      await sweep(two);
    });
    expect(await agentState(one, agent.id)).toMatchObject({ health: 'READY', version: 1 });
  });

  /** The sweep has judged an agent and not committed yet, as its heartbeat arrives and waits. */
  async function heartbeatDuringSweep(
    send: (agent: Awaited<ReturnType<typeof registered>>) => Promise<unknown>,
  ): Promise<{ health: string; reasons: (string | null)[] }> {
    const late = await registered(one, 'late');
    await silenced(one, 100);
    let sent: Promise<unknown> | undefined;
    await one.inTransaction(async (tx) => {
      const names = await agentSweepStale(tx, systemGrant('system:sweep', 'agents'), TIMEOUT_SECONDS, 10);
      expect(names).toEqual(['late']);
      sent = send(late);
      await someoneWaits();
    });
    await sent;
    const changes = await changesOf(one, late.agent.id);
    return {
      health: (await agentState(one, late.agent.id)).health,
      reasons: changes.map(({ reason }) => reason),
    };
  }

  it('is answered by the heartbeat that waited for it: the agent is back at once', async () => {
    const seen = await heartbeatDuringSweep(async (agent) => beat(agent, 1));
    expect(seen).toEqual({
      health: 'READY',
      reasons: ['Registered', 'HeartbeatTimeout', 'HeartbeatResumed'],
    });
  });

  it('(control) would leave it unavailable if the heartbeat compared with a row that it did not lock', async () => {
    const seen = await heartbeatDuringSweep(async ({ agent, session }) =>
      two.pool.query(
        `UPDATE agent_internal i SET sequence = 1, consumer_lag = 0, last_heartbeat_at = clock_timestamp()
           FROM agent a WHERE i.agent_id = $1 AND a.id = $1 AND i.session = $2 AND i.sequence < 1 AND a.health = 'READY'`,
        [agent.id, session],
      ),
    );
    expect(seen.health).toBe('UNAVAILABLE');
  });

  it('and heartbeats, registrations and cordons in any mix leave every beating agent ready, and no gap', async () => {
    const fleet = await Promise.all(
      Array.from({ length: 12 }, async (_, i) => registered(one, `mix-${i}`, { congestionThreshold: 5 })),
    );
    for (let round = 1; round <= 15; round += 1) {
      await silenced(one, 100);
      await Promise.all([
        sweep(one),
        ...fleet.flatMap((member, i) => [
          beat(member, 2 * round, (i + round) % 8),
          beat(member, 2 * round + 1, 0),
          ...(i % 4 === 0
            ? [agentsOf(one).cordonAgent(local, { id: member.agent.id, cordoned: round % 2 === 0 })]
            : []),
        ]),
        sweep(two),
      ]);
      for (const { agent } of fleet) {
        const state = await agentState(one, agent.id);
        expect(state).toMatchObject({ health: 'READY', lag: 0, sequence: 2 * round + 1 });
        const versions = (await changesOf(one, agent.id)).map(({ version }) => version);
        expect(versions).toEqual(versions.map((_, i) => i + 1));
        expect(versions).toHaveLength(state.version);
      }
    }
  });
});
