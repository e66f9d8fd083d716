import { randomUUID } from 'node:crypto';
import type { PoolClient } from 'pg';

import type { Grant } from '../access/grant.js';
import { parseId, type AgentId } from '../kernel/ids.js';
import type { Queryable, Statement } from '../store/database.js';
import type { AgentRow } from '../store/rows.js';
import { columnList } from '../store/tables.js';
import { updateRow, type Settable, type Stamp } from '../store/versioned.js';
import type { AgentSession } from './internals.js';
import { AGENT_REASONS, type Heartbeat, type Registration, type RegistrationChanges } from './model.js';

/**
 * Writes of agents. Liveness is judged by the database's clock alone, read when a row is written: replicas share it,
 * and what an agent's clock says is never asked.
 *
 * Lock order: whoever may change an agent's health locks its row of agent_internal first, then the row of agent. So a
 * heartbeat and a sweep of one agent always follow each other, and each sees in agent_internal what the other did.
 */

/** The agent's name, as far as the grant limits it: exact, or a prefix. Null, null: any. */
function nameLimit(grant: Grant): { readonly exact: string | null; readonly prefix: string | null } {
  const { agentName } = grant;
  if (agentName === null) return { exact: null, prefix: null };
  return agentName.endsWith('*')
    ? { exact: null, prefix: agentName.slice(0, -1) }
    : { exact: agentName, prefix: null };
}

// Names never change, so this read needs no lock. `name = NULL` is unknown, and unknown OR true is true.
const NAME_WITHIN_LIMIT =
  ' AND EXISTS (SELECT FROM agent WHERE id = $1 AND (name = $5::text OR starts_with(name, $6::text)))';

const JUDGED = `(CASE WHEN $4::int >= congestion_threshold THEN 'CONGESTED' ELSE 'READY' END)::"AgentHealth"`;
const BEAT =
  'UPDATE agent_internal SET sequence = $3::bigint, consumer_lag = $4::int,' +
  // Never back, also when the database moves to a machine whose clock is behind.
  ' last_heartbeat_at = greatest(last_heartbeat_at, clock_timestamp())' +
  ' WHERE agent_id = $1 AND session = $2 AND sequence < $3::bigint';

/**
 * The common beat: newer, and no other health. One small write of one row, which no reader and no feed is told of.
 * False says only that this was not one.
 */
export async function agentBeat(
  pool: Queryable,
  grant: Grant<'agent:beat'>,
  beat: Heartbeat,
): Promise<boolean> {
  const result = await pool.query(
    beatStatement(grant, 'agent_beat', beat, (limit) => `${BEAT} AND health = ${JUDGED}${limit} RETURNING 1`),
  );
  return result.rows.length === 1;
}

/**
 * A beat that may move the health: still one statement, in which beat, health, version and change row stand or fall
 * together. Decides by the row of agent_internal as it is once locked. False: no such agent and session, or stale.
 */
export async function agentBeatMoving(
  writer: Queryable,
  grant: Grant<'agent:beat'>,
  beat: Heartbeat,
): Promise<boolean> {
  const { resumed, congested, relieved } = AGENT_REASONS;
  const result = await writer.query(
    beatStatement(
      grant,
      'agent_beat_moving',
      beat,
      (limit) =>
        `WITH beat AS (${BEAT}${limit} RETURNING agent_id, health AS was, ${JUDGED} AS judged),` +
        ' moved AS (UPDATE agent SET health = beat.judged, version = version + 1, changed_by = $7, trace_id = $8,' +
        ' change_token = $9, change_message = NULL, change_reason = CASE' +
        ` WHEN beat.was = 'UNAVAILABLE' THEN $10 WHEN beat.judged = 'CONGESTED' THEN $11 ELSE $12 END` +
        ' FROM beat WHERE agent.id = beat.agent_id AND beat.was <> beat.judged)' +
        ' SELECT 1 FROM beat',
      [grant.actor.id, grant.traceId, randomUUID(), resumed, congested, relieved],
    ),
  );
  return result.rows.length === 1;
}

