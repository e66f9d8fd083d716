import { createHash, randomBytes } from 'node:crypto';
import type { Pool } from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import type { Actor } from '../../../src/access/actor.js';
import type { Authenticator } from '../../../src/access/authenticator.js';
import { AuthFailure } from '../../../src/access/errors.js';
import { ensureBootstrapToken } from '../../../src/access/protection.js';
import { tokenCommands } from '../../../src/access/tokens.js';
import { newId } from '../../../src/kernel/ids.js';
import type { Database, Statement } from '../../../src/store/database.js';
import { valueOf } from '../../support/agents.js';
import { local } from '../../support/callers.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { ManualClock } from '../../support/manual-clock.js';
import { openStore } from '../../support/open-store.js';
import { startReplica, tokenBeside, type AccessReplica, type ReplicaOptions } from '../../support/tokens.js';
import { waitFor } from '../../support/wait-for.js';

const HERE = { address: '127.0.0.1' };
const AWAY = { address: '10.1.2.3' };
/** A feed that says nothing. */
const deaf = { listen: () => () => undefined, onNewHistory: () => () => undefined };

let test: TestDatabase;
/** Another server on the same database, which knows nothing of the first one's cache. */
let elsewhere: Database;
const replicas: AccessReplica[] = [];
beforeEach(async () => {
  test = await createDatabase();
  elsewhere = openStore(test, 'elsewhere');
});
afterEach(async () => {
  for (const replica of replicas.splice(0)) await replica.close();
  await elsewhere.close();
  await test.drop();
});

async function replica(options: ReplicaOptions = {}): Promise<AccessReplica> {
  const started = await startReplica(test, options);
  replicas.push(started);
  return started;
}
async function actorBy(authenticator: Authenticator, secret: string): Promise<Actor> {
  const actor = await authenticator.fromBearer(secret, AWAY);
  if (actor instanceof AuthFailure) throw new Error(actor.message);
  return actor;
}
const update = async (id: string, fields: object) =>
  valueOf(
    await tokenCommands({ database: elsewhere, clock: new ManualClock() }).updateToken(local, {
      id,
      ...fields,
    }),
  );
const revoke = async (id: string) =>
  valueOf(await tokenCommands({ database: elsewhere, clock: new ManualClock() }).revokeToken(local, { id }));

/** The replica's pool, with its statements counted, and each answer held back while `gate` says so. */
function watchedPool() {
  const seen = { names: [] as string[], gate: async (): Promise<void> => undefined };
  const pool = (database: Database) =>
    new Proxy(database.pool, {
      get(owner, key) {
        const member: unknown = Reflect.get(owner, key);
        if (key !== 'query' || typeof member !== 'function') return member;
        return async (statement: Statement) => {
          seen.names.push(statement.name ?? '');
          const answer: unknown = await member.call(owner, statement);
          await seen.gate();
          return answer;
        };
      },
    }) satisfies Pool;
  return { seen, pool };
}

