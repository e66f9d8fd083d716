import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { silenced } from '../../support/agents.js';
import { startTestGraph, type TestGraph } from '../../support/graph.js';

let graph: TestGraph;
beforeAll(async () => {
  graph = await startTestGraph();
});
afterAll(() => graph.close());

const REGISTER = `mutation ($name: String!) {
  registerAgent(input: { name: $name, serviceTypes: ["process"], protocolVersion: 1, congestionThreshold: 5 }) {
    ... on RegisterAgentPayload { session agent { id version health } }
  }
}`;
const BEAT = `mutation ($input: HeartbeatAgentInput!) {
  heartbeatAgent(input: $input) { __typename ... on HeartbeatAgentPayload { applied agent { health consumerLag } } }
}`;

describe('agentHealthChanged', () => {
  it('tells each move with the lag of its moment, held by the event', async () => {
    const stream = await graph.stream(
      'subscription ($after: ChangeCursor) { agentHealthChanged(after: $after) { from to reason consumerLag agent { name health consumerLag lastHeartbeatAt } } }',
      { after: await graph.feed.head() },
    );
    const { data } = await graph.run(REGISTER, { name: 'east' });
    const { agent, session } = data.registerAgent;
    const beat = (sequence: number, consumerLag: number) =>
      graph.run(BEAT, { input: { id: agent.id, session, sequence, consumerLag } });
    expect((await beat(1, 1)).data.heartbeatAgent).toEqual({
      __typename: 'HeartbeatAgentPayload',
      applied: true,
      agent: { health: 'READY', consumerLag: 1 },
    });
    await beat(2, 9);
    await beat(3, 2);
    const told: unknown[] = [];
    const statements = await graph.readStatements(async () => {
      for (let move = 0; move < 3; move += 1) told.push((await stream.next()).data.agentHealthChanged);
    });
    await stream.close();
    expect(told).toMatchObject([
      { from: null, to: 'READY' },
      { from: 'READY', to: 'CONGESTED', consumerLag: 9, agent: { health: 'CONGESTED', consumerLag: 9 } },
      { from: 'CONGESTED', to: 'READY', consumerLag: 2, agent: { health: 'READY', consumerLag: 2 } },
    ]);
    expect(statements).toEqual([]);
  });
});

describe('watchAgents', () => {
  it('begins with the agents and what their last heartbeats said, and ends with one that is deregistered', async () => {
    const { data } = await graph.run(REGISTER, { name: 'west' });
    const { id } = data.registerAgent.agent;
    await silenced(graph.database, 5, id);
    const stream = await graph.stream(
      `subscription { watchAgents(filter: { name: { equals: "west" } }) {
        __typename
        ... on AgentAdded { agent { id lastHeartbeatAt consumerLag } }
        ... on AgentRemoved { id reason agent { name lastHeartbeatAt } }
      } }`,
    );
    const first = await stream.next();
    expect(first.data.watchAgents).toMatchObject({ __typename: 'AgentAdded', agent: { id, consumerLag: 0 } });
    expect(first.data.watchAgents.agent.lastHeartbeatAt).toMatch(/Z$/);
    expect((await stream.next()).data.watchAgents.__typename).toBe('SnapshotEnd');
    const gone = await graph.run(
      'mutation ($id: ID!) { deregisterAgent(input: { id: $id }) { ... on DeregisterAgentPayload { agent { name } } } }',
      { id },
    );
    expect(gone.data.deregisterAgent).toEqual({ agent: { name: 'west' } });
    expect((await stream.next()).data.watchAgents).toMatchObject({
      id,
      reason: 'DELETED',
      agent: { name: 'west' },
    });
    await stream.close();
    expect((await graph.run('query ($id: ID!) { agent(id: $id) { id } }', { id })).data).toEqual({
      agent: null,
    });
  });

  it('lists and finds agents by name', async () => {
    const { data } = await graph.run(
      '{ agent(name: "east") { name serviceTypes } agents(filter: { health: { in: [READY] } }) { totalCount nodes { name lastHeartbeatAt } } }',
    );
    expect(data.agent).toEqual({ name: 'east', serviceTypes: ['process'] });
    expect(data.agents.totalCount).toBe(1);
  });
});
