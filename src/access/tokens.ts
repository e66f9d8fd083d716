import type { Clock } from '../kernel/clock.js';
import { done, invalidInput, notFound, refused, type Failure, type Outcome } from '../kernel/failure.js';
import { newId } from '../kernel/ids.js';
import { sameJson } from '../kernel/json.js';
import { validated } from '../kernel/validate.js';
import type { Database } from '../store/database.js';
import type { TokenRow } from '../store/rows.js';
import { authorise } from './authorise.js';
import type { Caller } from './caller.js';
import { ForbiddenError } from './errors.js';
import type { Grant } from './grant.js';
import { hashOf, newSecret } from './secret.js';
import { tokenInsert, tokenLock, tokenUpdate, type NewToken } from './store.js';
import {
  agentNameIssue,
  ALL_NAMESPACES,
  createTokenSchema,
  expired,
  mayGrant,
  revokeTokenSchema,
  rightsOf,
  updateTokenSchema,
  type CreateToken,
} from './token-model.js';

/** Making, changing and revoking API tokens. Each command checks its `input` itself. */

export interface TokenDeps {
  readonly database: Database;
  readonly clock: Clock;
  /** Told of each write at once, before the command answers; other processes learn of it from the log. */
  readonly written?: (token: TokenRow) => void;
}

export interface CreatedToken {
  readonly token: TokenRow;
  /** Shown this once: only its hash is kept. */
  readonly secret: string;
}

type TokenOutcome = Outcome<TokenRow, Failure<TokenRow>>;
export type TokenCommands = ReturnType<typeof tokenCommands>;

export function tokenCommands(deps: TokenDeps) {
  const { database, clock } = deps;
  const told = (outcome: TokenOutcome): TokenOutcome => {
    if (outcome.done) deps.written?.(outcome.value);
    return outcome;
  };
  return {
    async createToken(caller: Caller, input: unknown): Promise<Outcome<CreatedToken>> {
      const parsed = validated(createTokenSchema, input);
      if (!parsed.done) return parsed;
      const grant = tokenGrant(caller);
      const { actor } = grant;
      const own = actor.namespaces === 'all' ? [ALL_NAMESPACES] : [...actor.namespaces].sort();
      const token = newToken(parsed.value, own, clock.now());
      if (!token.done) return token;
      refuseWider(grant, token.value);
      return done(await createToken(database, grant, token.value, newSecret()));
    },

    async updateToken(caller: Caller, input: unknown): Promise<TokenOutcome> {
      const parsed = validated(updateTokenSchema, input);
      if (!parsed.done) return parsed;
      const grant = tokenGrant(caller);
      const { id, expectedVersion, ...fields } = parsed.value;
      return database
        .inTransaction(async (tx) => {
          const token = await tokenLock(tx, id);
          const held = holdToken(grant, token, expectedVersion);
          if (!held.done) return held;
          if (held.value.revokedAt !== null) {
            return issue('id', 'must not be a revoked token: those never come back');
          }
          const changes = changedFields(held.value, fields);
          if (Object.keys(changes).length === 0) return held;
          const next = { ...held.value, ...changes };
          const wrong = agentNameIssue(next.roles, next.agentName);
          if (wrong !== undefined) return issue('agentName', wrong);
          if (changes.expiresAt && expired(changes.expiresAt, clock.now())) {
            return issue('expiresAt', IN_THE_FUTURE);
          }
          refuseWider(grant, next);
          return done(await tokenUpdate(tx, grant, held.value, changes, 'Updated'));
        })
        .then(told);
    },

    /** For good. Revoking a revoked token is a success that writes nothing. */
    async revokeToken(caller: Caller, input: unknown): Promise<TokenOutcome> {
      const parsed = validated(revokeTokenSchema, input);
      if (!parsed.done) return parsed;
      const grant = tokenGrant(caller);
      return database
        .inTransaction(async (tx) => {
          const token = await tokenLock(tx, parsed.value.id);
          if (token && token.revokedAt !== null) return done(token);
          const held = holdToken(grant, token, parsed.value.expectedVersion);
          if (!held.done) return held;
          return done(await tokenUpdate(tx, grant, held.value, { revokedAt: clock.now() }, 'Revoked'));
        })
        .then(told);
    },
  };
}

const IN_THE_FUTURE = 'must be in the future';

/** The token that an input describes, or what is wrong with it. */
export function newToken(
  input: CreateToken,
  defaultNamespaces: string[],
  now: Date,
): Outcome<NewToken, Failure<never> & { kind: 'InvalidInput' }> {
  const wrong = agentNameIssue(input.roles, input.agentName);
  if (wrong !== undefined) return issue('agentName', wrong);
  if (expired(input.expiresAt, now)) return issue('expiresAt', IN_THE_FUTURE);
  return done({ ...input, namespaces: input.namespaces ?? defaultNamespaces });
}

export async function createToken(
  database: Database,
  grant: Grant<'token:write'>,
  token: NewToken,
  secret: string,
): Promise<CreatedToken> {
  const id = newId('TOKEN');
  const row = await database.inTransaction(async (tx) => tokenInsert(tx, grant, id, token, hashOf(secret)));
  return { token: row, secret };
}

function tokenGrant(caller: Caller): Grant<'token:write'> {
  const grant = authorise(caller, 'token:write');
  if (!grant) throw new ForbiddenError('Only the role ADMIN may make, change or revoke tokens.');
  return grant;
}

/** Every ADMIN sees every token, so that saying why is no news; but nobody moves rights that they do not have. */
function refuseWider(
  grant: Grant<'token:write'>,
  token: Pick<TokenRow, 'roles' | 'namespaces' | 'agentName'>,
): void {
  if (mayGrant(grant.actor, rightsOf(token))) return;
  throw new ForbiddenError(
    'A token reaches no further than whoever makes or changes it: this one would, or does.',
  );
}

function holdToken(
  grant: Grant<'token:write'>,
  token: TokenRow | undefined,
  expectedVersion: number | undefined,
): TokenOutcome {
  if (!token) return notFound('token');
  refuseWider(grant, token);
  if (expectedVersion === undefined || expectedVersion === token.version) return done(token);
  const message = `The token is at version ${token.version}, not ${expectedVersion}.`;
  return refused({ kind: 'VersionConflict', message, currentVersion: token.version, current: token });
}

type Fields = { -readonly [F in keyof NewToken]?: NewToken[F] | undefined };

function changedFields(token: TokenRow, fields: Fields): Partial<NewToken> {
  const names = Object.keys(fields) as (keyof Fields)[]; // its own keys
  const changed = names.filter((name) => fields[name] !== undefined && !sameJson(fields[name], token[name]));
  return Object.fromEntries(changed.map((name) => [name, fields[name]]));
}

function issue(field: string, message: string) {
  return invalidInput([{ path: ['input', field], message }]);
}
