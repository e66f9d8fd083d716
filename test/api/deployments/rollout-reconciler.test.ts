import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { newRolloutId, rolloutsInterruptUnchecked } from '../../../src/rollouts/index.js';
import type { Database } from '../../../src/store/database.js';
import { local } from '../../support/callers.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import {
  aDeployment,
  changesOf,
  domainOf,
  report,
  TO_RUNNING,
  valueOf,
  type Domain,
} from '../../support/deployments.js';
import { openStore } from '../../support/open-store.js';

const SWEEPER = { actor: 'system:rollouts', reason: 'RolloutInterrupted', traceId: null };

describe('the reconciler of rollouts', () => {
  let test: TestDatabase;
  let store: Database;
  let domain: Domain;
  beforeAll(async () => {
    test = await createDatabase();
    store = openStore(test);
    domain = domainOf(store);
  });
  afterAll(async () => {
    await store.close();
    await test.drop();
  });

  /** A rollout that began an hour ago, and its lock, which runs out `seconds` from now. */
  const began = async ({ seconds = -1, active = false, lock = true } = {}) => {
    const { deployment } = await aDeployment(domain);
    await report(domain, deployment, TO_RUNNING);
    const id = newRolloutId();
    await store.inTransaction(async (tx) => {
      // Past the triggers, which keep the time of creation.
      await tx.query('SET LOCAL session_replication_role = replica');
      await tx.query(
        `INSERT INTO rollout (id, namespace, deployment_id, operation, started_by, created_at, activated_at)
         VALUES ($1, 'default', $2, 'UPDATE', 'ci', now() - interval '1 hour', CASE WHEN $3 THEN now() END)`,
        [id, deployment.id, active],
      );
      if (!lock) return;
      await tx.query(
        `INSERT INTO deploy_lock (deployment_id, namespace, rollout_id, started_by, acquired_at, expires_at)
         VALUES ($1, 'default', $2, 'ci', now() - interval '1 hour', now() + interval '1 second' * $3)`,
        [deployment.id, id, seconds],
      );
    });
    return { id, deploymentId: deployment.id };
  };
  const state = async ({ id, deploymentId }: { readonly id: string; readonly deploymentId: string }) => {
    const { rows } = await store.pool.query<{ outcome: string | null; locked: boolean }>(
      'SELECT outcome, EXISTS (SELECT FROM deploy_lock WHERE deployment_id = $2) AS locked FROM rollout WHERE id = $1',
      [id, deploymentId],
    );
    return rows[0];
  };
  const sweep = (batch = 100) => rolloutsInterruptUnchecked(store.pool, batch, SWEEPER);

  it('ends what fell silent, once, however many servers look, and takes its lock away', async () => {
    const silent = await began();
    const lockless = await began({ lock: false });
    const swept = await Promise.all([sweep(), sweep(), sweep()]);
    expect(swept.reduce((sum, count) => sum + count)).toBe(2);
    for (const one of [silent, lockless]) {
      expect(await state(one)).toEqual({ outcome: 'INTERRUPTED', locked: false });
      expect(await changesOf(store, one.id)).toMatchObject([
        { to: 'INTERRUPTED', reason: 'RolloutInterrupted', actor: 'system:rollouts' },
      ]);
    }
    expect(await sweep()).toBe(0);
    valueOf(await domain.beginRollout(local, { id: silent.deploymentId }));
  });

  it('leaves what still holds its lock, and what is active', async () => {
    const building = await began({ seconds: 60 });
    const active = await began({ active: true });
    expect(await sweep()).toBe(0);
    expect(await state(building)).toEqual({ outcome: null, locked: true });
    expect(await state(active)).toEqual({ outcome: null, locked: true });
  });

  it('leaves the lock of a successor', async () => {
    const lost = await began({ lock: false });
    await store.pool.query(
      `INSERT INTO deploy_lock (deployment_id, namespace, rollout_id, started_by, acquired_at, expires_at)
       VALUES ($1, 'default', $2, 'other', now(), now() + interval '1 minute')`,
      [lost.deploymentId, newRolloutId()],
    );
    expect(await sweep()).toBe(1);
    expect(await state(lost)).toEqual({ outcome: 'INTERRUPTED', locked: true });
  });

  it('takes a batch at a time, and waits for nobody who is at work on one', async () => {
    const all = [await began(), await began(), await began()];
    const [held] = all;
    await store.inTransaction(async (tx) => {
      await tx.query('SELECT FROM deploy_lock WHERE deployment_id = $1 FOR UPDATE', [held?.deploymentId]);
      expect(await sweep()).toBe(2);
    });
    expect(await sweep()).toBe(1);
    const more = [await began(), await began(), await began()];
    expect(await sweep(2)).toBe(2);
    expect(await sweep(2)).toBe(1);
    for (const one of more) expect(await state(one)).toMatchObject({ outcome: 'INTERRUPTED' });
  });
});
