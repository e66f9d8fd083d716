import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import {
  assertProtected,
  countAdminTokens,
  createTokenBeside,
  ensureBootstrapToken,
} from '../../../src/access/protection.js';
import { tokenCommands } from '../../../src/access/tokens.js';
import { StartError } from '../../../src/kernel/start-error.js';
import type { Database } from '../../../src/store/database.js';
import { local } from '../../support/callers.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { ManualClock } from '../../support/manual-clock.js';
import { openStore } from '../../support/open-store.js';
import { tokenBeside } from '../../support/tokens.js';

describe('assertProtected', () => {
  const decide = (host: string, mode: 'auto' | 'tokens' | 'none', tokens: number, proxied = false) => {
    try {
      return assertProtected(
        { server: { host, loopback: host === '127.0.0.1' }, access: { mode, proxied } },
        tokens,
      );
    } catch (error) {
      if (error instanceof StartError) return error.publicMessage;
      throw error;
    }
  };

  it.each([
    ['127.0.0.1', 'auto', 0, 'open'],
    ['127.0.0.1', 'auto', 3, 'open'],
    ['127.0.0.1', 'none', 0, 'open'],
    ['127.0.0.1', 'tokens', 1, 'tokens'],
    ['0.0.0.0', 'auto', 1, 'tokens'],
    ['0.0.0.0', 'tokens', 1, 'tokens'],
  ] as const)('at %s with SLIPWAY_AUTH=%s and %d ADMIN tokens it is %s', (host, mode, tokens, access) => {
    expect(decide(host, mode, tokens)).toBe(access);
  });

  it('asks for tokens behind a proxy that others can reach, and does not start without', () => {
    expect(decide('127.0.0.1', 'auto', 1, true)).toBe('tokens');
    expect(decide('127.0.0.1', 'auto', 0, true)).toContain('SLIPWAY_ALLOWED_HOSTS');
    expect(decide('127.0.0.1', 'none', 1, true)).toContain('SLIPWAY_ALLOWED_HOSTS');
  });

  it.each([
    [
      '0.0.0.0',
      'auto',
      0,
      [
        'SLIPWAY_HOST is 0.0.0.0',
        'SLIPWAY_BOOTSTRAP_TOKEN',
        'npm run token -- create',
        'SLIPWAY_HOST=127.0.0.1',
      ],
    ],
    ['10.0.0.5', 'tokens', 0, ['SLIPWAY_HOST is 10.0.0.5', 'SLIPWAY_BOOTSTRAP_TOKEN']],
    ['127.0.0.1', 'tokens', 0, ['SLIPWAY_AUTH is `tokens`', 'SLIPWAY_BOOTSTRAP_TOKEN', '`auto`']],
    ['0.0.0.0', 'none', 5, ['SLIPWAY_AUTH is `none`', 'SLIPWAY_HOST is 0.0.0.0', 'SLIPWAY_AUTH=tokens']],
  ] as const)(
    'does not start at %s with SLIPWAY_AUTH=%s and %d ADMIN tokens, and says what to do',
    (host, mode, tokens, texts) => {
      const message = decide(host, mode, tokens);
      for (const text of texts) expect(message).toContain(text);
      expect(message).not.toContain('\n');
    },
  );
});

describe('the first token', () => {
  let test: TestDatabase;
  let one: Database;
  let two: Database;
  beforeAll(async () => {
    test = await createDatabase();
    one = openStore(test);
    two = openStore(test);
  });
  afterAll(async () => {
    await one.close();
    await two.close();
    await test.drop();
  });
  const newSecret = (): string => `slp_${randomBytes(32).toString('base64url')}`;

  it('comes from the bootstrap setting once, on however many replicas and starts', async () => {
    const secret = newSecret();
    const before = await countAdminTokens(one);
    const made = await Promise.all(
      [one, two, one, two].map(async (store) => ensureBootstrapToken(store, secret)),
    );
    expect(made.filter((what) => what === 'made')).toHaveLength(1);
    expect(await ensureBootstrapToken(two, secret)).toBe('there');
    expect(await countAdminTokens(one)).toBe(before + 1);
    const { rows } = await one.pool.query(
      `SELECT name, created_by AS by, roles::text[] FROM token WHERE name = 'bootstrap'`,
    );
    expect(rows).toEqual([{ name: 'bootstrap', by: 'system:bootstrap', roles: ['ADMIN'] }]);
  });

  it('does not come back by a restart after it was revoked', async () => {
    const secret = newSecret();
    await ensureBootstrapToken(one, secret);
    const { rows } = await one.pool.query<{ id: string }>(
      'SELECT id FROM token ORDER BY created_at DESC LIMIT 1',
    );
    await tokenCommands({ database: one, clock: new ManualClock() }).revokeToken(local, { id: rows[0]?.id });
    const before = await countAdminTokens(one);
    expect(await ensureBootstrapToken(one, secret)).toBe('there');
    expect(await countAdminTokens(one)).toBe(before);
  });

  it.each(['', 'slp_short', 'secret', `slp_${'a'.repeat(300)}`])('does not come from %j', async (secret) => {
    const failing = ensureBootstrapToken(one, secret);
    await expect(failing).rejects.toBeInstanceOf(StartError);
    await expect(failing).rejects.toMatchObject({
      publicMessage: expect.stringContaining('SLIPWAY_BOOTSTRAP_TOKEN'),
    });
    if (secret !== '') {
      await expect(failing).rejects.not.toMatchObject({ message: expect.stringContaining(secret) });
    }
  });

  it('counts only ADMIN tokens that are good now', async () => {
    const before = await countAdminTokens(one);
    const { token } = await tokenBeside(one, {
      roles: ['ADMIN'],
      expiresAt: new Date('2999-01-01T00:00:00Z'),
    });
    await tokenBeside(one, { roles: ['OPERATOR'] });
    expect(await countAdminTokens(one)).toBe(before + 1);
    await one.pool.query(
      `UPDATE token SET expires_at = now() - interval '1 s', version = version + 1 WHERE id = $1`,
      [token.id],
    );
    expect(await countAdminTokens(one)).toBe(before);
  });

  it('is made beside the database with the same checks as through the API', async () => {
    const clock = new ManualClock();
    const { token, secret } = await createTokenBeside(one, clock, {
      name: 'edge',
      roles: ['AGENT'],
      agentName: 'edge-*',
    });
    expect(secret).toMatch(/^slp_/);
    expect(token).toMatchObject({ agentName: 'edge-*', namespaces: ['*'], createdBy: 'system:command' });
    for (const [input, text] of [
      [{ name: 'edge', roles: ['AGENT'] }, '`agentName`: must be given'],
      [{ name: 'edge', roles: ['KING'] }, '`roles.0`'],
      [{ roles: ['ADMIN'] }, '`name`'],
    ] as const) {
      await expect(createTokenBeside(one, clock, input)).rejects.toMatchObject({
        publicMessage: expect.stringContaining(text),
      });
    }
  });
});
