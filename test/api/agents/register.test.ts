import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { Database } from '../../../src/store/database.js';
import {
  agentsOf,
  agentState,
  changesOf,
  registered,
  registration,
  silenced,
  valueOf,
} from '../../support/agents.js';
import { local, someone } from '../../support/callers.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { openStore } from '../../support/open-store.js';

describe('registerAgent', () => {
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

  it('makes a ready agent and gives it a session and the interval of its heartbeats', async () => {
    const { agent, session, heartbeatIntervalSeconds } = await registered(one, 'first');
    expect(agent).toMatchObject({
      name: 'first',
      topic: 'first',
      health: 'READY',
      version: 1,
      cordoned: false,
    });
    expect(session).toMatch(/^ses_[\w-]{32}$/);
    expect(heartbeatIntervalSeconds).toBe(30);
    expect(await agentState(one, agent.id)).toMatchObject({ sequence: 0, lag: 0 });
    // Whoever watches is told of its liveness with its first change.
    expect(await changesOf(one, agent.id)).toMatchObject([
      { version: 1, op: 'INSERT', reason: 'Registered', lag: 0 },
    ]);
  });

  it('replaces the fields of an agent of that name, keeps its id, and begins a new session', async () => {
    const before = await registered(one, 'again', {
      labels: { zone: 'a' },
      cost: 'HIGH',
      topic: 'again-old',
    });
    const after = await registered(one, 'again', { serviceTypes: [], environment: 'prod' });
    expect(after.agent).toMatchObject({
      id: before.agent.id,
      version: 2,
      labels: {},
      cost: 'MEDIUM',
      topic: 'again',
      serviceTypes: [],
      environment: 'prod',
    });
    expect(after.session).not.toBe(before.session);
    const beat = { id: before.agent.id, session: before.session, sequence: 9, consumerLag: 0 };
    expect(await agentsOf(one).heartbeatAgent(local, beat)).toMatchObject({ failure: { kind: 'NotFound' } });
  });

  it('starts the sequence anew with the session', async () => {
    const first = await registered(one, 'sequence');
    await agentsOf(one).heartbeatAgent(local, {
      id: first.agent.id,
      session: first.session,
      sequence: 50,
      consumerLag: 3,
    });
    const second = await registered(one, 'sequence');
    const beat = { id: first.agent.id, session: second.session, sequence: 1, consumerLag: 1 };
    expect(valueOf(await agentsOf(one).heartbeatAgent(local, beat))).toMatchObject({ applied: true });
    expect(await agentState(one, first.agent.id)).toMatchObject({ sequence: 1, lag: 1, version: 1 });
  });

  it('writes no change when the public content is the same', async () => {
    const { agent } = await registered(one, 'same', { labels: { a: '1', b: '2' } });
    const again = await registered(one, 'same', { labels: { b: '2', a: '1' } });
    expect(again.agent).toEqual(agent);
    expect(await changesOf(one, agent.id)).toHaveLength(1);
  });

  it('makes an unavailable agent ready, as a change that says so', async () => {
    const { agent } = await registered(one, 'returning');
    await one.pool.query(`UPDATE agent SET health = 'UNAVAILABLE', version = version + 1 WHERE id = $1`, [
      agent.id,
    ]);
    await silenced(one, 300, agent.id);
    const again = await registered(one, 'returning');
    expect(again.agent).toMatchObject({ health: 'READY', version: 3 });
    expect((await agentState(one, agent.id)).silentSeconds).toBeLessThan(60);
    expect((await changesOf(one, agent.id)).at(-1)).toMatchObject({
      from: 'UNAVAILABLE',
      to: 'READY',
      reason: 'Registered',
    });
  });

  it('keeps an agent cordoned', async () => {
    const { agent } = await registered(one, 'cordoned');
    await agentsOf(one).cordonAgent(local, { id: agent.id, cordoned: true });
    expect((await registered(one, 'cordoned', { cost: 'LOW' })).agent).toMatchObject({
      cordoned: true,
      cost: 'LOW',
    });
  });

  it('mends an agent whose internal row is missing', async () => {
    const { agent } = await registered(one, 'half');
    await one.pool.query('DELETE FROM agent_internal WHERE agent_id = $1', [agent.id]);
    const again = await registered(one, 'half');
    const beat = { id: agent.id, session: again.session, sequence: 1, consumerLag: 0 };
    expect(valueOf(await agentsOf(one).heartbeatAgent(local, beat))).toMatchObject({ applied: true });
  });

  it('lets two first registrations at once both succeed, on two servers, with one row', async () => {
    for (let round = 0; round < 25; round += 1) {
      const name = `twins-${round}`;
      const both = await Promise.all([one, two, one, two].map((database) => registered(database, name)));
      expect(new Set(both.map(({ agent }) => agent.id)).size).toBe(1);
      expect(new Set(both.map(({ session }) => session)).size).toBe(4);
      const { rows } = await one.pool.query('SELECT count(*)::int AS n FROM agent WHERE name = $1', [name]);
      expect(rows).toEqual([{ n: 1 }]);
    }
  });

  it('refuses the topic of another agent, new or known, and writes nothing', async () => {
    await registered(one, 'owner', { topic: 'shared' });
    const { agent } = await registered(one, 'other');
    for (const name of ['thief', 'other']) {
      const outcome = await agentsOf(two).registerAgent(
        local,
        registration(name, { topic: 'shared', cost: 'LOW' }),
      );
      expect(outcome).toMatchObject({ done: false, failure: { kind: 'AgentConflict' } });
    }
    const { rows } = await one.pool.query(
      `SELECT name FROM agent WHERE name IN ('thief', 'other') OR topic = 'shared' ORDER BY name`,
    );
    expect(rows).toEqual([{ name: 'other' }, { name: 'owner' }]);
    expect(await changesOf(one, agent.id)).toHaveLength(1);
  });

  it('gives a topic to exactly one of two agents that ask at once', async () => {
    for (let round = 0; round < 10; round += 1) {
      const outcomes = await Promise.all(
        [one, two].map((database, i) =>
          agentsOf(database).registerAgent(
            local,
            registration(`rival-${round}-${i}`, { topic: `prize-${round}` }),
          ),
        ),
      );
      expect(outcomes.map((outcome) => (outcome.done ? 'won' : outcome.failure.kind)).sort()).toEqual([
        'AgentConflict',
        'won',
      ]);
    }
  });

  it('refuses, rather than fails, two agents that ask for the topic of each other', async () => {
    await registered(one, 'swap-a');
    await registered(one, 'swap-b');
    for (let round = 0; round < 10; round += 1) {
      const outcomes = await Promise.all([
        agentsOf(one).registerAgent(local, registration('swap-a', { topic: 'swap-b' })),
        agentsOf(two).registerAgent(local, registration('swap-b', { topic: 'swap-a' })),
      ]);
      for (const outcome of outcomes) expect(outcome).toMatchObject({ failure: { kind: 'AgentConflict' } });
    }
  });

  it('succeeds while the same agent is being deregistered', async () => {
    for (let round = 0; round < 25; round += 1) {
      const { agent } = await registered(one, 'flapping');
      const [, again] = await Promise.all([
        agentsOf(one).deregisterAgent(local, { id: agent.id }),
        registered(two, 'flapping'),
      ]);
      expect(again.agent).toMatchObject({ name: 'flapping', health: 'READY' });
    }
  });

  it('refuses a protocol that this server does not speak, and says how to mend it', async () => {
    const outcome = await agentsOf(one).registerAgent(local, registration('future', { protocolVersion: 7 }));
    expect(outcome).toMatchObject({
      failure: {
        kind: 'IncompatibleProtocol',
        found: 7,
        minimum: 1,
        current: 1,
        message: expect.stringMatching(/upgrade the server/),
      },
    });
  });

  it.each([
    [{ name: 'a.b' }, 'name'],
    [{ topic: 'slipway.>' }, 'topic'],
    [{ serviceTypes: ['*'] }, 'serviceTypes'],
    [{ congestionThreshold: 0 }, 'congestionThreshold'],
    [{ labels: { '-': 'x' } }, 'labels'],
    [{ health: 'READY' }, undefined],
  ])('refuses %j and names the field', async (more, field) => {
    const outcome = await agentsOf(one).registerAgent(local, registration('bad', more));
    expect(outcome).toMatchObject({ failure: { kind: 'InvalidInput' } });
    if (!outcome.done && outcome.failure.kind === 'InvalidInput' && field !== undefined) {
      expect(outcome.failure.issues[0]?.path.slice(0, 2)).toEqual(['input', field]);
    }
  });

  it('lets a token made for one name, or a prefix, register that and nothing else', async () => {
    const exact = someone({ roles: ['AGENT'], agentName: 'mine' });
    const prefix = someone({ roles: ['AGENT'], agentName: 'rack-*' });
    valueOf(await agentsOf(one).registerAgent(exact, registration('mine')));
    valueOf(await agentsOf(one).registerAgent(prefix, registration('rack-7')));
    await expect(agentsOf(one).registerAgent(exact, registration('mine2'))).rejects.toMatchObject({
      code: 'FORBIDDEN',
    });
    await expect(agentsOf(one).registerAgent(prefix, registration('rack'))).rejects.toMatchObject({
      code: 'FORBIDDEN',
    });
    await expect(
      agentsOf(one).registerAgent(someone({ roles: ['OPERATOR'] }), registration('mine')),
    ).rejects.toMatchObject({
      code: 'FORBIDDEN',
    });
  });
});
