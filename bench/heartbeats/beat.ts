/** One heartbeat, as the driver's statement and as the mutation. */
import type { BenchAgent } from '../support/fixture.js';

/** An agent of one client alone. */
export interface BeatingAgent extends BenchAgent {
  sequence: number;
}

export function ownAgents(agents: readonly BenchAgent[], client: number, clients: number): BeatingAgent[] {
  return agents.filter((_, index) => index % clients === client).map((agent) => ({ ...agent, sequence: 0 }));
}

/** Commands that wait: changes with each beat, and stays far from what would change the health. */
export function lagOf(sequence: number): number {
  return sequence % 10;
}

export const BEAT_STATEMENT =
  'UPDATE agent_internal SET sequence = $3, consumer_lag = $4,' +
  ' last_heartbeat_at = greatest(last_heartbeat_at, clock_timestamp())' +
  ' WHERE agent_id = $1 AND session = $2 AND sequence < $3';

const DOCUMENT = `mutation Beat($input: HeartbeatAgentInput!) {
  heartbeatAgent(input: $input) {
    __typename
    ... on HeartbeatAgentPayload { applied }
    ... on Failure { code message }
  }
}`;

export function beatBody({ id, session, sequence }: BeatingAgent): string {
  const input = { id, session, sequence, consumerLag: lagOf(sequence) };
  return JSON.stringify({ query: DOCUMENT, variables: { input } });
}
