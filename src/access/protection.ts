import type { Clock } from '../kernel/clock.js';
import { StartError } from '../kernel/start-error.js';
import { validated } from '../kernel/validate.js';
import type { Database } from '../store/database.js';
import { systemGrant } from './authorise.js';
import { hashOf, isSecret, newSecret } from './secret.js';
import { tokenByHash, tokenCountAdmins } from './store.js';
import { ALL_NAMESPACES, createTokenSchema } from './token-model.js';
import { createToken, newToken, type CreatedToken } from './tokens.js';

/** How the first token comes into the world, and that no server listens to others before there is one. */

export interface ProtectionSettings {
  readonly server: { readonly host: string; readonly loopback: boolean };
  readonly access: {
    readonly mode: 'auto' | 'tokens' | 'none';
    /** A proxy hands on what others send, as if it came from this machine. */
    readonly proxied: boolean;
  };
}

const HOW_TO_BEGIN =
  'Set SLIPWAY_BOOTSTRAP_TOKEN to make the first one (`slp_` and 32 or more random letters and digits), ' +
  'or run `npm run token -- create --name admin --role ADMIN` beside the database';

/**
 * `open`: everyone on this machine is ADMIN without a token. Throws, before anything listens, when others could reach
 * a server without access control, or when nobody could come in.
 */
export function assertProtected(settings: ProtectionSettings, adminTokens: number): 'open' | 'tokens' {
  const { host, loopback } = settings.server;
  const { mode, proxied } = settings.access;
  const alone = loopback && !proxied;
  if (mode === 'none' && proxied) {
    throw new StartError(
      'SLIPWAY_AUTH is `none` while SLIPWAY_ALLOWED_HOSTS names a host beyond this machine: everybody whom that proxy lets ' +
        'through would be an administrator. Set SLIPWAY_AUTH=tokens.',
    );
  }
  if (mode === 'none' && !loopback) {
    throw new StartError(
      `SLIPWAY_AUTH is \`none\` while SLIPWAY_HOST is ${host}, where others can reach the server: each of them would ` +
        'be an administrator. Set SLIPWAY_AUTH=tokens, or SLIPWAY_HOST=127.0.0.1.',
    );
  }
  if (mode === 'none' || (mode === 'auto' && alone)) return 'open';
  if (adminTokens > 0) return 'tokens';
  const why = proxied
    ? 'SLIPWAY_ALLOWED_HOSTS names a host beyond this machine, by which others can reach the server, so SLIPWAY_AUTH asks everyone for a token'
    : loopback
      ? 'SLIPWAY_AUTH is `tokens`'
      : `SLIPWAY_HOST is ${host}, where others can reach the server, so SLIPWAY_AUTH asks everyone for a token`;
  const instead = proxied
    ? 'or leave SLIPWAY_ALLOWED_HOSTS empty.'
    : loopback
      ? 'or leave SLIPWAY_AUTH at `auto`.'
      : 'or set SLIPWAY_HOST=127.0.0.1.';
  throw new StartError(`${why}, and there is no ADMIN token. ${HOW_TO_BEGIN}, ${instead}`);
}

/** ADMIN tokens that are good at this moment, for `assertProtected`. */
export async function countAdminTokens(database: Database): Promise<number> {
  return tokenCountAdmins(database.pool);
}

/**
 * Makes the ADMIN token of SLIPWAY_BOOTSTRAP_TOKEN, once: at later starts, on further replicas and after it was
 * revoked it is there already, and stays as it is.
 */
export async function ensureBootstrapToken(database: Database, secret: string): Promise<'made' | 'there'> {
  if (!isSecret(secret)) {
    throw new StartError(
      'SLIPWAY_BOOTSTRAP_TOKEN must be `slp_` and 32 or more letters, digits, `-` or `_`.',
    );
  }
  if (await tokenByHash(database.pool, hashOf(secret))) return 'there';
  const token = {
    name: 'bootstrap',
    roles: ['ADMIN' as const],
    namespaces: [ALL_NAMESPACES],
    agentName: null,
    expiresAt: null,
  };
  try {
    await createToken(database, systemGrant('token:write', 'bootstrap'), token, secret);
    return 'made';
  } catch (error) {
    const { code, constraint } = error as { code?: unknown; constraint?: unknown }; // the driver's error, or anything
    // Another replica was first; the transaction took our row with it.
    if (code === '23505' && constraint === 'token_secret_hash_key') return 'there';
    throw error;
  }
}

/**
 * A token made by whoever can reach the database itself, for the command beside it. `input` as of the mutation
 * `createToken`. Throws a StartError that says what is wrong with it.
 */
export async function createTokenBeside(
  database: Database,
  clock: Clock,
  input: Readonly<Record<string, unknown>>,
): Promise<CreatedToken> {
  const parsed = validated(createTokenSchema, input, []);
  const token = parsed.done ? newToken(parsed.value, [ALL_NAMESPACES], clock.now()) : parsed;
  if (!token.done) throw new StartError(token.failure.message.replace('`input.', '`'));
  return createToken(database, systemGrant('token:write', 'command'), token.value, newSecret());
}