describe('fromBearer', () => {
  it('makes an actor with the rights of the token, of one class with all who have the same', async () => {
    const { authenticator, database } = await replica();
    const one = await tokenBeside(database, { roles: ['OPERATOR', 'VIEWER'], namespaces: ['b', 'a'] });
    const two = await tokenBeside(database, {
      name: 'other',
      roles: ['VIEWER', 'OPERATOR'],
      namespaces: ['a', 'b'],
    });
    const actor = await actorBy(authenticator, one.secret);
    expect(actor).toMatchObject({
      id: `token:${one.token.id}`,
      name: 'test',
      roles: new Set(['VIEWER', 'OPERATOR']),
      namespaces: new Set(['a', 'b']),
      tokenId: one.token.id,
      expiresAt: null,
    });
    expect((await actorBy(authenticator, two.secret)).classKey).toBe(actor.classKey);
    expect((await actorBy(authenticator, (await tokenBeside(database)).secret)).classKey).not.toBe(
      actor.classKey,
    );
  });

  it.each([
    [null, 'missing'],
    ['', 'unknown'],
    ['slp_', 'unknown'],
    [`slp_${'a'.repeat(300)}`, 'unknown'],
    [`Bearer slp_${'a'.repeat(43)}`, 'unknown'],
    [`slp_${'a'.repeat(42)}'`, 'unknown'],
    [`slp_${'a'.repeat(43)}`, 'unknown'],
  ])('makes nobody of %j', async (secret, reason) => {
    const { authenticator } = await replica();
    expect(await authenticator.fromBearer(secret, HERE)).toMatchObject({ code: 'UNAUTHENTICATED', reason });
  });

  it('makes whoever comes from this machine without a token an ADMIN, where access control is off', async () => {
    const { authenticator, database } = await replica({ open: true });
    for (const address of ['127.0.0.1', '127.1.2.3', '::1', '::ffff:127.0.0.1']) {
      expect(await authenticator.fromBearer(null, { address })).toMatchObject({
        id: 'local',
        namespaces: 'all',
        roles: new Set(['ADMIN']),
      });
    }
    for (const address of ['10.0.0.1', '::ffff:10.0.0.1', '', '127.0.0.1.evil']) {
      expect(await authenticator.fromBearer(null, { address })).toMatchObject({ reason: 'missing' });
    }
    // A token that is sent counts, and a bad one is no token.
    const { secret } = await tokenBeside(database);
    expect(await authenticator.fromBearer(secret, HERE)).toMatchObject({ roles: new Set(['VIEWER']) });
    expect(await authenticator.fromBearer(`${secret}x`, HERE)).toMatchObject({ reason: 'unknown' });
    expect(authenticator.actorState((await authenticator.fromBearer(null, HERE)) as Actor)).toBe('valid'); // just shown to be one
  });

  it('asks the database once for a token, also for many requests at the same time', async () => {
    const { seen, pool } = watchedPool();
    const { authenticator, database } = await replica({ pool });
    const { secret } = await tokenBeside(database);
    await Promise.all(Array.from({ length: 50 }, async () => actorBy(authenticator, secret)));
    for (let i = 0; i < 50; i += 1) await actorBy(authenticator, secret);
    expect(seen.names).toEqual(['token_by_hash']);
  });

  it('asks the database each time while the feed is not current', async () => {
    const { seen, pool } = watchedPool();
    const { authenticator, database } = await replica({
      pool,
      feed: { current: false, ...deaf },
    });
    const { token, secret } = await tokenBeside(database);
    const actor = await actorBy(authenticator, secret);
    await revoke(token.id);
    expect(await authenticator.fromBearer(secret, AWAY)).toMatchObject({ reason: 'revoked' });
    expect(authenticator.actorState(actor)).toBe('revoked');
    expect(seen.names).toHaveLength(2);
  });

  it('asks the database again after a minute, whatever the feed says', async () => {
    const clock = new ManualClock();
    const { authenticator, database } = await replica({
      clock,
      feed: { current: true, ...deaf },
    });
    const { token, secret } = await tokenBeside(database);
    await actorBy(authenticator, secret);
    await revoke(token.id);
    clock.advance(59_999);
    await actorBy(authenticator, secret);
    clock.advance(1);
    expect(await authenticator.fromBearer(secret, AWAY)).toMatchObject({ reason: 'revoked' });
  });

  it('remembers wrong tokens within a bound, and not beyond the making of a new one', async () => {
    const { authenticator } = await replica();
    const wrong = Array.from({ length: 1_500 }, () => `slp_${randomBytes(32).toString('base64url')}`);
    await Promise.all(wrong.map(async (secret) => authenticator.fromBearer(secret, AWAY)));
    expect(authenticator.sizes).toEqual({ known: 0, unknown: 1_000, live: 0 });
    const chosen = wrong.at(-1) ?? '';
    expect(await authenticator.fromBearer(chosen, AWAY)).toMatchObject({ reason: 'unknown' });
    await ensureBootstrapToken(elsewhere, chosen);
    await waitFor(
      async () => !((await authenticator.fromBearer(chosen, AWAY)) instanceof AuthFailure),
      'the new token',
    );
  });

  it('does not remember a token as wrong that was made while it looked', async () => {
    const { seen, pool } = watchedPool();
    const { authenticator, feed } = await replica({ pool });
    const secret = `slp_${randomBytes(32).toString('base64url')}`;
    let told = 0;
    feed.listen(['TOKEN'], () => (told += 1));
    seen.gate = async () => {
      seen.gate = async () => undefined;
      await ensureBootstrapToken(elsewhere, secret);
      await waitFor(() => told > 0, 'the feed to tell of it');
    };
    expect(await authenticator.fromBearer(secret, AWAY)).toMatchObject({ reason: 'unknown' });
    expect(await actorBy(authenticator, secret)).toMatchObject({ name: 'bootstrap' });
  });
});

