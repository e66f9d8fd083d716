import { z } from 'zod';

import { idSchema } from '../kernel/ids.js';
import { absentAsUndefined, expectedVersionSchema } from '../kernel/input-fields.js';
import { nameSchema } from '../kernel/names.js';
import { textSchema } from '../kernel/text.js';
import type { TokenRow } from '../store/rows.js';
import { classKey, ROLES, type Actor, type Rights, type Role } from './actor.js';
import { withinNamespaces } from './authorise.js';

/** What an API token may be and what it makes of its holder: pure, no I/O. */

export const TOKEN_NAME_MAX = 100;
export const TOKEN_NAMESPACES_MAX = 100;
/** In `namespaces`, alone: all of them, those to come included. */
export const ALL_NAMESPACES = '*';

const AGENT_NAME_OR_PREFIX = /^[A-Za-z0-9][A-Za-z0-9_-]{0,238}\*?$/;

const tokenNameSchema = textSchema(TOKEN_NAME_MAX, 1);
const rolesSchema = z
  .array(z.enum(ROLES))
  .min(1, { error: 'must name at least 1 role' })
  .transform((roles) => ROLES.filter((role) => roles.includes(role)));
const namespacesSchema = z
  .array(
    z.union([z.literal(ALL_NAMESPACES), nameSchema], {
      error: 'must be names of namespaces, or `*` alone',
    }),
  )
  .min(1, { error: 'must name at least 1 namespace, or be `*` alone' })
  .max(TOKEN_NAMESPACES_MAX, { error: `must have at most ${TOKEN_NAMESPACES_MAX} namespaces` })
  .refine((names) => names.length === 1 || !names.includes(ALL_NAMESPACES), { error: '`*` must stand alone' })
  .transform((names) => [...new Set(names)].sort());
const agentNameSchema = z.string().regex(AGENT_NAME_OR_PREFIX, {
  error: 'must be the name of an agent, or the beginning of one with a `*` at its end',
});

export const createTokenSchema = z.strictObject({
  name: tokenNameSchema,
  roles: rolesSchema,
  /** Absent: all that the creator has. */
  namespaces: absentAsUndefined(namespacesSchema),
  agentName: agentNameSchema.nullish().transform((name) => name ?? null),
  expiresAt: z
    .date()
    .nullish()
    .transform((at) => at ?? null),
});
export type CreateToken = z.infer<typeof createTokenSchema>;

/** Absent leaves a field as it is; null takes `agentName` and `expiresAt` away. */
export const updateTokenSchema = z.strictObject({
  id: idSchema('TOKEN'),
  expectedVersion: expectedVersionSchema,
  name: absentAsUndefined(tokenNameSchema),
  roles: absentAsUndefined(rolesSchema),
  namespaces: absentAsUndefined(namespacesSchema),
  agentName: agentNameSchema.nullable().optional(),
  expiresAt: z.date().nullable().optional(),
});

export const revokeTokenSchema = z.strictObject({
  id: idSchema('TOKEN'),
  expectedVersion: expectedVersionSchema,
});

/** What the fields are together: an agent's name stands exactly with the role AGENT. Undefined: nothing is wrong. */
export function agentNameIssue(roles: readonly Role[], agentName: string | null): string | undefined {
  if (roles.includes('AGENT') && agentName === null) return 'must be given for the role AGENT';
  if (!roles.includes('AGENT') && agentName !== null) return 'must be given for the role AGENT only';
  return undefined;
}

export function rightsOf(token: Pick<TokenRow, 'roles' | 'namespaces' | 'agentName'>): Rights {
  const { roles, namespaces, agentName } = token;
  return { roles, namespaces: namespaces.includes(ALL_NAMESPACES) ? 'all' : namespaces, agentName };
}

export function actorOf(token: TokenRow, id: NonNullable<Actor['tokenId']>): Actor {
  const rights = rightsOf(token);
  return {
    id: `token:${id}`,
    name: token.name,
    roles: new Set(rights.roles),
    namespaces: rights.namespaces === 'all' ? 'all' : new Set(rights.namespaces),
    agentName: rights.agentName,
    tokenId: id,
    expiresAt: token.expiresAt,
    classKey: classKey(rights),
  };
}

/** Whether somebody may hand these rights out, or take them from a token that has them: they must be within their own. */
export function mayGrant(creator: Pick<Actor, 'roles' | 'namespaces'>, rights: Rights): boolean {
  // ADMIN stands for every role: there is no action that another role may do and ADMIN may not.
  if (!creator.roles.has('ADMIN') && !rights.roles.every((role) => creator.roles.has(role))) return false;
  const { namespaces } = creator;
  if (namespaces === 'all') return true;
  return rights.namespaces !== 'all' && rights.namespaces.every((name) => withinNamespaces(namespaces, name));
}

/** The boundary instant is expired. */
export function expired(expiresAt: Date | null, now: Date): boolean {
  return expiresAt !== null && expiresAt.getTime() <= now.getTime();
}
