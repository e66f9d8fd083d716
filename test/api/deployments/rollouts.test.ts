import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { Database } from '../../../src/store/database.js';
import type { RolloutRow } from '../../../src/store/rows.js';
import { columnList } from '../../../src/store/tables.js';
import { local, someone } from '../../support/callers.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import {
  aDeployment,
  aRelease,
  domainOf,
  failureOf,
  report,
  stored,
  TO_RUNNING,
  valueOf,
  type Domain,
} from '../../support/deployments.js';
import { openStore } from '../../support/open-store.js';

const UPDATED = ['UPDATING', 'RUNNING'] as const;

describe('rollouts', () => {
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

  const of = async (deploymentId: string): Promise<RolloutRow[]> => {
    const { rows } = await store.pool.query<RolloutRow>(
      `SELECT ${columnList('rollout')} FROM rollout WHERE deployment_id = $1 ORDER BY created_at, id`,
      [deploymentId],
    );
    return rows;
  };
  const locked = async (deploymentId: string): Promise<string | null> => {
    const { rows } = await store.pool.query<{ lock: { rolloutId: string } }>(
      'SELECT lock FROM deploy_lock_held WHERE deployment_id = $1',
      [deploymentId],
    );
    return rows[0]?.lock.rolloutId ?? null;
  };
  const aRunning = async () => {
    const seeded = await aDeployment(domain);
    return { ...seeded, deployment: await report(domain, seeded.deployment, TO_RUNNING) };
  };

  describe('under the deploy lock', () => {
    it('begin with what creates a deployment, and end with its success', async () => {
      const { deployment, release } = await aDeployment(domain);
      const [begun] = await of(deployment.id);
      expect(begun).toMatchObject({
        operation: 'DEPLOY',
        phase: 'ACTIVATING',
        outcome: null,
        toReleaseId: release.id,
      });
      expect(await locked(deployment.id)).toBe(begun?.id);
      await report(domain, deployment, TO_RUNNING);
      expect(await of(deployment.id)).toMatchObject([{ outcome: 'SUCCEEDED' }]);
      expect(await locked(deployment.id)).toBeNull();
    });

    it('keep others out, who learn by whom, and leave nothing behind', async () => {
      const { deployment } = await aDeployment(domain);
      const next = await aRelease(domain);
      const before = await stored(store, deployment.id);
      const [holder] = await of(deployment.id);
      const refusal = failureOf(
        await domain.deployRelease(local, { id: deployment.id, release: { id: next.id } }),
      );
      expect(refusal).toMatchObject({
        kind: 'LockHeld',
        phase: 'ACTIVATING',
        lock: { deploymentId: deployment.id, rolloutId: holder?.id, startedBy: 'local' },
      });
      expect(await of(deployment.id)).toHaveLength(1);
      expect(await stored(store, deployment.id)).toEqual(before);
    });

    it('are begun by exactly one of sixteen at once', async () => {
      const { deployment } = await aRunning();
      const all = await Promise.all(
        Array.from({ length: 16 }, () => domain.beginRollout(local, { id: deployment.id })),
      );
      const winners = all.flatMap((outcome) => (outcome.done ? [outcome.value.id] : []));
      expect(winners).toHaveLength(1);
      const losers = all.flatMap((outcome) => (outcome.done ? [] : [outcome.failure]));
      expect(losers).toEqual(
        Array.from({ length: 15 }, () =>
          expect.objectContaining({
            kind: 'LockHeld',
            lock: expect.objectContaining({ rolloutId: winners[0] }),
          }),
        ),
      );
      expect(await of(deployment.id)).toMatchObject([
        { outcome: 'SUCCEEDED' },
        { id: winners[0], outcome: null },
      ]);
    });

    it('lose it at the instant at which it expires, and are interrupted by who takes it', async () => {
      const { deployment } = await aRunning();
      const first = valueOf(await domain.beginRollout(local, { id: deployment.id }));
      const { rows } = await store.pool.query(
        "SELECT slipway_lock_free($1, now()) AS at, slipway_lock_free($1, now() + interval '1 microsecond') AS before",
        [first.id],
      );
      expect(rows).toEqual([{ at: true, before: false }]);
      await store.pool.query('UPDATE deploy_lock SET expires_at = now() WHERE deployment_id = $1', [
        deployment.id,
      ]);
      const second = valueOf(await domain.beginRollout(local, { id: deployment.id }));
      expect(await of(deployment.id)).toMatchObject([
        { outcome: 'SUCCEEDED' },
        { id: first.id, outcome: 'INTERRUPTED' },
        { id: second.id, outcome: null },
      ]);
      const next = await aRelease(domain);
      const late = failureOf(await domain.activateRollout(local, { id: first.id, release: { id: next.id } }));
      expect(late).toMatchObject({ kind: 'InvalidTransition', from: 'INTERRUPTED' });
    });
  });

  describe('that build first', () => {
    it('say how far they are, activate what they built, and succeed with the deployment', async () => {
      const { deployment } = await aRunning();
      const next = await aRelease(domain);
      const begun = valueOf(await domain.beginRollout(local, { id: deployment.id, source: { sha: 'abc' } }));
      expect(begun).toMatchObject({
        operation: 'UPDATE',
        phase: 'PREPARING',
        source: { sha: 'abc' },
        toReleaseId: null,
      });
      expect((await stored(store, deployment.id)).version).toBe(deployment.version);
      for (const phase of ['BUILDING', 'PUSHING', 'BUILDING'] as const) {
        expect(valueOf(await domain.setRolloutPhase(local, { id: begun.id, phase }))).toMatchObject({
          phase,
        });
      }
      const active = valueOf(await domain.activateRollout(local, { id: begun.id, release: { id: next.id } }));
      expect(active).toMatchObject({ phase: 'ACTIVATING', toReleaseId: next.id, outcome: null });
      const moving = await stored(store, deployment.id);
      expect(moving).toMatchObject({ phase: 'UPDATE_PENDING', targetReleaseId: next.id });
      await report(domain, moving, UPDATED);
      expect((await of(deployment.id)).at(-1)).toMatchObject({ id: begun.id, outcome: 'SUCCEEDED' });
      expect(await stored(store, deployment.id)).toMatchObject({
        currentReleaseId: next.id,
        targetReleaseId: null,
      });
      expect(await locked(deployment.id)).toBeNull();
    });

    it('change nothing once their lock has run out, though nobody took it', async () => {
      const { deployment } = await aRunning();
      const next = await aRelease(domain);
      const begun = valueOf(await domain.beginRollout(local, { id: deployment.id }));
      await store.pool.query(
        "UPDATE deploy_lock SET expires_at = now() - interval '1 second' WHERE deployment_id = $1",
        [deployment.id],
      );
      const refusal = failureOf(
        await domain.activateRollout(local, { id: begun.id, release: { id: next.id } }),
      );
      expect(refusal).toMatchObject({ kind: 'InvalidTransition', to: 'ACTIVATING' });
      expect(await stored(store, deployment.id)).toEqual(deployment);
      // A sign of life takes it back.
      valueOf(await domain.setRolloutPhase(local, { id: begun.id, phase: 'PUSHING' }));
      valueOf(await domain.activateRollout(local, { id: begun.id, release: { id: next.id } }));
    });

    it('fail once, and stay cancelled when they fail later', async () => {
      const { deployment } = await aRunning();
      const first = valueOf(await domain.beginRollout(local, { id: deployment.id }));
      const failed = valueOf(
        await domain.failRollout(local, { id: first.id, code: 'BuildFailed', message: 'no' }),
      );
      expect(failed).toMatchObject({ outcome: 'FAILED', error: { code: 'BuildFailed', message: 'no' } });
      expect(await locked(deployment.id)).toBeNull();
      const second = valueOf(await domain.beginRollout(local, { id: deployment.id }));
      valueOf(await domain.cancelRollout(local, { id: second.id, message: 'by operator' }));
      const late = valueOf(await domain.failRollout(local, { id: second.id, message: 'its build failed' }));
      expect(late).toMatchObject({ outcome: 'CANCELLED', message: 'by operator', error: null });
    });
  });

  describe('that are called off', () => {
    it('go back to what serves before they end', async () => {
      const { deployment, release } = await aRunning();
      const next = await aRelease(domain);
      const { rollout } = valueOf(
        await domain.deployRelease(local, { id: deployment.id, release: { id: next.id } }),
      );
      const moving = await report(domain, await stored(store, deployment.id), ['UPDATING']);
      expect(moving.targetReleaseId).toBe(next.id);
      const asked = valueOf(await domain.cancelRollout(local, { id: rollout?.id ?? '' }));
      expect(asked).toMatchObject({ outcome: null, cancelRequestedAt: expect.any(Date) });
      const back = await stored(store, deployment.id);
      expect(back).toMatchObject({
        phase: 'UPDATE_PENDING',
        targetReleaseId: release.id,
        currentReleaseId: release.id,
      });
      expect(await locked(deployment.id)).toBe(rollout?.id);
      await report(domain, back, UPDATED);
      expect((await of(deployment.id)).at(-1)).toMatchObject({ outcome: 'CANCELLED' });
      expect(await stored(store, deployment.id)).toMatchObject({
        currentReleaseId: release.id,
        targetReleaseId: null,
      });
      expect(await locked(deployment.id)).toBeNull();
    });

    it('take down what nothing served before', async () => {
      const { deployment } = await aDeployment(domain);
      await report(domain, deployment, ['INITIAL_SETUP']);
      const [rollout] = await of(deployment.id);
      valueOf(await domain.cancelRollout(local, { id: rollout?.id ?? '' }));
      const going = await stored(store, deployment.id);
      expect(going).toMatchObject({ phase: 'UNDEPLOYING', desiredState: 'UNDEPLOYED' });
      await report(domain, going, ['UNDEPLOYED']);
      expect(await of(deployment.id)).toMatchObject([{ outcome: 'CANCELLED' }]);
    });
  });

  it('are pre-empted by a deletion, which is one itself', async () => {
    const { deployment } = await aRunning();
    const building = valueOf(await domain.beginRollout(local, { id: deployment.id }));
    const going = valueOf(await domain.deleteDeployment(local, { id: deployment.id }));
    expect((await of(deployment.id)).slice(1)).toMatchObject([
      { id: building.id, outcome: 'CANCELLED', message: 'The deployment is being deleted.' },
      { operation: 'DELETE', outcome: null },
    ]);
    await report(domain, going, ['DELETING', 'DELETED']);
    expect((await of(deployment.id)).at(-1)).toMatchObject({ operation: 'DELETE', outcome: 'SUCCEEDED' });
  });

  it('roll back to what ran before, and a failed one is retried under its parent', async () => {
    const { deployment, release } = await aRunning();
    const next = await aRelease(domain);
    valueOf(await domain.deployRelease(local, { id: deployment.id, release: { id: next.id } }));
    const updated = await report(domain, await stored(store, deployment.id), UPDATED);
    const { rollout } = valueOf(await domain.rollbackDeployment(local, { id: updated.id }));
    expect(rollout).toMatchObject({ operation: 'ROLLBACK', fromReleaseId: next.id, toReleaseId: release.id });
    const failed = await report(domain, await stored(store, deployment.id), ['UPDATING', 'UPDATE_FAILED']);
    expect((await of(deployment.id)).at(-1)).toMatchObject({
      outcome: 'FAILED',
      error: { code: 'Unexplained' },
    });
    valueOf(await domain.retryDeployment(local, { id: failed.id }));
    expect((await of(deployment.id)).at(-1)).toMatchObject({
      operation: 'RETRY',
      parentRolloutId: rollout?.id,
    });
  });

  it('apply again what is wanted already, for one force token once', async () => {
    const { deployment, release } = await aRunning();
    const again = { id: deployment.id, forceToken: 'monday' };
    const { rollout } = valueOf(await domain.reapplyDeployment(local, again));
    expect(rollout).toMatchObject({ operation: 'REDEPLOY', toReleaseId: release.id, outcome: null });
    await report(domain, await stored(store, deployment.id), UPDATED);
    const before = await of(deployment.id);
    expect(valueOf(await domain.reapplyDeployment(local, again)).rollout).toBeNull();
    expect(await of(deployment.id)).toEqual(before);
    valueOf(await domain.reapplyDeployment(local, { ...again, forceToken: 'tuesday' }));
    expect(await of(deployment.id)).toHaveLength(before.length + 1);
  });

  it('end with an outcome that nobody can change, psql included', async () => {
    const { deployment } = await aRunning();
    await expect(
      store.pool.query(
        "UPDATE rollout SET outcome = 'FAILED', version = version + 1 WHERE deployment_id = $1",
        [deployment.id],
      ),
    ).rejects.toMatchObject({ code: 'SL006' });
  });

  it('are nobody’s business in other namespaces', async () => {
    const { deployment } = await aRunning();
    const begun = valueOf(await domain.beginRollout(local, { id: deployment.id }));
    const elsewhere = someone({ roles: ['DEPLOYER'], namespaces: ['other'] });
    expect(failureOf(await domain.cancelRollout(elsewhere, { id: begun.id }))).toMatchObject({
      kind: 'NotFound',
    });
    expect(failureOf(await domain.beginRollout(elsewhere, { id: deployment.id }))).toMatchObject({
      kind: 'NotFound',
    });
    expect((await of(deployment.id)).at(-1)).toMatchObject({ outcome: null });
  });
});
