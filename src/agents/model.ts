import { z } from 'zod';

import { idSchema } from '../kernel/ids.js';
import { expectedVersionSchema } from '../kernel/input-fields.js';
import { sameJson } from '../kernel/json.js';
import { labelsSchema, type Labels } from '../kernel/labels.js';
import { nameSchema } from '../kernel/names.js';
import { textSchema } from '../kernel/text.js';

/**
 * What an agent is and how its health is judged: pure, no I/O. `store.ts` says the same of health in SQL, since a
 * heartbeat is one statement; a test holds both against each other.
 */

export const AGENT_HEALTHS = ['READY', 'CONGESTED', 'UNAVAILABLE'] as const;
export type AgentHealth = (typeof AGENT_HEALTHS)[number];
export const AGENT_COSTS = ['LOW', 'MEDIUM_LOW', 'MEDIUM', 'MEDIUM_HIGH', 'HIGH'] as const;
export type AgentCost = (typeof AGENT_COSTS)[number];

/** Versions of the agents' protocol that this server speaks. */
export const AGENT_PROTOCOL = { minimum: 1, current: 1 } as const;

/** Commands waiting at the agent, at which it gets no new work, unless the agent declared another number. */
export const CONGESTION_THRESHOLD_DEFAULT = 100;
export const SERVICE_TYPES_MAX = 100;
const SOFTWARE_VERSION_MAX = 100;
/** Names of streams and consumers are built around a topic and must stay within 255. */
const AGENT_NAME_MAX = 239;
const INT_MAX = 2_147_483_647;

/** Why an agent changed, in its change rows. */
export const AGENT_REASONS = {
  registered: 'Registered',
  deregistered: 'Deregistered',
  cordoned: 'Cordoned',
  uncordoned: 'Uncordoned',
  congested: 'ConsumerLagHigh',
  relieved: 'ConsumerLagLow',
  resumed: 'HeartbeatResumed',
  timedOut: 'HeartbeatTimeout',
} as const;

// A topic is one token of a subject: dots would make further tokens of it and wildcards would match others' subjects.
const TOKEN_PATTERN = /^[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?$/;
// Beside each agent's subject stand the server's own.
const RESERVED_SUFFIX = /(^|[-_])(cancel|reports|dead)$/i;

const subjectToken = z
  .string()
  .max(AGENT_NAME_MAX, { error: `must have at most ${AGENT_NAME_MAX} characters` })
  .regex(TOKEN_PATTERN, {
    error:
      'must be letters, digits, `-` or `_`, with a letter or digit at both ends: no dots, spaces or wildcards',
  });
export const agentNameSchema = subjectToken;
export const topicSchema = subjectToken.refine((topic) => !RESERVED_SUFFIX.test(topic), {
  error: 'must not end in `cancel`, `reports` or `dead`: those are reserved',
});

export const registrationSchema = z
  .strictObject({
    name: agentNameSchema,
    topic: topicSchema.nullish(),
    environment: nameSchema.nullish(),
    serviceTypes: z
      .array(nameSchema)
      .max(SERVICE_TYPES_MAX, { error: `must have at most ${SERVICE_TYPES_MAX} service types` }),
    cost: z.enum(AGENT_COSTS).nullish(),
    labels: labelsSchema.nullish(),
    congestionThreshold: z.int().min(1).max(INT_MAX).nullish(),
    softwareVersion: textSchema(SOFTWARE_VERSION_MAX, 1).nullish(),
    protocolVersion: z.int().min(0).max(INT_MAX),
  })
  .transform((input): Registration => ({
    name: input.name,
    topic: input.topic ?? input.name,
    environment: input.environment ?? null,
    // A set: equal content must compare equal however the agent lists it.
    serviceTypes: [...new Set(input.serviceTypes)].sort(),
    cost: input.cost ?? 'MEDIUM',
    labels: input.labels ?? {},
    congestionThreshold: input.congestionThreshold ?? CONGESTION_THRESHOLD_DEFAULT,
    softwareVersion: input.softwareVersion ?? null,
    protocolVersion: input.protocolVersion,
  }));

/** All that an agent says of itself; a registration replaces all of it. */
export interface Registration {
  readonly name: string;
  readonly topic: string;
  readonly environment: string | null;
  readonly serviceTypes: string[];
  readonly cost: AgentCost;
  readonly labels: Labels;
  readonly congestionThreshold: number;
  readonly softwareVersion: string | null;
  readonly protocolVersion: number;
}

export const heartbeatSchema = z.strictObject({
  id: idSchema('AGENT'),
  session: textSchema(100, 1),
  /** Counts up within a session, from 1. */
  sequence: z.int().min(1),
  /** Commands sent to the agent that it has not finished taking. */
  consumerLag: z.int().min(0).max(INT_MAX),
});
export type Heartbeat = z.infer<typeof heartbeatSchema>;

export const agentTargetSchema = z.strictObject({
  id: idSchema('AGENT'),
  expectedVersion: expectedVersionSchema,
});
export const cordonSchema = z.strictObject({ ...agentTargetSchema.shape, cordoned: z.boolean() });
export type AgentTarget = z.infer<typeof agentTargetSchema>;

export function healthAt(
  consumerLag: number,
  congestionThreshold: number,
): Exclude<AgentHealth, 'UNAVAILABLE'> {
  return consumerLag >= congestionThreshold ? 'CONGESTED' : 'READY';
}

/** The public facts that a registration would change. */
export type RegistrationChanges = { -readonly [F in keyof Registration]?: Registration[F] } & {
  health?: AgentHealth;
};

/** Undefined if the agent already is what the registration says, and ready: then nothing is written. */
export function registrationChanges(
  agent: Omit<Registration, 'labels'> & { readonly labels: unknown; readonly health: AgentHealth },
  registration: Registration,
): RegistrationChanges | undefined {
  const wanted = { ...registration, health: 'READY' as const };
  const changes = Object.entries(wanted).filter(
    ([field, value]) => !sameJson(value, agent[field as keyof typeof wanted]), // a key of the object it came from
  );
  return changes.length === 0 ? undefined : Object.fromEntries(changes);
}

/** Undefined if this server speaks the agent's version of the protocol. */
export function protocolRefusal(found: number): string | undefined {
  const { minimum, current } = AGENT_PROTOCOL;
  if (found < minimum) {
    return `The agent speaks version ${found} of the protocol and this server ${minimum} to ${current}: upgrade the agent.`;
  }
  if (found > current) {
    return `The agent speaks version ${found} of the protocol and this server ${minimum} to ${current}: upgrade the server.`;
  }
  return undefined;
}
