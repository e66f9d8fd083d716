import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { DEPLOYMENT_PHASES, deploymentsPurgeUnchecked } from '../../../src/deployments/index.js';
import { rolloutsPurgeUnchecked } from '../../../src/rollouts/index.js';
import { runtimesPurgeUnchecked, runtimesSweepUnchecked } from '../../../src/runtimes/index.js';
import type { Database } from '../../../src/store/database.js';
import { local, someone } from '../../support/callers.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import {
  aDeployment,
  aRelease,
  changesOf,
  domainOf,
  failureOf,
  freshName,
  inPhase,
  report,
  stored,
  TO_RUNNING,
  valueOf,
  type Domain,
  type Seeded,
} from '../../support/deployments.js';
import { ManualClock } from '../../support/manual-clock.js';
import { openStore } from '../../support/open-store.js';

const SWEEPER = { actor: 'system:runtimes', reason: 'NoDeploymentsLeft', traceId: null };

describe('intents of users', () => {
  let test: TestDatabase;
  let store: Database;
  let domain: Domain;
  let seeded: Seeded;
  const deployer = someone({ roles: ['DEPLOYER'] });
  const operator = someone({ roles: ['OPERATOR'] });
  beforeAll(async () => {
    test = await createDatabase();
    store = openStore(test);
    domain = domainOf(store);
    seeded = await aDeployment(domain);
  });
  afterAll(async () => {
    await store.close();
    await test.drop();
  });

  describe('undeployDeployment', () => {
    it('takes down what runs, and remembers what it would run again', async () => {
      const { deployment, release } = await aDeployment(domain);
      const running = await report(domain, deployment, TO_RUNNING);
      const going = valueOf(await domain.undeployDeployment(deployer, { id: running.id }));
      expect(going).toMatchObject({ phase: 'UNDEPLOYING', desiredState: 'UNDEPLOYED', generation: 2 });
      expect(valueOf(await domain.undeployDeployment(deployer, { id: running.id }))).toEqual(going);
      const down = await report(domain, going, ['UNDEPLOYED']);
      expect(down).toMatchObject({ currentReleaseId: null, targetReleaseId: release.id });
      // Any part of the spec asks for it, and the release is remembered.
      const again = { name: down.name, env: [] };
      expect(valueOf(await domain.applyDeployment(deployer, again)).deployment).toMatchObject({
        phase: 'PENDING',
        desiredState: 'DEPLOYED',
        generation: 3,
        targetReleaseId: release.id,
      });
    });
  });

  describe('retryDeployment', () => {
    it('begins a failed step again, and its answer consumes the request', async () => {
      const { deployment } = await aDeployment(domain);
      const failed = await report(domain, deployment, [
        'INITIAL_SETUP',
        'PROVISIONING',
        'PROVISIONING_FAILED',
      ]);
      expect(failed.error).toMatchObject({ code: 'Unexplained' });
      const retried = valueOf(
        await domain.retryDeployment(deployer, { id: failed.id, reason: 'DiskMended' }),
      );
      expect(retried).toMatchObject({
        phase: 'PROVISIONING',
        retryRequested: true,
        error: null,
        generation: 1,
      });
      expect((await changesOf(store, failed.id)).at(-1)).toMatchObject({ reason: 'DiskMended' });
      expect(await report(domain, retried, ['RUNNING'])).toMatchObject({ retryRequested: false });
    });

    it('says when there is nothing to retry', async () => {
      const { deployment } = await aDeployment(domain);
      expect(failureOf(await domain.retryDeployment(deployer, { id: deployment.id }))).toMatchObject({
        kind: 'InvalidTransition',
        from: 'PENDING',
      });
    });
  });

  describe('deleteDeployment', () => {
    it('asks for the removal, refuses new specs, takes reports, and ends in one DELETE change', async () => {
      const { deployment } = await aDeployment(domain);
      const running = await report(domain, deployment, TO_RUNNING);
      const deleting = valueOf(await domain.deleteDeployment(deployer, { id: running.id }));
      expect(deleting).toMatchObject({ phase: 'DELETE_PENDING', deletedAt: null });
      expect(deleting.deletionRequestedAt).toBeInstanceOf(Date);
      expect(valueOf(await domain.deleteDeployment(deployer, { id: running.id }))).toEqual(deleting);
      const release = await aRelease(domain);
      const applied = await domain.applyDeployment(deployer, {
        name: running.name,
        release: { id: release.id },
      });
      expect(failureOf(applied)).toMatchObject({ kind: 'Terminating' });
      const gone = await report(domain, deleting, ['DELETING', 'DELETED']);
      expect(gone).toMatchObject({ phase: 'DELETED', currentReleaseId: null, observedRuntime: null });
      expect(gone.deletedAt).toBeInstanceOf(Date);
      const changes = await changesOf(store, running.id);
      expect(changes.map(({ op }) => op)).toEqual(['INSERT', ...Array<string>(5).fill('UPDATE'), 'DELETE']);
      expect(valueOf(await domain.deleteDeployment(deployer, { id: running.id }))).toEqual(gone);
    });

    it('keeps the facts of a report that is older than the wish to delete', async () => {
      const { deployment } = await aDeployment(domain);
      const going = await report(domain, deployment, ['INITIAL_SETUP', 'PROVISIONING']);
      const deleting = valueOf(await domain.deleteDeployment(deployer, { id: going.id }));
      const late = {
        id: going.id,
        expectedVersion: deleting.version,
        phase: 'RUNNING',
        runtime: { resourceId: 'arn:disk' },
      } as const;
      const row = valueOf(await domain.patchDeploymentStatus(local, late));
      expect(row).toMatchObject({ phase: 'DELETE_PENDING', observedRuntime: { resourceId: 'arn:disk' } });
      expect(row.deletionRequestedAt).toEqual(deleting.deletionRequestedAt);
    });

    it.each(DEPLOYMENT_PHASES)('forgets and detaches from %s in one audited step', async (phase) => {
      for (const mode of ['FORGET', 'DETACH'] as const) {
        const row = await inPhase(domain, seeded, phase);
        const dropped = valueOf(await domain.deleteDeployment(local, { id: row.id, mode }));
        expect(dropped.phase).toBe('DELETED');
        if (phase === 'DELETED') continue;
        expect((await changesOf(store, row.id)).at(-1)).toMatchObject({
          op: 'DELETE',
          from: phase,
          to: 'DELETED',
          reason: mode === 'FORGET' ? 'Forgotten' : 'Detached',
          actor: 'local',
        });
      }
    });

    it('is detached by OPERATOR and ADMIN, forgotten by ADMIN alone', async () => {
      const { deployment } = await aDeployment(domain);
      const { id } = deployment;
      await expect(domain.deleteDeployment(deployer, { id, mode: 'DETACH' })).rejects.toThrow('roles');
      await expect(domain.deleteDeployment(operator, { id, mode: 'FORGET' })).rejects.toThrow('roles');
      expect(await stored(store, id)).toEqual(deployment);
      expect(valueOf(await domain.deleteDeployment(operator, { id, mode: 'DETACH' }))).toMatchObject({
        phase: 'DELETED',
      });
    });

    it('is hidden from other namespaces', async () => {
      const { deployment } = await aDeployment(domain);
      const elsewhere = someone({ roles: ['ADMIN'], namespaces: ['other'] });
      for (const mode of ['DELETE', 'DETACH', 'FORGET'] as const) {
        const outcome = await domain.deleteDeployment(elsewhere, { id: deployment.id, mode });
        expect(failureOf(outcome)).toMatchObject({ kind: 'NotFound' });
      }
    });
  });

  describe('deleteRuntime', () => {
    it('goes at once when nothing lives on it, and its name is free again', async () => {
      const { runtime, deployment } = await aDeployment(domain);
      valueOf(await domain.deleteDeployment(local, { id: deployment.id, mode: 'FORGET' }));
      const gone = valueOf(await domain.deleteRuntime(operator, { id: runtime.id }));
      expect(gone.deletedAt).toBeInstanceOf(Date);
      expect(gone.version).toBe(2);
      expect((await changesOf(store, runtime.id)).at(-1)).toMatchObject({ op: 'DELETE', version: 2 });
      expect(valueOf(await domain.deleteRuntime(operator, { id: runtime.id }))).toEqual(gone);
      valueOf(await domain.createRuntime(operator, { name: runtime.name, type: 'external' }));
    });

    it('waits for its deployments, still serves their removal, and goes after the last one', async () => {
      const { runtime, deployment, release } = await aDeployment(domain);
      const second = valueOf(
        await domain.applyDeployment(local, {
          name: freshName('second'),
          runtime: { id: runtime.id },
          release: { id: release.id },
        }),
      ).deployment;
      const terminating = valueOf(await domain.deleteRuntime(operator, { id: runtime.id }));
      expect(terminating).toMatchObject({ deletedAt: null, version: 2 });
      const input = { runtime: { id: runtime.id }, release: { id: release.id } };
      for (const name of [freshName('new'), deployment.name]) {
        const outcome = await domain.applyDeployment(local, { name, ...input, runtimeConfig: { x: 1 } });
        expect(failureOf(outcome)).toMatchObject({ kind: 'Terminating' });
      }
      const deleting = valueOf(await domain.deleteDeployment(local, { id: deployment.id }));
      await report(domain, deleting, ['DELETING', 'DELETED']);
      const row = () =>
        store.prisma.runtime.findUniqueOrThrow({ where: { id: runtime.id }, select: { deletedAt: true } });
      expect((await row()).deletedAt).toBeNull();
      valueOf(await domain.deleteDeployment(local, { id: second.id, mode: 'FORGET' }));
      expect((await row()).deletedAt).toBeInstanceOf(Date);
      expect((await changesOf(store, runtime.id)).map(({ op, reason }) => [op, reason])).toEqual([
        ['INSERT', 'Created'],
        ['UPDATE', 'DeleteRequested'],
        ['DELETE', 'LastDeploymentDeleted'],
      ]);
    });

    it('is mended by the sweep where the step after the last deployment was lost, once', async () => {
      const { runtime, deployment } = await aDeployment(domain);
      valueOf(await domain.deleteRuntime(operator, { id: runtime.id }));
      await store.pool.query(
        `UPDATE deployment SET phase = 'DELETED', deleted_at = now(), version = version + 1 WHERE id = $1`,
        [deployment.id],
      );
      const now = new ManualClock().now();
      const swept = await Promise.all(
        [1, 2].map(() => runtimesSweepUnchecked(store.writer, now, 100, SWEEPER)),
      );
      expect(swept.flat().map(({ id }) => id)).toEqual([runtime.id]);
      expect((await changesOf(store, runtime.id)).at(-1)).toMatchObject({
        op: 'DELETE',
        actor: 'system:runtimes',
      });
    });
  });

  describe('purging', () => {
    it('takes deleted rows after their time, deployments before runtimes, in batches, and says nothing more', async () => {
      const { deployment, runtime } = await aDeployment(domain);
      valueOf(await domain.deleteDeployment(local, { id: deployment.id, mode: 'FORGET' }));
      const gone = valueOf(await domain.deleteRuntime(local, { id: runtime.id }));
      const changes = [await changesOf(store, deployment.id), await changesOf(store, runtime.id)];
      const cutoff = new Date((gone.deletedAt?.getTime() ?? 0) + 1);
      expect(await runtimesPurgeUnchecked(store.pool, new Date(0), 10)).toBe(0);
      await runtimesPurgeUnchecked(store.pool, cutoff, 1_000);
      // Its deployment's row still points at it.
      expect((await store.pool.query('SELECT FROM runtime WHERE id = $1', [runtime.id])).rowCount).toBe(1);
      // Their rollouts go first, and the log tells of them.
      while ((await deploymentsPurgeUnchecked(store.pool, cutoff, 100)) > 0);
      expect(await stored(store, deployment.id)).toMatchObject({ phase: 'DELETED' });
      const [rollout] = (
        await store.pool.query<{ id: string }>('SELECT id FROM rollout WHERE deployment_id = $1', [
          deployment.id,
        ])
      ).rows;
      expect(await rolloutsPurgeUnchecked(store, cutoff, 2, SWEEPER)).toBe(2);
      while ((await rolloutsPurgeUnchecked(store, cutoff, 100, SWEEPER)) > 0);
      expect((await changesOf(store, rollout?.id ?? '')).at(-1)).toMatchObject({
        op: 'DELETE',
        actor: SWEEPER.actor,
      });
      expect(await deploymentsPurgeUnchecked(store.pool, cutoff, 1)).toBe(1);
      while ((await deploymentsPurgeUnchecked(store.pool, cutoff, 100)) > 0);
      await runtimesPurgeUnchecked(store.pool, cutoff, 1_000);
      for (const [table, id] of [
        ['deployment', deployment.id],
        ['runtime', runtime.id],
      ]) {
        expect((await store.pool.query(`SELECT FROM ${table} WHERE id = $1`, [id])).rowCount).toBe(0);
      }
      expect([await changesOf(store, deployment.id), await changesOf(store, runtime.id)]).toEqual(changes);
    });

    it('leaves what is alive', async () => {
      const { deployment } = await aDeployment(domain);
      const far = new Date('2100-01-01T00:00:00Z');
      await deploymentsPurgeUnchecked(store.pool, far, 1_000);
      expect(await stored(store, deployment.id)).toEqual(deployment);
    });
  });
});
