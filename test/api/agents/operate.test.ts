import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { Database } from '../../../src/store/database.js';
import { agentsOf, changesOf, registered, valueOf } from '../../support/agents.js';
import { local, someone } from '../../support/callers.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { openStore } from '../../support/open-store.js';

let test: TestDatabase;
let store: Database;
beforeAll(async () => {
  test = await createDatabase();
  store = openStore(test);
});
afterAll(async () => {
  await store.close();
  await test.drop();
});

describe('cordonAgent', () => {
  it('cordons, takes it back, and writes nothing where nothing changes', async () => {
    const { agent } = await registered(store, 'cordon');
    const { cordonAgent } = agentsOf(store);
    expect(valueOf(await cordonAgent(local, { id: agent.id, cordoned: false }))).toEqual(agent);
    expect(valueOf(await cordonAgent(local, { id: agent.id, cordoned: true }))).toMatchObject({
      cordoned: true,
      version: 2,
    });
    expect(valueOf(await cordonAgent(local, { id: agent.id, cordoned: true }))).toMatchObject({
      cordoned: true,
      version: 2,
    });
    expect(valueOf(await cordonAgent(local, { id: agent.id, cordoned: false }))).toMatchObject({
      cordoned: false,
      version: 3,
    });
    expect((await changesOf(store, agent.id)).map(({ reason }) => reason)).toEqual([
      'Registered',
      'Cordoned',
      'Uncordoned',
    ]);
  });

  it('gives the fresh agent to whoever named an old version', async () => {
    const { agent } = await registered(store, 'conflict');
    const { cordonAgent } = agentsOf(store);
    await cordonAgent(local, { id: agent.id, cordoned: true, expectedVersion: 1 });
    expect(await cordonAgent(local, { id: agent.id, cordoned: false, expectedVersion: 1 })).toMatchObject({
      failure: {
        kind: 'VersionConflict',
        currentVersion: 2,
        current: { id: agent.id, cordoned: true, version: 2 },
      },
    });
  });

  it('is not for agents, nor for developers', async () => {
    const { agent } = await registered(store, 'not-yours');
    for (const caller of [
      someone({ roles: ['AGENT'], agentName: 'not-yours' }),
      someone({ roles: ['DEPLOYER'] }),
    ]) {
      expect(await agentsOf(store).cordonAgent(caller, { id: agent.id, cordoned: true })).toMatchObject({
        failure: { kind: 'NotFound' },
      });
    }
    expect(await changesOf(store, agent.id)).toHaveLength(1);
  });
});

describe('deregisterAgent', () => {
  it('removes the agent and what stood beside it, and says so in one change that names who', async () => {
    const { agent, session } = await registered(store, 'leaving');
    const gone = valueOf(
      await agentsOf(store).deregisterAgent(someone({ roles: ['OPERATOR'] }), { id: agent.id }),
    );
    expect(gone).toMatchObject({ id: agent.id, version: 2, deletedAt: expect.any(Date) });
    expect((await changesOf(store, agent.id)).at(-1)).toMatchObject({
      version: 2,
      op: 'DELETE',
      reason: 'Deregistered',
      actor: 'test:OPERATOR',
    });
    const { rows } = await store.pool.query(
      'SELECT FROM agent WHERE id = $1 UNION ALL SELECT FROM agent_internal WHERE agent_id = $1',
      [agent.id],
    );
    expect(rows).toHaveLength(0);
    for (const outcome of [
      await agentsOf(store).deregisterAgent(local, { id: agent.id }),
      await agentsOf(store).heartbeatAgent(local, { id: agent.id, session, sequence: 9, consumerLag: 0 }),
    ]) {
      expect(outcome).toMatchObject({ failure: { kind: 'NotFound' } });
    }
  });

  it('gives name and topic back', async () => {
    const { agent } = await registered(store, 'returning', { topic: 'lane' });
    await agentsOf(store).deregisterAgent(local, { id: agent.id });
    expect((await registered(store, 'successor', { topic: 'lane' })).agent.id).not.toBe(agent.id);
    expect((await registered(store, 'returning')).agent).toMatchObject({ version: 1 });
  });

  it('lets an agent take itself away, and no other', async () => {
    const { agent } = await registered(store, 'self');
    const { deregisterAgent } = agentsOf(store);
    expect(
      await deregisterAgent(someone({ roles: ['AGENT'], agentName: 'other' }), { id: agent.id }),
    ).toMatchObject({
      failure: { kind: 'NotFound' },
    });
    expect(
      await deregisterAgent(someone({ roles: ['AGENT'], agentName: 'self' }), { id: agent.id }),
    ).toMatchObject({ done: true });
  });

  it('ends while heartbeats go on, without a lock that never comes free', async () => {
    for (let round = 0; round < 20; round += 1) {
      const { agent, session } = await registered(store, `busy-${round}`, { congestionThreshold: 2 });
      const beats = Array.from({ length: 8 }, async (_, i) =>
        agentsOf(store).heartbeatAgent(local, { id: agent.id, session, sequence: i + 1, consumerLag: i % 4 }),
      );
      const [outcome] = await Promise.all([
        agentsOf(store).deregisterAgent(local, { id: agent.id }),
        ...beats,
      ]);
      expect(outcome).toMatchObject({ done: true });
      expect((await changesOf(store, agent.id)).filter(({ op }) => op === 'DELETE')).toHaveLength(1);
    }
  });
});
