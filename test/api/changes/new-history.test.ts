import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { AuthFailure } from '../../../src/access/errors.js';
import { rotateEpoch } from '../../../src/changes/epoch.js';
import { deploymentCommands } from '../../../src/deployments/index.js';
import { systemClock } from '../../../src/kernel/clock.js';
import { local } from '../../support/callers.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { stored, valueOf } from '../../support/deployments.js';
import { seedDeployment } from '../../support/seed.js';
import { startReplica, tokenBeside, type AccessReplica } from '../../support/tokens.js';
import { waitFor } from '../../support/wait-for.js';

/** What a process has learned of a database is of one history. Set back under a running server, it has another. */
describe('a database that was restored under a running server', () => {
  let test: TestDatabase;
  let replica: AccessReplica;
  beforeEach(async () => {
    test = await createDatabase();
    replica = await startReplica(test);
  });
  afterEach(async () => {
    await replica.close();
    await test.drop();
  });

  /** As `pg_restore` does it: past every trigger. Resolves when the feed has noticed. */
  async function restore(statement: string, values: unknown[]): Promise<void> {
    let noticed = false;
    const off = replica.feed.onNewHistory(() => (noticed = true));
    await replica.database.inTransaction(async (tx) => {
      await tx.query({ text: 'SET LOCAL session_replication_role = replica', values: [] });
      await tx.query({ text: statement, values });
    });
    await rotateEpoch(replica.database);
    await waitFor(() => noticed, 'the feed noticed');
    off();
  }

  it('has no status decided on what it held before', async () => {
    const { database, feed } = replica;
    const commands = deploymentCommands({ database, clock: systemClock, feed });
    const { id } = await seedDeployment(database);
    const report = { id, expectedVersion: 1, phase: 'INITIAL_SETUP' } as const;
    valueOf(await commands.patchDeploymentStatus(local, report));
    // The same version, another fact.
    await restore(`UPDATE deployment SET phase = 'WAITING_FOR_AGENTS' WHERE id = $1`, [id]);
    const next = { id, expectedVersion: 2, observedGeneration: 1 };
    expect(valueOf(await commands.patchDeploymentStatus(local, next))).toMatchObject({ version: 3 });
    expect(await stored(database, id)).toMatchObject({ phase: 'WAITING_FOR_AGENTS', observedGeneration: 1 });
  });

  it('gives tokens the rights that they had then, and ends what goes on with others', async () => {
    const { database, authenticator } = replica;
    const { token, secret } = await tokenBeside(database, { roles: ['ADMIN'] });
    const before = await authenticator.fromBearer(secret, { address: '10.1.2.3' });
    if (before instanceof AuthFailure) throw new Error(before.message);
    expect(authenticator.actorState(before)).toBe('valid');
    await restore(`UPDATE token SET roles = '{VIEWER}' WHERE id = $1`, [token.id]);
    expect(authenticator.actorState(before)).toBe('changed');
    const after = await authenticator.fromBearer(secret, { address: '10.1.2.3' });
    expect(after).toMatchObject({ roles: new Set(['VIEWER']) });
    await restore('DELETE FROM token_secret WHERE token_id = $1', [token.id]);
    expect(await authenticator.fromBearer(secret, { address: '10.1.2.3' })).toBeInstanceOf(AuthFailure);
  });
});
