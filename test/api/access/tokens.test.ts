import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { tokenCommands, type TokenCommands } from '../../../src/access/tokens.js';
import type { Database } from '../../../src/store/database.js';
import { valueOf } from '../../support/agents.js';
import { local, someone } from '../../support/callers.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { ManualClock } from '../../support/manual-clock.js';
import { openStore } from '../../support/open-store.js';

const clock = new ManualClock('2030-01-01T00:00:00.000Z');
const at = (text: string): Date => new Date(text);
let test: TestDatabase;
let store: Database;
let commands: TokenCommands;
beforeAll(async () => {
  test = await createDatabase();
  store = openStore(test);
  commands = tokenCommands({ database: store, clock });
});
afterAll(async () => {
  await store.close();
  await test.drop();
});

const made = async (more: object = {}) =>
  valueOf(await commands.createToken(local, { name: 'ci', roles: ['DEPLOYER'], ...more }));
const changesOf = async (id: string) => {
  const { rows } = await store.pool.query<{ version: number; reason: string; actor: string }>(
    'SELECT version, reason, actor FROM change WHERE object_id = $1 ORDER BY seq',
    [id],
  );
  return rows;
};

describe('createToken', () => {
  it('gives the secret this once and keeps its hash alone', async () => {
    const { token, secret } = await made({ expiresAt: at('2030-02-01T00:00:00Z') });
    expect(secret).toMatch(/^slp_[A-Za-z0-9_-]{43}$/);
    expect(token).toMatchObject({
      name: 'ci',
      roles: ['DEPLOYER'],
      namespaces: ['*'],
      agentName: null,
      createdBy: 'local',
      expiresAt: at('2030-02-01T00:00:00Z'),
      revokedAt: null,
      version: 1,
    });
    expect(JSON.stringify(token)).not.toContain(secret);
    const { rows } = await store.pool.query('SELECT hash FROM token_secret WHERE token_id = $1', [token.id]);
    expect(rows).toEqual([{ hash: createHash('sha256').update(secret).digest('hex') }]);
    const { rows: tables } = await store.pool.query<{ name: string }>(
      `SELECT quote_ident(table_name) AS name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`,
    );
    expect(tables.length).toBeGreaterThan(5);
    for (const { name } of tables) {
      const { rows: hits } = await store.pool.query(`SELECT FROM ${name} AS t WHERE t::text LIKE $1`, [
        `%${secret.slice(4)}%`,
      ]);
      expect(hits, name).toHaveLength(0);
    }
  });

  it('makes a different secret each time', async () => {
    const secrets = await Promise.all(Array.from({ length: 20 }, async () => (await made()).secret));
    expect(new Set(secrets).size).toBe(20);
  });

  it('brings roles and namespaces in order, each once', async () => {
    const { token } = await made({ roles: ['OPERATOR', 'VIEWER', 'OPERATOR'], namespaces: ['b', 'a', 'b'] });
    expect(token).toMatchObject({ roles: ['VIEWER', 'OPERATOR'], namespaces: ['a', 'b'] });
  });

  it.each([
    ['no role', { roles: [] }, 'roles'],
    ['an unknown role', { roles: ['ROOT'] }, 'roles'],
    ['no namespace', { namespaces: [] }, 'namespaces'],
    ['`*` beside others', { namespaces: ['*', 'a'] }, 'namespaces'],
    ['a bad namespace', { namespaces: ['A b'] }, 'namespaces'],
    ['too many namespaces', { namespaces: Array.from({ length: 101 }, (_, i) => `n${i}`) }, 'namespaces'],
    ['the role AGENT without a name', { roles: ['AGENT'] }, 'agentName'],
    ["an agent's name without the role", { agentName: 'edge-1' }, 'agentName'],
    ['a star in the middle', { roles: ['AGENT'], agentName: 'ed*ge' }, 'agentName'],
    ['a star alone', { roles: ['AGENT'], agentName: '*' }, 'agentName'],
    ['an end that is now', { expiresAt: at('2030-01-01T00:00:00Z') }, 'expiresAt'],
    ['no name', { name: '' }, 'name'],
    ['a name that cannot be stored', { name: 'a\0b' }, 'name'],
    ['a secret of its own', { secret: 'slp_mine' }, undefined],
  ])('refuses %s', async (_what, more, field) => {
    const outcome = await commands.createToken(local, { name: 'bad', roles: ['VIEWER'], ...more });
    expect(outcome).toMatchObject({ failure: { kind: 'InvalidInput' } });
    if (!outcome.done && outcome.failure.kind === 'InvalidInput' && field !== undefined) {
      expect(outcome.failure.issues[0]?.path.slice(0, 2)).toEqual(['input', field]);
    }
  });

  it('is for ADMIN alone', async () => {
    for (const role of ['VIEWER', 'DEPLOYER', 'OPERATOR', 'CONTROLLER', 'AGENT'] as const) {
      await expect(
        commands.createToken(someone({ roles: [role] }), { name: 'x', roles: ['VIEWER'] }),
      ).rejects.toMatchObject({
        code: 'FORBIDDEN',
      });
    }
  });

  it('makes none that reaches further than its maker', async () => {
    const admin = someone({ roles: ['ADMIN'], namespaces: ['team-a', 'team-b'] });
    const wanted = (namespaces?: string[]) => ({
      name: 'x',
      roles: ['VIEWER'],
      ...(namespaces ? { namespaces } : {}),
    });
    expect(valueOf(await commands.createToken(admin, wanted())).token.namespaces).toEqual([
      'team-a',
      'team-b',
    ]);
    expect(valueOf(await commands.createToken(admin, wanted(['team-b']))).token.namespaces).toEqual([
      'team-b',
    ]);
    for (const namespaces of [['*'], ['team-c'], ['team-a', 'team-c']]) {
      await expect(commands.createToken(admin, wanted(namespaces))).rejects.toMatchObject({
        code: 'FORBIDDEN',
      });
    }
  });
});

