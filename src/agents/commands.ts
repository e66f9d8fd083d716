import { randomBytes } from 'node:crypto';

import { agentNameCovers, authorise, systemGrant } from '../access/authorise.js';
import type { Caller } from '../access/caller.js';
import { ForbiddenError } from '../access/errors.js';
import type { Grant } from '../access/grant.js';
import type { Clock } from '../kernel/clock.js';
import { done, notFound, refused, type Outcome } from '../kernel/failure.js';
import { newId, type AgentId } from '../kernel/ids.js';
import type { Log } from '../kernel/log.js';
import { validated } from '../kernel/validate.js';
import type { Database } from '../store/database.js';
import type { AgentRow } from '../store/rows.js';
import {
  AGENT_PROTOCOL,
  AGENT_REASONS,
  agentTargetSchema,
  cordonSchema,
  heartbeatSchema,
  protocolRefusal,
  registrationChanges,
  registrationSchema,
  type AgentTarget,
  type Registration,
} from './model.js';
import {
  agentBeat,
  agentBeatMoving,
  agentBeginSession,
  agentIdByName,
  agentInsert,
  agentLock,
  agentNameByTopic,
  agentRemove,
  agentSession,
  agentSweepStale,
  agentUpdate,
} from './store.js';

interface AgentDeps {
  readonly database: Database;
  readonly clock: Clock;
  /** What a registered agent is told. */
  readonly heartbeatIntervalSeconds: number;
}

export interface Registered {
  readonly agent: AgentRow;
  /** To be named in every heartbeat; shown to nobody else. */
  readonly session: string;
  readonly heartbeatIntervalSeconds: number;
}

export interface Beaten {
  readonly id: AgentId;
  /** False for a stale beat: a newer one was there already, and nothing changed. */
  readonly applied: boolean;
}

/** How often a registration begins again because the agent came, or went, beneath it. */
const REGISTRATION_ATTEMPTS_MAX = 10;
/** One sweep takes no more agents in one transaction; what is left goes in the next statement. */
const SWEEP_BATCH = 1_000;

export type AgentCommands = ReturnType<typeof agentCommands>;

export function agentCommands(deps: AgentDeps) {
  const { database } = deps;
  return {
    /** Idempotent by name. `input` is checked here. */
    async registerAgent(caller: Caller, input: unknown): Promise<Outcome<Registered>> {
      const parsed = validated(registrationSchema, input);
      if (!parsed.done) return parsed;
      const registration = parsed.value;
      const grant = authorise(caller, 'agent:register', { agentName: registration.name });
      if (!grant) {
        throw new ForbiddenError(`This token may not register an agent named \`${registration.name}\`.`);
      }
      const message = protocolRefusal(registration.protocolVersion);
      if (message !== undefined) {
        const found = registration.protocolVersion;
        return refused({ kind: 'IncompatibleProtocol', message, found, ...AGENT_PROTOCOL });
      }
      const session = `ses_${randomBytes(24).toString('base64url')}`;
      const agent = await register(database, grant, registration, session);
      if (agent === 'topic-taken') {
        const text = `The topic \`${registration.topic}\` belongs to another agent.`;
        return refused({ kind: 'AgentConflict', message: text });
      }
      return done({ agent, session, heartbeatIntervalSeconds: deps.heartbeatIntervalSeconds });
    },

    /** `input` is checked here. A stale beat is a success; only an unknown agent or session is none. */
    async heartbeatAgent(caller: Caller, input: unknown): Promise<Outcome<Beaten>> {
      const parsed = validated(heartbeatSchema, input);
      if (!parsed.done) return parsed;
      const beat = parsed.value;
      const { id } = beat;
      const grant = authorise(caller, 'agent:beat');
      if (!grant) return notFound('agent');
      // Past the feed: no change row is written, so there is nothing to wake it for.
      if (await agentBeat(database.quiet, grant, beat)) return done({ id, applied: true });
      if (await agentBeatMoving(database.writer, grant, beat)) return done({ id, applied: true });
      const known = await agentSession(database.pool, id);
      if (!known || known.session !== beat.session || !covers(grant, known.name)) {
        return notFound('agent or session');
      }
      return done({ id, applied: false });
    },

    /** `input` is checked here. */
    async deregisterAgent(caller: Caller, input: unknown): Promise<Outcome<AgentRow>> {
      const parsed = validated(agentTargetSchema, input);
      if (!parsed.done) return parsed;
      return withAgent(database, caller, 'agent:deregister', parsed.value, async (tx, grant, agent) => {
        const deletedAt = deps.clock.now();
        const marked = await agentUpdate(tx, grant, agent, { deletedAt }, AGENT_REASONS.deregistered);
        await agentRemove(tx, grant, parsed.value.id);
        return marked;
      });
    },

    /** A cordoned agent keeps its work and gets no new; `cordoned: false` takes it back. `input` is checked here. */
    async cordonAgent(caller: Caller, input: unknown): Promise<Outcome<AgentRow>> {
      const parsed = validated(cordonSchema, input);
      if (!parsed.done) return parsed;
      const { cordoned } = parsed.value;
      return withAgent(database, caller, 'agent:operate', parsed.value, async (tx, grant, agent) => {
        if (agent.cordoned === cordoned) return agent;
        const reason = cordoned ? AGENT_REASONS.cordoned : AGENT_REASONS.uncordoned;
        return agentUpdate(tx, grant, agent, { cordoned }, reason);
      });
    },
  };
}

