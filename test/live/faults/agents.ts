/** Agents that never fall silent, whatever happens to the servers. */
import { setTimeout as delay } from 'node:timers/promises';

import type { Run } from './run.js';
import { post } from './writers.js';

export interface Agents {
  /** Beats that a server took. */
  readonly beats: number;
  stop(): Promise<void>;
}

const REGISTER = `mutation ($input: RegisterAgentInput!) { registerAgent(input: $input) { __typename
  ... on RegisterAgentPayload { session agent { id } } } }`;
const BEAT = 'mutation ($input: HeartbeatAgentInput!) { heartbeatAgent(input: $input) { __typename } }';
const BEAT_EVERY_MS = 100;

interface Registered {
  readonly registerAgent?: { readonly session: string; readonly agent: { readonly id: string } };
  readonly heartbeatAgent?: { readonly __typename: string };
}

export async function startAgents(run: Run, count: number): Promise<Agents> {
  let beats = 0;
  const stopping = new AbortController();
  const running: Promise<void>[] = [];
  for (let made = 0; made < count; made += 1) {
    const input = {
      name: `agent-${made}`,
      topic: `topic-${made}`,
      protocolVersion: 1,
      serviceTypes: ['process'],
    };
    const answer = await post(run.fleet.any(run.random).url, REGISTER, { input });
    const registered = (answer.data as Registered | null)?.registerAgent; // what was asked for
    if (!registered) throw new Error(`an agent was not registered: ${JSON.stringify(answer)}`);
    running.push(beat(registered.agent.id, registered.session, run.random.fork(input.name)));
  }

  async function beat(id: string, session: string, random: Run['random']): Promise<void> {
    for (let sequence = 1; !stopping.signal.aborted; sequence += 1) {
      // To all at once: the one that sleeps takes its own in when it wakes up, late and out of order.
      await Promise.race(
        run.fleet.servers.map((server) =>
          send(server.url, { id, session, sequence, consumerLag: random.below(5) }),
        ),
      );
      await delay(BEAT_EVERY_MS);
    }
  }

  async function send(url: string, input: object): Promise<void> {
    try {
      const answer = await post(url, BEAT, { input });
      if ((answer.data as Registered | null)?.heartbeatAgent?.__typename === 'HeartbeatAgentPayload') {
        beats += 1;
      } // what was asked for
    } catch {
      await delay(1_000); // that server is away; another one takes the beat
    }
  }

  return {
    get beats() {
      return beats;
    },
    async stop() {
      stopping.abort();
      await Promise.all(running);
    },
  };
}