describe('actorState', () => {
  it('is revoked before any stream is told of the revocation, or of anything after it', async () => {
    const { authenticator, database, feed } = await replica();
    const { token, secret } = await tokenBeside(database);
    const actor = await actorBy(authenticator, secret);
    const stream = feed.open({
      kinds: ['TOKEN'],
      namespaces: 'all',
      mode: 'EVERY',
      matches: () => true,
      after: null,
      onExpired: 'ERROR',
    });
    expect(authenticator.actorState(actor)).toBe('valid');
    await revoke(token.id);
    // The making of the token may still come first.
    let item = await stream.next();
    if (item?.type === 'change' && item.change.op === 'INSERT') item = await stream.next();
    expect(item).toMatchObject({ type: 'change', change: { objectId: token.id, reason: 'Revoked' } });
    expect(authenticator.actorState(actor)).toBe('revoked');
    expect(await authenticator.fromBearer(secret, AWAY)).toMatchObject({ reason: 'revoked' });
    stream.close();
  });

  it('is revoked at once where the revocation was made, before the log tells of it', async () => {
    const { authenticator, database } = await replica({
      feed: { current: true, ...deaf },
    });
    const { token, secret } = await tokenBeside(database);
    const actor = await actorBy(authenticator, secret);
    const commands = tokenCommands({
      database,
      clock: new ManualClock(),
      written: (row) => authenticator.written(row),
    });
    await commands.revokeToken(local, { id: token.id });
    expect(authenticator.actorState(actor)).toBe('revoked');
    expect(await authenticator.fromBearer(secret, AWAY)).toMatchObject({ reason: 'revoked' });
  });

  it('is expired from the instant of the expiry on, without anybody telling', async () => {
    const clock = new ManualClock('2030-01-01T00:00:00Z');
    const { authenticator, database } = await replica({ clock });
    const { secret } = await tokenBeside(database, { expiresAt: new Date('2030-01-01T00:00:10Z') });
    const actor = await actorBy(authenticator, secret);
    clock.advance(9_999);
    expect(authenticator.actorState(actor)).toBe('valid');
    clock.advance(1);
    expect(authenticator.actorState(actor)).toBe('expired');
    expect(await authenticator.fromBearer(secret, AWAY)).toMatchObject({ reason: 'expired' });
  });

  it.each([
    ['fewer namespaces', { namespaces: ['a'] }],
    ['other roles', { roles: ['DEPLOYER'] }],
    ['more namespaces', { namespaces: ['*'] }],
  ])('is changed with %s, and the token makes a new actor with those', async (_what, fields) => {
    const { authenticator, database } = await replica();
    const { token, secret } = await tokenBeside(database, { namespaces: ['a', 'b'] });
    const before = await actorBy(authenticator, secret);
    await update(token.id, fields);
    await waitFor(() => authenticator.actorState(before) === 'changed', 'the change');
    const after = await actorBy(authenticator, secret);
    expect(after.classKey).not.toBe(before.classKey);
    expect(authenticator.actorState(after)).toBe('valid');
    // Back to what it was: both hold the same rights again.
    await update(token.id, { namespaces: ['a', 'b'], roles: ['VIEWER'] });
    await waitFor(() => authenticator.actorState(before) === 'valid', 'the change back');
    expect(authenticator.actorState(after)).toBe('changed');
  });

  it('stays valid with another name or a later end', async () => {
    const clock = new ManualClock('2030-01-01T00:00:00Z');
    const { authenticator, database, feed } = await replica({ clock });
    const { token, secret } = await tokenBeside(database, { expiresAt: new Date('2030-01-01T00:00:10Z') });
    const actor = await actorBy(authenticator, secret);
    let told = 0;
    feed.listen(['TOKEN'], ({ reason }) => (told += reason === 'Updated' ? 1 : 0));
    await update(token.id, { name: 'renamed', expiresAt: new Date('2030-01-01T00:01:00Z') });
    await waitFor(() => told > 0, 'the change');
    clock.advance(20_000);
    expect(authenticator.actorState(actor)).toBe('valid');
    expect(await actorBy(authenticator, secret)).toMatchObject({ name: 'renamed' });
    clock.advance(40_000);
    expect(authenticator.actorState(actor)).toBe('expired');
  });

  it('hears of what is done behind the server, a deleted row included', async () => {
    const { authenticator, database } = await replica();
    const [one, two] = [await tokenBeside(database), await tokenBeside(database)];
    const [first, second] = [
      await actorBy(authenticator, one.secret),
      await actorBy(authenticator, two.secret),
    ];
    await elsewhere.pool.query('UPDATE token SET revoked_at = now(), version = version + 1 WHERE id = $1', [
      one.token.id,
    ]);
    await elsewhere.pool.query('DELETE FROM token WHERE id = $1', [two.token.id]);
    await waitFor(() => authenticator.actorState(first) === 'revoked', 'the update');
    await waitFor(() => authenticator.actorState(second) === 'revoked', 'the removal');
    for (const { secret } of [one, two]) {
      expect(await authenticator.fromBearer(secret, AWAY)).toBeInstanceOf(AuthFailure);
    }
  });

  it('knows of a revocation that came while the token was being looked up', async () => {
    const { seen, pool } = watchedPool();
    const { authenticator, database, feed } = await replica({ pool });
    const { token, secret } = await tokenBeside(database);
    let told = 0;
    feed.listen(['TOKEN'], ({ reason }) => (told += reason === 'Revoked' ? 1 : 0));
    // The row was read while it was good; before the answer is used, the feed tells of the revocation.
    seen.gate = async () => {
      await revoke(token.id);
      await waitFor(() => told > 0, 'the feed to tell of it');
    };
    expect(await authenticator.fromBearer(secret, AWAY)).toMatchObject({ reason: 'revoked' });
    expect(await authenticator.fromBearer(secret, AWAY)).toMatchObject({ reason: 'revoked' });
  });

  it('knows its token however many others came since, and nothing of an actor of somebody else', async () => {
    const { authenticator, database } = await replica();
    const { token, secret } = await tokenBeside(database);
    const actor = await actorBy(authenticator, secret);
    const others = Array.from({ length: 10_200 }, () => ({
      id: newId('TOKEN'),
      secret: `slp_${randomBytes(32).toString('base64url')}`,
    }));
    await elsewhere.pool.query(
      `WITH made AS (INSERT INTO token (id, name, roles, namespaces, created_by) SELECT id, 'x', '{VIEWER}', '{*}', 'test' FROM unnest($1::text[]) AS id RETURNING id)
       SELECT count(*) FROM made`,
      [others.map(({ id }) => id)],
    );
    await elsewhere.pool.query('INSERT INTO token_secret SELECT * FROM unnest($1::text[], $2::text[])', [
      others.map(({ id }) => id),
      others.map((other) => createHash('sha256').update(other.secret).digest('hex')),
    ]);
    await Promise.all(others.map(async (other) => actorBy(authenticator, other.secret)));
    expect(authenticator.sizes.known).toBe(10_000);
    await revoke(token.id);
    await waitFor(() => authenticator.actorState(actor) === 'revoked', 'the revocation');
    expect(authenticator.actorState({ ...actor })).toBe('changed');
  });
});