function beatStatement(
  grant: Grant<'agent:beat'>,
  name: string,
  beat: Heartbeat,
  text: (limit: string) => string,
  more: unknown[] = [],
): Statement {
  const { exact, prefix } = nameLimit(grant);
  const limited = exact !== null || prefix !== null;
  // Without a limit the two parameters are still there, so that those that follow keep their numbers.
  const limit = limited ? NAME_WITHIN_LIMIT : ' AND $5::text IS NULL AND $6::text IS NULL';
  return {
    name: limited ? `${name}_limited` : name,
    text: text(limit),
    values: [beat.id, beat.session, beat.sequence, beat.consumerLag, exact, prefix, ...more],
  };
}

/** What a beat is held against, with the agent's name. Undefined if there is no such agent. */
export async function agentSession(
  pool: Queryable,
  id: AgentId,
): Promise<(AgentSession & { readonly name: string }) | undefined> {
  const result = await pool.query<{ name: string; session: string; sequence: string }>({
    name: 'agent_session',
    text: 'SELECT a.name, i.session, i.sequence FROM agent a JOIN agent_internal i ON i.agent_id = a.id WHERE a.id = $1',
    values: [id],
  });
  const row = result.rows[0];
  return row && { name: row.name, session: row.session, sequence: BigInt(row.sequence) };
}

/**
 * One sweep: agents whose last heartbeat is older than the timeout become UNAVAILABLE. It locks each row before it
 * believes it, skips rows that a heartbeat holds at this moment, and PostgreSQL evaluates the condition again on the
 * row as it is once locked: a newer heartbeat survives wherever it lands. Answers the names, at most `limit`.
 */
export async function agentSweepStale(
  writer: Queryable,
  grant: Grant<'system:sweep'>,
  timeoutSeconds: number,
  limit: number,
): Promise<string[]> {
  const result = await writer.query<{ name: string }>({
    name: 'agent_sweep',
    text:
      'WITH stale AS (SELECT agent_id FROM agent_internal' +
      // The start of the statement, not the moment of the row: the cutoff of one sweep is one instant.
      ` WHERE health <> 'UNAVAILABLE' AND last_heartbeat_at < statement_timestamp() - make_interval(secs => $1)` +
      ' ORDER BY agent_id LIMIT $2 FOR UPDATE SKIP LOCKED)' +
      ` UPDATE agent SET health = 'UNAVAILABLE', version = version + 1, changed_by = $3, change_reason = $4,` +
      ' change_message = NULL, trace_id = NULL, change_token = $5' +
      ' FROM stale WHERE agent.id = stale.agent_id RETURNING agent.name',
    values: [timeoutSeconds, limit, grant.actor.id, AGENT_REASONS.timedOut, randomUUID()],
  });
  return result.rows.map((row) => row.name);
}

export async function agentIdByName(tx: Queryable, name: string): Promise<AgentId | undefined> {
  const result = await tx.query<{ id: string }>({
    name: 'agent_id_by_name',
    text: 'SELECT id FROM agent WHERE name = $1',
    values: [name],
  });
  return parseId('AGENT', result.rows[0]?.id ?? '');
}

/** The name of the agent that owns a topic, if there is one. */
export async function agentNameByTopic(pool: Queryable, topic: string): Promise<string | undefined> {
  const result = await pool.query<{ name: string }>({
    name: 'agent_name_by_topic',
    text: 'SELECT name FROM agent WHERE topic = $1',
    values: [topic],
  });
  return result.rows[0]?.name;
}

/**
 * A new agent with its first session, in one statement: the log's trigger runs when both rows are there, and the
 * change carries the liveness too. A name or a topic that is taken is a unique violation.
 */