describe('updateToken', () => {
  it('changes what is named, and null takes an end or an agent away', async () => {
    const { token } = await made({
      roles: ['AGENT', 'VIEWER'],
      agentName: 'edge-*',
      expiresAt: at('2030-02-01T00:00:00Z'),
    });
    const update = async (fields: object) =>
      valueOf(await commands.updateToken(local, { id: token.id, ...fields }));
    expect(await update({ name: 'renamed' })).toMatchObject({
      name: 'renamed',
      agentName: 'edge-*',
      version: 2,
    });
    expect(await update({ expiresAt: null })).toMatchObject({ expiresAt: null, version: 3 });
    expect(await update({ roles: ['VIEWER'], agentName: null })).toMatchObject({
      roles: ['VIEWER'],
      agentName: null,
      version: 4,
    });
    expect(await update({ namespaces: ['b', 'a'] })).toMatchObject({ namespaces: ['a', 'b'], version: 5 });
    expect((await changesOf(token.id)).map(({ reason, actor }) => [reason, actor])).toEqual([
      ['Created', 'local'],
      ...Array.from({ length: 4 }, () => ['Updated', 'local']),
    ]);
  });

  it('writes nothing when nothing changes', async () => {
    const { token } = await made({ namespaces: ['a', 'b'], expiresAt: at('2030-02-01T00:00:00Z') });
    const same = {
      id: token.id,
      name: 'ci',
      roles: ['DEPLOYER'],
      namespaces: ['b', 'a'],
      expiresAt: at('2030-02-01T00:00:00Z'),
    };
    expect(valueOf(await commands.updateToken(local, same))).toEqual(token);
    expect(await changesOf(token.id)).toHaveLength(1);
  });

  it('lets exactly one of those win who name the same version', async () => {
    const { token } = await made();
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, async (_, i) =>
        commands.updateToken(local, { id: token.id, expectedVersion: 1, name: `try-${i}` }),
      ),
    );
    expect(outcomes.filter(({ done }) => done)).toHaveLength(1);
    for (const outcome of outcomes) {
      if (!outcome.done) {
        expect(outcome.failure).toMatchObject({
          kind: 'VersionConflict',
          currentVersion: 2,
          current: { version: 2 },
        });
      }
    }
  });

  it.each([
    ['the role AGENT without a name', { roles: ['AGENT'] }],
    ["an agent's name without the role", { agentName: 'edge-1' }],
    ['an end in the past', { expiresAt: at('2029-01-01T00:00:00Z') }],
    ['a creator', { createdBy: 'me' }],
  ])('refuses %s', async (_what, fields) => {
    const { token } = await made();
    expect(await commands.updateToken(local, { id: token.id, ...fields })).toMatchObject({
      failure: { kind: 'InvalidInput' },
    });
  });

  it('brings no revoked token back', async () => {
    const { token } = await made();
    await commands.revokeToken(local, { id: token.id });
    expect(await commands.updateToken(local, { id: token.id, name: 'again' })).toMatchObject({
      failure: { kind: 'InvalidInput' },
    });
  });

  it('moves no rights that whoever asks does not have, neither given nor taken', async () => {
    const admin = someone({ roles: ['ADMIN'], namespaces: ['team-a'] });
    const own = await made({ namespaces: ['team-a'] });
    const wide = await made();
    await expect(commands.updateToken(admin, { id: own.token.id, namespaces: ['*'] })).rejects.toMatchObject({
      code: 'FORBIDDEN',
    });
    await expect(
      commands.updateToken(admin, { id: wide.token.id, namespaces: ['team-a'] }),
    ).rejects.toMatchObject({ code: 'FORBIDDEN' });
    await expect(commands.revokeToken(admin, { id: wide.token.id })).rejects.toMatchObject({
      code: 'FORBIDDEN',
    });
    expect(valueOf(await commands.updateToken(admin, { id: own.token.id, roles: ['VIEWER'] }))).toMatchObject(
      { version: 2 },
    );
    expect(await changesOf(wide.token.id)).toHaveLength(1);
  });

  it('does not know a token that is none', async () => {
    const id = 'tok_01h455vb4pex5vsknk084sn02q';
    expect(await commands.updateToken(local, { id, name: 'x' })).toMatchObject({
      failure: { kind: 'NotFound' },
    });
    expect(await commands.revokeToken(local, { id })).toMatchObject({ failure: { kind: 'NotFound' } });
    expect(await commands.revokeToken(local, { id: 'agt_x' })).toMatchObject({
      failure: { kind: 'InvalidInput' },
    });
  });
});

describe('revokeToken', () => {
  it('revokes once, and again is a success that writes nothing', async () => {
    const { token } = await made();
    const revoked = valueOf(await commands.revokeToken(local, { id: token.id, expectedVersion: 1 }));
    expect(revoked).toMatchObject({ version: 2, revokedAt: clock.now() });
    expect(valueOf(await commands.revokeToken(local, { id: token.id, expectedVersion: 1 }))).toEqual(revoked);
    expect((await changesOf(token.id)).map(({ reason }) => reason)).toEqual(['Created', 'Revoked']);
  });
});
