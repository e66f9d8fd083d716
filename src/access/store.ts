import type { TokenId } from '../kernel/ids.js';
import type { Queryable } from '../store/database.js';
import type { TokenRow } from '../store/rows.js';
import { columnList } from '../store/tables.js';
import { insertRow, readRow, updateRow, type Settable, type Stamp } from '../store/versioned.js';
import type { Grant } from './grant.js';

/** Writes of tokens, and the one read that goes by a secret's hash: the owner's, since no other role may see hashes. */

export type NewToken = Pick<TokenRow, 'name' | 'roles' | 'namespaces' | 'agentName' | 'expiresAt'>;

/** The token with its hash. A hash that is there already is a unique violation of `token_secret_hash_key`. */
export async function tokenInsert(
  tx: Queryable,
  grant: Grant<'token:write'>,
  id: TokenId,
  token: NewToken,
  hash: string,
): Promise<TokenRow> {
  const row = await insertRow(
    tx,
    'token',
    id,
    { ...token, createdBy: grant.actor.id },
    stamped(grant, 'Created'),
  );
  await tx.query({
    name: 'token_secret_insert',
    text: 'INSERT INTO token_secret (token_id, hash) VALUES ($1, $2)',
    values: [id, hash],
  });
  return row;
}

/** Holds the token for a decision until the transaction ends. */
export async function tokenLock(tx: Queryable, id: TokenId): Promise<TokenRow | undefined> {
  return readRow(tx, 'token', id, 'FOR UPDATE');
}

export async function tokenUpdate(
  tx: Queryable,
  grant: Grant<'token:write'>,
  locked: TokenRow,
  changes: Settable<'token'>,
  reason: string,
): Promise<TokenRow> {
  const row = await updateRow(tx, 'token', locked.id, locked.version, changes, stamped(grant, reason));
  if (!row) throw new Error(`token ${locked.id} changed while it was locked`);
  return row;
}

export async function tokenByHash(pool: Queryable, hash: string): Promise<TokenRow | undefined> {
  const result = await pool.query<TokenRow>({
    name: 'token_by_hash',
    text: `SELECT ${columnList('token', 't')} FROM token_secret s JOIN token t ON t.id = s.token_id WHERE s.hash = $1`,
    values: [hash],
  });
  return result.rows[0];
}

/** Tokens that may make others at this moment: without one, nobody could come in. */
export async function tokenCountAdmins(pool: Queryable): Promise<number> {
  const result = await pool.query<{ n: number }>({
    text:
      `SELECT count(*)::int AS n FROM token WHERE 'ADMIN' = ANY (roles) AND revoked_at IS NULL` +
      ' AND (expires_at IS NULL OR expires_at > clock_timestamp())',
  });
  return result.rows[0]?.n ?? 0;
}

/** When tokens were last used: no version, no change, at most once a minute each over all replicas. */
export async function tokenRecordUse(pool: Queryable, uses: ReadonlyMap<TokenId, Date>): Promise<void> {
  await pool.query({
    name: 'token_record_use',
    text:
      'INSERT INTO token_use (token_id, last_used_at) SELECT t.id, u.at' +
      // A token may have been deleted since.
      ' FROM unnest($1::text[], $2::timestamptz[]) AS u (id, at) JOIN token t ON t.id = u.id' +
      ' ON CONFLICT (token_id) DO UPDATE SET last_used_at = excluded.last_used_at' +
      ` WHERE token_use.last_used_at <= excluded.last_used_at - interval '1 minute'`,
    values: [[...uses.keys()], [...uses.values()]],
  });
}

function stamped(grant: Grant, reason: string): Stamp {
  return { actor: grant.actor.id, reason, traceId: grant.traceId };
}
