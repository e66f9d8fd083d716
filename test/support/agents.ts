import { agentCommands, type AgentCommands, type Registered } from '../../src/agents/index.js';
import { systemClock } from '../../src/kernel/clock.js';
import type { Outcome } from '../../src/kernel/failure.js';
import type { Database } from '../../src/store/database.js';
import { local } from './callers.js';

export function agentsOf(database: Database): AgentCommands {
  return agentCommands({ database, clock: systemClock, heartbeatIntervalSeconds: 30 });
}

export function registration(name: string, more: object = {}): object {
  return { name, serviceTypes: ['process'], protocolVersion: 1, ...more };
}

export function valueOf<T>(outcome: Outcome<T>): T {
  if (!outcome.done) throw new Error(`refused: ${JSON.stringify(outcome.failure)}`);
  return outcome.value;
}

export async function registered(database: Database, name: string, more: object = {}): Promise<Registered> {
  return valueOf(await agentsOf(database).registerAgent(local, registration(name, more)));
}

export interface AgentState {
  readonly health: string;
  readonly version: number;
  readonly sequence: number;
  readonly lag: number;
  readonly silentSeconds: number;
}

/** Everything of one agent, as the owner sees it. */
export async function agentState(database: Database, id: string): Promise<AgentState> {
  const { rows } = await database.pool.query<AgentState>(
    `SELECT a.health::text, a.version, i.sequence::int, i.consumer_lag AS lag,
            extract(epoch FROM clock_timestamp() - i.last_heartbeat_at)::float8 AS "silentSeconds"
       FROM agent a JOIN agent_internal i ON i.agent_id = a.id WHERE a.id = $1`,
    [id],
  );
  const row = rows[0];
  if (!row) throw new Error(`no agent ${id}`);
  return row;
}

/** Makes the last heartbeat look that old. */
export async function silenced(database: Database, seconds: number, id?: string): Promise<void> {
  await database.pool.query(
    `UPDATE agent_internal SET last_heartbeat_at = clock_timestamp() - make_interval(secs => $1) WHERE $2::text IS NULL OR agent_id = $2`,
    [seconds, id ?? null],
  );
}

export interface LoggedChange {
  readonly version: number;
  readonly op: string;
  readonly from: string | null;
  readonly to: string | null;
  readonly reason: string | null;
  readonly actor: string;
  readonly lag: number | null;
}

export async function changesOf(database: Database, id: string): Promise<LoggedChange[]> {
  const { rows } = await database.pool.query<LoggedChange>(
    `SELECT c.version, c.op::text, c.from_state AS "from", c.to_state AS "to", c.reason, c.actor, (p.after->>'consumerLag')::int AS lag
       FROM change c JOIN change_payload p USING (seq) WHERE c.object_id = $1 ORDER BY c.seq`,
    [id],
  );
  return rows;
}