export async function agentInsert(
  tx: Queryable,
  grant: Grant<'agent:register'>,
  id: AgentId,
  registration: Registration,
  session: string,
): Promise<AgentRow> {
  const r = registration;
  const result = await tx.query<AgentRow>({
    name: 'agent_insert',
    text:
      'WITH begun AS (INSERT INTO agent_internal (agent_id, session, last_heartbeat_at, congestion_threshold)' +
      ' VALUES ($1, $2, clock_timestamp(), $3))' +
      ' INSERT INTO agent (id, congestion_threshold, name, topic, environment, service_types, cost, labels,' +
      ' software_version, protocol_version, changed_by, change_reason, trace_id, change_token)' +
      ` VALUES ($1, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) RETURNING ${columnList('agent')}`,
    values: [
      ...[id, session, r.congestionThreshold, r.name, r.topic, r.environment, r.serviceTypes, r.cost],
      ...[JSON.stringify(r.labels), r.softwareVersion, r.protocolVersion],
      ...[grant.actor.id, AGENT_REASONS.registered, grant.traceId, randomUUID()],
    ],
  });
  const row = result.rows[0];
  if (!row) throw new Error('insert into agent returned no row');
  return row;
}

/**
 * Begins a session: the sequence starts anew, and beats of the session before are unknown from now on. Locks the row
 * of agent_internal, and makes it where it is missing. Throws a foreign-key violation if the agent itself is gone.
 */
export async function agentBeginSession(
  tx: Queryable,
  _grant: Grant<'agent:register'>,
  id: AgentId,
  session: string,
  congestionThreshold: number,
): Promise<void> {
  await tx.query({
    name: 'agent_begin_session',
    text:
      'INSERT INTO agent_internal (agent_id, session, last_heartbeat_at, congestion_threshold)' +
      ' VALUES ($1, $2, clock_timestamp(), $3)' +
      ' ON CONFLICT (agent_id) DO UPDATE SET session = excluded.session, sequence = 0, consumer_lag = 0,' +
      ' last_heartbeat_at = greatest(agent_internal.last_heartbeat_at, excluded.last_heartbeat_at)',
    values: [id, session, congestionThreshold],
  });
}

/** Holds the agent for a decision: its liveness first, as the lock order asks. Undefined if it is gone. */
export async function agentLock(tx: Queryable, id: AgentId): Promise<AgentRow | undefined> {
  await tx.query({
    name: 'agent_internal_lock',
    text: 'SELECT FROM agent_internal WHERE agent_id = $1 FOR UPDATE',
    values: [id],
  });
  const result = await tx.query<AgentRow>({
    name: 'agent_lock',
    text: `SELECT ${columnList('agent')} FROM agent WHERE id = $1 FOR UPDATE`,
    values: [id],
  });
  return result.rows[0];
}

export async function agentUpdate(
  tx: Queryable,
  grant: Grant<'agent:register' | 'agent:operate' | 'agent:deregister'>,
  locked: AgentRow,
  changes: RegistrationChanges | { readonly cordoned: boolean } | { readonly deletedAt: Date },
  reason: string,
): Promise<AgentRow> {
  const row = await updateRow(
    tx,
    'agent',
    locked.id,
    locked.version,
    settable(changes),
    stamped(grant, reason),
  );
  if (!row) throw new Error(`agent ${locked.id} changed while it was locked`);
  return row;
}

/** Takes the row away, after the update that marked it: the log has its DELETE change from the mark. */
export async function agentRemove(
  tx: PoolClient,
  _grant: Grant<'agent:deregister'>,
  id: AgentId,
): Promise<void> {
  await tx.query({ name: 'agent_remove', text: 'DELETE FROM agent WHERE id = $1', values: [id] });
}

function stamped(grant: Grant, reason: string): Stamp {
  return { actor: grant.actor.id, reason, traceId: grant.traceId };
}

function settable(
  values: RegistrationChanges | { cordoned: boolean } | { deletedAt: Date },
): Settable<'agent'> {
  const { labels, ...rest } = values as RegistrationChanges; // the others have no labels, and lose nothing here
  // The same object: a label map is JSON, which its interface type cannot say.
  return labels === undefined ? rest : { ...rest, labels: { ...labels } };
}
