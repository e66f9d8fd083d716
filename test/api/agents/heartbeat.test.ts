import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { healthAt } from '../../../src/agents/model.js';
import type { Database } from '../../../src/store/database.js';
import { agentsOf, agentState, changesOf, registered, silenced, valueOf } from '../../support/agents.js';
import { local, someone } from '../../support/callers.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { openStore } from '../../support/open-store.js';

describe('heartbeatAgent', () => {
  let test: TestDatabase;
  let one: Database;
  let two: Database;
  beforeAll(async () => {
    test = await createDatabase();
    one = openStore(test, 'one');
    two = openStore(test, 'two');
  });
  afterAll(async () => {
    await one.close();
    await two.close();
    await test.drop();
  });

  const beat = async (id: string, session: string, sequence: number, consumerLag: number, database = one) =>
    agentsOf(database).heartbeatAgent(local, { id, session, sequence, consumerLag });

  it('calls the agent congested at its threshold and above, and ready below', async () => {
    const { agent, session } = await registered(one, 'lagging', { congestionThreshold: 10 });
    const seen = [];
    for (const [i, lag] of [9, 10, 11, 9].entries()) {
      expect(valueOf(await beat(agent.id, session, i + 1, lag))).toEqual({ id: agent.id, applied: true });
      const { health, version } = await agentState(one, agent.id);
      seen.push([health, version]);
    }
    expect(seen).toEqual([
      ['READY', 1],
      ['CONGESTED', 2],
      ['CONGESTED', 2],
      ['READY', 3],
    ]);
    expect((await changesOf(one, agent.id)).slice(1)).toEqual([
      {
        version: 2,
        op: 'UPDATE',
        from: 'READY',
        to: 'CONGESTED',
        reason: 'ConsumerLagHigh',
        actor: 'local',
        lag: 10,
      },
      {
        version: 3,
        op: 'UPDATE',
        from: 'CONGESTED',
        to: 'READY',
        reason: 'ConsumerLagLow',
        actor: 'local',
        lag: 9,
      },
    ]);
  });

  it('judges in SQL as the model does', async () => {
    const { agent, session } = await registered(one, 'judged', { congestionThreshold: 5 });
    for (let lag = 0; lag <= 10; lag += 1) {
      await beat(agent.id, session, lag + 1, lag);
      expect((await agentState(one, agent.id)).health).toBe(healthAt(lag, 5));
    }
  });

  it('judges by the threshold of the latest registration, and by one that was set behind the server', async () => {
    await registered(one, 'thresholds', { congestionThreshold: 10 });
    const { agent, session } = await registered(one, 'thresholds', { congestionThreshold: 20 });
    await beat(agent.id, session, 1, 15);
    expect(await agentState(one, agent.id)).toMatchObject({ health: 'READY' });
    await one.pool.query('UPDATE agent SET congestion_threshold = 5, version = version + 1 WHERE id = $1', [
      agent.id,
    ]);
    await beat(agent.id, session, 2, 15);
    expect(await agentState(one, agent.id)).toMatchObject({ health: 'CONGESTED' });
  });

  it('takes a stale beat as a success that changes nothing', async () => {
    const { agent, session } = await registered(one, 'stale');
    await beat(agent.id, session, 5, 1);
    await silenced(one, 30, agent.id);
    const before = await agentState(one, agent.id);
    for (const sequence of [5, 4, 1]) {
      expect(valueOf(await beat(agent.id, session, sequence, 500))).toEqual({ id: agent.id, applied: false });
    }
    const after = await agentState(one, agent.id);
    expect(after).toMatchObject({ health: 'READY', version: 1, sequence: 5, lag: 1 });
    expect(after.silentSeconds).toBeGreaterThanOrEqual(before.silentSeconds);
  });

  it('brings an unavailable agent back at once', async () => {
    const { agent, session } = await registered(one, 'lost');
    await one.pool.query(`UPDATE agent SET health = 'UNAVAILABLE', version = version + 1 WHERE id = $1`, [
      agent.id,
    ]);
    await beat(agent.id, session, 1, 0);
    expect(await agentState(one, agent.id)).toMatchObject({ health: 'READY', version: 3 });
    expect((await changesOf(one, agent.id)).at(-1)).toMatchObject({
      from: 'UNAVAILABLE',
      to: 'READY',
      reason: 'HeartbeatResumed',
    });
  });

  it('goes by the clock of the database at receipt and never sets the time back', async () => {
    const { agent, session } = await registered(one, 'clock');
    await silenced(one, 50, agent.id);
    await beat(agent.id, session, 1, 0);
    expect((await agentState(one, agent.id)).silentSeconds).toBeLessThan(10);
    // A database that moved to a machine with a clock 100 s behind.
    await silenced(one, -100, agent.id);
    await beat(agent.id, session, 2, 0);
    expect((await agentState(one, agent.id)).silentSeconds).toBeLessThan(-60);
  });

  it('does not know an agent, or a session, that is none', async () => {
    const { agent, session } = await registered(one, 'known');
    const { agent: other } = await registered(one, 'known-too');
    for (const [id, key] of [
      ['agt_01h455vb4pex5vsknk084sn02q', session],
      [agent.id, 'ses_x'],
      [other.id, session],
    ] as const) {
      expect(await beat(id, key, 1, 0)).toMatchObject({ done: false, failure: { kind: 'NotFound' } });
    }
  });

  it.each([
    [{ id: 'nonsense' }],
    [{ session: 'a\0b' }],
    [{ sequence: 0 }],
    [{ consumerLag: -1 }],
    [{ consumerLag: 2 ** 31 }],
    [{ timestamp: '2030-01-01T00:00:00Z' }],
  ])('refuses %j', async (more) => {
    const { agent, session } = await registered(one, 'strict');
    const input = { id: agent.id, session, sequence: 1, consumerLag: 0, ...more };
    expect(await agentsOf(one).heartbeatAgent(local, input)).toMatchObject({
      failure: { kind: 'InvalidInput' },
    });
  });

  it('lets a token of one agent, or of a prefix, beat for those alone', async () => {
    const mine = await registered(one, 'edge-1');
    const theirs = await registered(one, 'core-1');
    for (const agentName of ['edge-1', 'edge-*']) {
      const caller = someone({ roles: ['AGENT'], agentName });
      const send = async ({ agent, session }: typeof mine, sequence: number, consumerLag = 0) =>
        agentsOf(one).heartbeatAgent(caller, { id: agent.id, session, sequence, consumerLag });
      const { sequence } = await agentState(one, mine.agent.id);
      expect(valueOf(await send(mine, sequence + 1))).toMatchObject({ applied: true });
      expect(valueOf(await send(mine, sequence + 2, 1_000))).toMatchObject({ applied: true });
      expect(valueOf(await send(mine, sequence + 3))).toMatchObject({ applied: true });
      expect(valueOf(await send(mine, sequence + 3))).toMatchObject({ applied: false });
      // Not even whether the session is right.
      for (const lag of [0, 1_000]) {
        expect(await send(theirs, 1, lag)).toMatchObject({ failure: { kind: 'NotFound' } });
      }
    }
    expect(await agentState(one, theirs.agent.id)).toMatchObject({ sequence: 0, lag: 0, version: 1 });
  });

  it('never moves an agent back, in whatever order beats come, on two servers', async () => {
    await one.pool.query(`
      CREATE TABLE witness (n bigserial, agent_id text, session text, sequence bigint, at timestamptz, health text);
      CREATE FUNCTION witness() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO witness (agent_id, session, sequence, at, health)
        VALUES (NEW.agent_id, NEW.session, NEW.sequence, NEW.last_heartbeat_at, NEW.health::text); RETURN NULL; END $$;
      CREATE TRIGGER witness AFTER UPDATE ON agent_internal FOR EACH ROW EXECUTE FUNCTION witness();`);
    let run = 0;
    const beats = fc.array(
      fc.record({ lag: fc.integer({ min: 0, max: 6 }), order: fc.nat(), repeat: fc.boolean() }),
      {
        minLength: 1,
        maxLength: 14,
      },
    );
    await fc.assert(
      fc.asyncProperty(beats, async (plan) => {
        const { agent, session } = await registered(one, `walk-${(run += 1)}`, { congestionThreshold: 3 });
        const sends = plan
          .map(({ lag, order, repeat }, i) => ({ sequence: i + 1, lag, order, repeat }))
          .flatMap((send) => (send.repeat ? [send, { ...send, order: send.order + 1 }] : [send]))
          .sort((a, b) => a.order - b.order);
        const outcomes = await Promise.all(
          sends.map(async ({ sequence, lag }, i) =>
            beat(agent.id, session, sequence, lag, i % 2 === 0 ? one : two),
          ),
        );
        expect(outcomes.every((outcome) => outcome.done)).toBe(true);
        const last = plan.at(-1)?.lag ?? 0;
        const state = await agentState(one, agent.id);
        expect(state).toMatchObject({ sequence: plan.length, lag: last, health: healthAt(last, 3) });
        // Each version has its change, and each change is a move.
        const changes = await changesOf(one, agent.id);
        expect(changes.map(({ version }) => version)).toEqual(changes.map((_, i) => i + 1));
        expect(state.version).toBe(changes.length);
        for (const { from, to } of changes.slice(1)) expect(from).not.toBe(to);
        const { rows } = await one.pool.query<{ backwards: number }>(
          `SELECT count(*)::int AS backwards FROM witness a JOIN witness b USING (agent_id, session)
            WHERE agent_id = $1 AND a.n < b.n AND (b.sequence < a.sequence OR b.at < a.at)`,
          [agent.id],
        );
        expect(rows).toEqual([{ backwards: 0 }]);
      }),
      { numRuns: 60 },
    );
  });
});
