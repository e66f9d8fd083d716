import type { EnumRef } from '@pothos/core';

import type { Graph } from '../graph/graph.js';
import type { Types } from '../graph/graph-types.js';
import { INPUT_WORDS } from '../graph/input-words.js';
import { addMutation, addPayload } from '../graph/mutation.js';
import type { AgentCommands, Beaten, Registered } from './commands.js';
import { CONGESTION_THRESHOLD_DEFAULT, SERVICE_TYPES_MAX, type AgentCost } from './model.js';

interface Enums {
  readonly cost: EnumRef<Types, AgentCost>;
}

/** Writes of agents: by the agents themselves, and by operators. */
export function addAgentMutations(graph: Graph, enums: Enums, commands: AgentCommands): void {
  addRegister(graph, enums, commands);
  addHeartbeat(graph, commands);
  addOperating(graph, commands);
}

function addRegister({ builder, types }: Graph, enums: Enums, commands: AgentCommands): void {
  const payload = builder.objectRef<Registered>('RegisterAgentPayload').implement({
    description: '`registerAgent` was carried out.',
    fields: (t) => ({
      agent: t.field({
        type: types.Agent,
        description: 'The agent as it is now.',
        resolve: (done) => done.agent,
      }),
      session: t.exposeString('session', {
        description: 'To be named in every heartbeat; ends with the next registration. Shown to nobody else.',
      }),
      heartbeatIntervalSeconds: t.exposeFloat('heartbeatIntervalSeconds', {
        description: 'How often to beat, in seconds.',
      }),
    }),
  });
  addMutation(builder, 'registerAgent', {
    description:
      'Makes an agent known, or known anew: the same name is the same agent, and everything it says of itself is replaced.',
    object: 'AGENT',
    input: builder.inputType('RegisterAgentInput', {
      description: 'All that an agent says of itself.',
      fields: (t) => ({
        name: t.string({ required: true, description: 'Its name: at most 239 letters, digits, `-` or `_`.' }),
        topic: t.string({ description: 'Where its commands go, like a name. Null: its name.' }),
        environment: t.string({ description: 'The environment that it is in. Null: none.' }),
        serviceTypes: t.stringList({
          required: true,
          description: `The service types that it can carry out, at most ${SERVICE_TYPES_MAX}.`,
        }),
        cost: t.field({ type: enums.cost, description: 'How dear it is. Null: MEDIUM.' }),
        labels: t.field({ type: 'Labels', description: 'Its labels. Null: none.' }),
        congestionThreshold: t.int({
          description: `At how many waiting commands it is CONGESTED, at least 1. Null: ${CONGESTION_THRESHOLD_DEFAULT}.`,
        }),
        softwareVersion: t.string({ description: 'What it runs, at most 100 characters. Null: not said.' }),
        protocolVersion: t.int({
          required: true,
          description: 'The version of the protocol that it speaks; see `serverInfo`.',
        }),
      }),
    }),
    payload,
    failures: ['InvalidInput', 'AgentConflict', 'IncompatibleProtocol'],
    run: (caller, value) => commands.registerAgent(caller, value),
  });
}

function addHeartbeat({ builder, types, reader }: Graph, commands: AgentCommands): void {
  const payload = builder.objectRef<Beaten>('HeartbeatAgentPayload').implement({
    description: '`heartbeatAgent` was carried out.',
    fields: (t) => ({
      applied: t.exposeBoolean('applied', {
        description: 'False for a stale beat: a newer one was there already, and nothing changed.',
      }),
      agent: t.field({
        type: types.Agent,
        nullable: true,
        description:
          'The agent as it is now; null if the caller may not read agents. Read only when selected.',
        resolve: ({ id }, _args, context, info) => reader.byId('AGENT', id, context, info),
      }),
    }),
  });
  addMutation(builder, 'heartbeatAgent', {
    description:
      'Says that an agent is alive. A stale beat succeeds and changes nothing; NotFound means: register again.',
    object: 'AGENT',
    input: builder.inputType('HeartbeatAgentInput', {
      description: 'One heartbeat.',
      fields: (t) => ({
        id: t.id({ required: true, description: 'Which agent.' }),
        session: t.string({ required: true, description: 'The session that its registration gave.' }),
        sequence: t.int({ required: true, description: 'Counts up within the session, from 1.' }),
        consumerLag: t.int({ required: true, description: 'How many commands wait at the agent.' }),
      }),
    }),
    payload,
    failures: ['NotFound', 'InvalidInput'],
    run: (caller, value) => commands.heartbeatAgent(caller, value),
  });
}

function addOperating({ builder, types }: Graph, commands: AgentCommands): void {
  addMutation(builder, 'deregisterAgent', {
    description: 'Takes an agent off the list, for good; a later registration of its name makes a new one.',
    object: 'AGENT',
    input: builder.inputType('DeregisterAgentInput', {
      description: 'Which agent to take off the list.',
      fields: (t) => ({
        id: t.id({ required: true, description: 'Which agent.' }),
        expectedVersion: t.int({ description: INPUT_WORDS.expectedVersion }),
      }),
    }),
    payload: addPayload(builder, 'deregisterAgent', 'agent', types.Agent, 'The agent as it was last.'),
    failures: ['NotFound', 'VersionConflict', 'InvalidInput'],
    run: (caller, value) => commands.deregisterAgent(caller, value),
  });
  addMutation(builder, 'cordonAgent', {
    description: 'Keeps new work from an agent, or lets it have new work again. What it has, it keeps.',
    object: 'AGENT',
    input: builder.inputType('CordonAgentInput', {
      description: 'Which agent, and whether to keep new work from it.',
      fields: (t) => ({
        id: t.id({ required: true, description: 'Which agent.' }),
        cordoned: t.boolean({
          required: true,
          description: 'True keeps new work from it, false lets it have new work again.',
        }),
        expectedVersion: t.int({ description: INPUT_WORDS.expectedVersion }),
      }),
    }),
    payload: addPayload(builder, 'cordonAgent', 'agent', types.Agent, 'The agent as it is now.'),
    failures: ['NotFound', 'VersionConflict', 'InvalidInput'],
    run: (caller, value) => commands.cordonAgent(caller, value),
  });
}