/** The health sweep: takes no input, and running it twice, or on several replicas at once, does the same as once. */
export function agentSweep(deps: {
  readonly database: Database;
  readonly log: Log;
  /** An agent is UNAVAILABLE when its last heartbeat is older. */
  readonly heartbeatTimeoutSeconds: number;
}): () => Promise<void> {
  const grant = systemGrant('system:sweep', 'agents');
  return async () => {
    let names: string[];
    do {
      names = await agentSweepStale(deps.database.writer, grant, deps.heartbeatTimeoutSeconds, SWEEP_BATCH);
      if (names.length > 0) {
        deps.log.warn({ agents: names.slice(0, 20), count: names.length }, 'agents became UNAVAILABLE');
      }
    } while (names.length === SWEEP_BATCH);
  };
}

async function register(
  database: Database,
  grant: Grant<'agent:register'>,
  registration: Registration,
  session: string,
): Promise<AgentRow | 'topic-taken'> {
  for (let attempt = 1; attempt <= REGISTRATION_ATTEMPTS_MAX; attempt += 1) {
    const agent = await registerOnce(database, grant, registration, session).catch(registrationRace);
    if (typeof agent === 'object') return agent;
    if (agent === 'topic-taken') {
      const owner = await agentNameByTopic(database.pool, registration.topic);
      if (owner !== undefined && owner !== registration.name) return 'topic-taken';
    }
  }
  throw new Error(`agent ${registration.name} kept vanishing while it was being registered`);
}

async function registerOnce(
  database: Database,
  grant: Grant<'agent:register'>,
  registration: Registration,
  session: string,
): Promise<AgentRow | 'gone'> {
  return database.inTransaction(async (tx) => {
    const known = await agentIdByName(tx, registration.name);
    if (known === undefined) return agentInsert(tx, grant, newId('AGENT'), registration, session);
    await agentBeginSession(tx, grant, known, session, registration.congestionThreshold);
    const agent = await agentLock(tx, known);
    if (!agent) return 'gone';
    const changes = registrationChanges(agent, registration);
    return changes ? agentUpdate(tx, grant, agent, changes, AGENT_REASONS.registered) : agent;
  });
}

/** What a refusal of the database means for a registration. Throws what means nothing for it. */
function registrationRace(error: unknown): 'topic-taken' | 'gone' {
  const { code, constraint } = error as { code?: unknown; constraint?: unknown }; // the driver's error, or anything
  if (code === '23505' && constraint === 'agent_topic_key') return 'topic-taken';
  // Another registration of that name was first, or the agent was deregistered after we had read its id: look again.
  if (code === '23505' && constraint === 'agent_name_key') return 'gone';
  if (code === '23503') return 'gone';
  // Two agents that ask for each other's topic wait for each other; PostgreSQL ends one.
  if (code === '40P01') return 'gone';
  throw error;
}

/** Loads and holds the agent for one decision, so that leaving `expectedVersion` out needs no second try. */
async function withAgent<A extends 'agent:deregister' | 'agent:operate'>(
  database: Database,
  caller: Caller,
  action: A,
  target: Pick<AgentTarget, 'id' | 'expectedVersion'>,
  decide: (
    tx: Parameters<Parameters<Database['inTransaction']>[0]>[0],
    grant: Grant<A>,
    agent: AgentRow,
  ) => Promise<AgentRow>,
): Promise<Outcome<AgentRow>> {
  const { id, expectedVersion } = target;
  const grant = authorise(caller, action);
  if (!grant) return notFound('agent');
  return database.inTransaction(async (tx) => {
    const agent = await agentLock(tx, id);
    if (!agent || !covers(grant, agent.name)) return notFound('agent');
    if (expectedVersion !== undefined && expectedVersion !== agent.version) {
      const message = `The agent is at version ${agent.version}, not ${expectedVersion}.`;
      return refused({ kind: 'VersionConflict', message, currentVersion: agent.version, current: agent });
    }
    return done(await decide(tx, grant, agent));
  });
}

function covers(grant: Grant, name: string): boolean {
  return grant.agentName === null || agentNameCovers(grant.agentName, name);
}
