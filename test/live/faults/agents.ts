/** Agents that never fall silent, whatever happens to the servers; and whether one was called silent although it beat. */
import { setTimeout as delay } from 'node:timers/promises';

import type { Run } from './run.js';
import { post } from './writers.js';

export interface Agents {
  /** Beats that a server took. */
  readonly beats: number;
  stop(): Promise<void>;
  /** Judges every mark that the log holds. */
  silences(silenceSeconds: number): Promise<Silences>;
}

export interface Silences {
  /** A beat was taken within the time, and answered before the mark was made. */
  readonly wrong: readonly string[];
  /** No server had taken a beat for so long: a machine that is too busy makes such silences. */
  readonly real: number;
}

interface BeatInput {
  readonly id: string;
  readonly session: string;
  readonly sequence: number;
  readonly consumerLag: number;
}

/** When a beat was sent, and when the answer that it counts was there, by the clock that the database tells time by. */
interface Beat {
  readonly sentMs: number;
  readonly answeredMs: number;
}

const REGISTER = `mutation ($input: RegisterAgentInput!) { registerAgent(input: $input) { __typename
  ... on RegisterAgentPayload { session agent { id } } } }`;
const BEAT = `mutation ($input: HeartbeatAgentInput!) { heartbeatAgent(input: $input) { __typename
  ... on HeartbeatAgentPayload { applied } } }`;
const BEAT_EVERY_MS = 100;
/** The log and this process tell time in whole milliseconds. */
const ROUNDED_MS = 2;

interface Answered {
  readonly registerAgent?: { readonly session: string; readonly agent: { readonly id: string } };
  readonly heartbeatAgent?: { readonly __typename: string; readonly applied?: boolean };
}

export async function startAgents(run: Run, count: number): Promise<Agents> {
  let beats = 0;
  const taken = new Map<string, Beat[]>();
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
    const registered = (answer.data as Answered | null)?.registerAgent; // what was asked for
    if (!registered) throw new Error(`an agent was not registered: ${JSON.stringify(answer)}`);
    taken.set(registered.agent.id, []);
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

  async function send(url: string, input: BeatInput): Promise<void> {
    const sentMs = Date.now();
    try {
      const answer = await post(url, BEAT, { input });
      const beaten = (answer.data as Answered | null)?.heartbeatAgent; // what was asked for
      if (beaten?.__typename === 'HeartbeatAgentPayload') beats += 1;
      if (beaten?.applied === true) taken.get(input.id)?.push({ sentMs, answeredMs: Date.now() });
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
    async silences(silenceSeconds) {
      const marks = await run.fleet.sql<{ id: string; ms: number }>(
        `select object_id as id, (extract(epoch from at) * 1000)::float8 as ms from change
          where kind = 'AGENT' and to_state = 'UNAVAILABLE' and from_state <> 'UNAVAILABLE'`,
      );
      const wrong = marks.flatMap(({ id, ms }) => {
        const beaten = taken.get(id)?.find((one) => hides(one, ms, silenceSeconds * 1_000));
        return beaten
          ? [`${id} was called UNAVAILABLE ${Math.round(ms - beaten.sentMs)} ms after it had beaten`]
          : [];
      });
      return { wrong, real: marks.length - wrong.length };
    },
  };
}

/** Whoever marks at `ms` must have known of the beat, and may not have called it too old. */
function hides({ sentMs, answeredMs }: Beat, ms: number, silenceMs: number): boolean {
  return answeredMs < ms - ROUNDED_MS && sentMs > ms - silenceMs + ROUNDED_MS;
}