describe('the last use of a token', () => {
  const lastUsed = async (id: string): Promise<Date | undefined> => {
    const { rows } = await elsewhere.pool.query<{ at: Date }>(
      'SELECT last_used_at AS at FROM token_use WHERE token_id = $1',
      [id],
    );
    return rows[0]?.at;
  };

  it('is written off the path of requests, at most once a minute, and changes no version', async () => {
    const clock = new ManualClock('2030-01-01T00:00:00Z');
    const { seen, pool } = watchedPool();
    const { authenticator, database } = await replica({ clock, pool });
    const { token, secret } = await tokenBeside(database);
    const use = async (ms: number): Promise<Date | undefined> => {
      clock.advance(ms);
      await actorBy(authenticator, secret);
      await authenticator.flushUses();
      return lastUsed(token.id);
    };
    expect(await use(0)).toEqual(new Date('2030-01-01T00:00:00Z'));
    expect(await use(30_000)).toEqual(new Date('2030-01-01T00:00:00Z'));
    expect(await use(29_999)).toEqual(new Date('2030-01-01T00:00:00Z'));
    expect(seen.names.filter((name) => name === 'token_record_use')).toHaveLength(1);
    expect(await use(1)).toEqual(new Date('2030-01-01T00:01:00Z'));
    const { rows } = await database.pool.query('SELECT version FROM token WHERE id = $1', [token.id]);
    expect(rows).toEqual([{ version: 1 }]);
  });

  it('is written once a minute over all replicas, and never back', async () => {
    const clocks = [new ManualClock('2030-01-01T00:00:00Z'), new ManualClock('2030-01-01T00:00:30Z')];
    const [one, two] = await Promise.all(clocks.map(async (clock) => replica({ clock })));
    if (!one || !two) throw new Error('two were started');
    const { token, secret } = await tokenBeside(elsewhere);
    for (const { authenticator } of [two, one, two]) {
      await actorBy(authenticator, secret);
      await authenticator.flushUses();
    }
    expect(await lastUsed(token.id)).toEqual(new Date('2030-01-01T00:00:30Z'));
  });

  it('waits for the next time when the database is away', async () => {
    const { seen, pool } = watchedPool();
    const { authenticator, database } = await replica({ pool });
    const { token, secret } = await tokenBeside(database);
    await actorBy(authenticator, secret);
    await database.pool.query('ALTER TABLE token_use RENAME TO token_use_away');
    await expect(authenticator.flushUses()).rejects.toThrow(/token_use/);
    await database.pool.query('ALTER TABLE token_use_away RENAME TO token_use');
    await authenticator.flushUses();
    expect(await lastUsed(token.id)).toBeInstanceOf(Date);
    await authenticator.flushUses();
    expect(seen.names.filter((name) => name === 'token_record_use')).toHaveLength(2);
  });

  it('is not recorded for a token that is refused, and leaves deleted ones out', async () => {
    const { authenticator, database } = await replica();
    const [revoked, removed] = [await tokenBeside(database), await tokenBeside(database)];
    await revoke(revoked.token.id);
    await authenticator.fromBearer(revoked.secret, AWAY);
    await actorBy(authenticator, removed.secret);
    await elsewhere.pool.query('DELETE FROM token WHERE id = $1', [removed.token.id]);
    await authenticator.flushUses();
    expect([await lastUsed(revoked.token.id), await lastUsed(removed.token.id)]).toEqual([
      undefined,
      undefined,
    ]);
  });
});
