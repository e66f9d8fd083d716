import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { systemGrant } from '../../../src/access/authorise.js';
import type { RolloutId } from '../../../src/kernel/ids.js';
import {
  lockProve,
  lockTake,
  newRolloutId,
  rolloutsInterruptUnchecked,
} from '../../../src/rollouts/index.js';
import type { Database } from '../../../src/store/database.js';
import type { DeploymentRow, RolloutRow } from '../../../src/store/rows.js';
import { columnList } from '../../../src/store/tables.js';
import { local } from '../../support/callers.js';
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
import { hooked } from '../../support/hooked-database.js';
import { openStore } from '../../support/open-store.js';

const CONTENDERS = 16;
const ROUNDS = 200;
const SWEEPER = { actor: 'system:rollouts', reason: 'RolloutInterrupted', traceId: null };

describe('the deploy lock, raced for', () => {
  let test: TestDatabase;
  let store: Database;
  let domain: Domain;
  let deployment: DeploymentRow;
  beforeAll(async () => {
    test = await createDatabase();
    store = openStore(test);
    domain = domainOf(store);
  });
  afterAll(async () => {
    await store.close();
    await test.drop();
  });
  beforeEach(async () => {
    deployment = await report(domain, (await aDeployment(domain)).deployment, TO_RUNNING);
  });

  const rollouts = async (): Promise<RolloutRow[]> => {
    const { rows } = await store.pool.query<RolloutRow>(
      `SELECT ${columnList('rollout')} FROM rollout WHERE deployment_id = $1 ORDER BY created_at, id`,
      [deployment.id],
    );
    return rows;
  };
  /** Who stands in the lock's row, whether it holds or not. */
  const holder = async (): Promise<string | null> => {
    const { rows } = await store.pool.query<{ id: string }>(
      'SELECT rollout_id AS id FROM deploy_lock WHERE deployment_id = $1',
      [deployment.id],
    );
    return rows[0]?.id ?? null;
  };
  const begin = async (of: Domain = domain): Promise<RolloutRow> =>
    valueOf(await of.beginRollout(local, { id: deployment.id }));
  const expire = () =>
    store.pool.query(
      "UPDATE deploy_lock SET expires_at = now() - interval '1 second' WHERE deployment_id = $1",
      [deployment.id],
    );
  /** A rollout that began an hour ago and whose lock is gone. */
  const silent = async (): Promise<string> => {
    const id = newRolloutId();
    await store.inTransaction(async (tx) => {
      // Past the triggers, which keep the time of creation.
      await tx.query('SET LOCAL session_replication_role = replica');
      await tx.query(
        `INSERT INTO rollout (id, namespace, deployment_id, operation, started_by, created_at)
         VALUES ($1, 'default', $2, 'UPDATE', 'ci', now() - interval '1 hour')`,
        [id, deployment.id],
      );
    });
    return id;
  };
  /** Everything that a use case could have changed. */
  const everything = async () => ({
    deployment: await stored(store, deployment.id),
    rollouts: await rollouts(),
    holder: await holder(),
    changes: (await store.pool.query('SELECT count(*) FROM change')).rows,
  });

  it(`is taken by one of ${CONTENDERS} at once, on two servers, ${ROUNDS} times over, and losers leave nothing`, async () => {
    const other = openStore(test);
    const domains = [domain, domainOf(other)] as const;
    try {
      for (let round = 1; round <= ROUNDS; round += 1) {
        const outcomes = await Promise.all(
          Array.from({ length: CONTENDERS }, (_, at) =>
            domains[at % 2 ? 1 : 0].beginRollout(local, { id: deployment.id }),
          ),
        );
        const [winner, ...more] = outcomes.flatMap((outcome) => (outcome.done ? [outcome.value.id] : []));
        expect(more).toEqual([]);
        const holders = outcomes.flatMap(({ ...outcome }) =>
          outcome.done || outcome.failure.kind !== 'LockHeld' ? [] : [outcome.failure.lock.rolloutId],
        );
        expect(holders).toEqual(Array.from({ length: CONTENDERS - 1 }, () => winner));
        expect(await holder()).toBe(winner);
        valueOf(await domain.cancelRollout(local, { id: winner ?? '' }));
        expect(await holder()).toBeNull();
      }
      expect(await rollouts()).toHaveLength(1 + ROUNDS);
    } finally {
      await other.close();
    }
  }, 60_000);

  describe('between reading and writing', () => {
    it('is not stolen twice', async () => {
      await begin();
      await expire();
      let first: RolloutRow | undefined;
      const hook = hooked(store, 'deploy_lock_take', async () => {
        first = await begin();
      });
      const late = failureOf(await domainOf(hook.database).beginRollout(local, { id: deployment.id }));
      expect(hook.hits).toBe(1);
      expect(late).toMatchObject({ kind: 'LockHeld', lock: { rolloutId: first?.id } });
      expect(await holder()).toBe(first?.id);
      expect((await rollouts()).map(({ outcome }) => outcome)).toEqual(['SUCCEEDED', 'INTERRUPTED', null]);
    });

    it('is not given back by one who lost it', async () => {
      const first = await begin();
      await expire();
      let second: RolloutRow | undefined;
      const hook = hooked(store, 'deploy_lock_row', async () => {
        second = await begin();
      });
      const late = failureOf(
        await domainOf(hook.database).failRollout(local, { id: first.id, message: 'no' }),
      );
      expect(hook.hits).toBeGreaterThan(0);
      expect(late).toMatchObject({ kind: 'InvalidTransition', from: 'INTERRUPTED' });
      expect(await holder()).toBe(second?.id);
      const third = failureOf(await domain.beginRollout(local, { id: deployment.id }));
      expect(third).toMatchObject({ kind: 'LockHeld', lock: { rolloutId: second?.id } });
    });

    it('is not kept by a phase that says nothing new once another one has it', async () => {
      const first = await begin();
      await expire();
      let second: RolloutRow | undefined;
      const hook = hooked(store, 'deploy_lock_row', async () => {
        second = await begin();
      });
      const late = failureOf(
        await domainOf(hook.database).setRolloutPhase(local, { id: first.id, phase: 'PREPARING' }),
      );
      expect(hook.hits).toBe(1);
      expect(late).toMatchObject({ kind: 'InvalidTransition', from: 'INTERRUPTED' });
      expect(await holder()).toBe(second?.id);
    });

    it('is not taken back for a rollout that the reconciler just ended', async () => {
      const first = { id: await silent() };
      const hook = hooked(store, 'deploy_lock_take', async () => {
        expect(await rolloutsInterruptUnchecked(store.pool, 10, SWEEPER)).toBe(1);
      });
      const late = failureOf(
        await domainOf(hook.database).setRolloutPhase(local, { id: first.id, phase: 'PREPARING' }),
      );
      expect(hook.hits).toBeGreaterThan(0);
      expect(late).toMatchObject({ kind: 'InvalidTransition', from: 'INTERRUPTED' });
      expect(await holder()).toBeNull();
    });

    it('lets nobody begin on what was deleted meanwhile', async () => {
      const hook = hooked(store, 'deploy_lock_take', async () => {
        valueOf(await domain.deleteDeployment(local, { id: deployment.id, mode: 'FORGET' }));
      });
      const late = failureOf(await domainOf(hook.database).beginRollout(local, { id: deployment.id }));
      expect(hook.hits).toBeGreaterThan(0);
      expect(late).toMatchObject({ kind: 'Terminating' });
      expect((await rollouts()).filter(({ outcome }) => outcome === null)).toEqual([]);
      expect(await holder()).toBeNull();
    });

    it('puts nothing into service that another one overtook', async () => {
      const next = await aRelease(domain);
      const first = await begin();
      let before: Awaited<ReturnType<typeof everything>> | undefined;
      const hook = hooked(store, 'deploy_lock_row', async () => {
        await expire();
        await begin();
        before = await everything();
      });
      const release = { id: next.id };
      const late = failureOf(await domainOf(hook.database).activateRollout(local, { id: first.id, release }));
      expect(hook.hits).toBe(1);
      expect(late).toMatchObject({ kind: 'InvalidTransition', from: 'INTERRUPTED' });
      expect(await everything()).toEqual(before);
    });
  });

  describe('of an active rollout', () => {
    const deploying = async () => {
      const next = await aRelease(domain);
      const outcome = await domain.deployRelease(local, { id: deployment.id, release: { id: next.id } });
      const { rollout } = valueOf(outcome);
      const updating = await report(domain, await stored(store, deployment.id), ['UPDATING']);
      return { rollout: rollout?.id ?? '', updating, next };
    };

    it('is too late to call off what runs by then', async () => {
      const { rollout, updating, next } = await deploying();
      const hook = hooked(store, 'deploy_lock_row', () => report(domain, updating, ['RUNNING']));
      const late = failureOf(await domainOf(hook.database).cancelRollout(local, { id: rollout }));
      expect(hook.hits).toBeGreaterThan(0);
      expect(late).toMatchObject({ kind: 'InvalidTransition', from: 'SUCCEEDED' });
      expect(await stored(store, deployment.id)).toMatchObject({
        currentReleaseId: next.id,
        targetReleaseId: null,
      });
    });

    it('is too late to report that something runs that was called off', async () => {
      const { rollout, updating } = await deploying();
      const hook = hooked(store, 'deploy_lock_row', async () => {
        valueOf(await domain.cancelRollout(local, { id: rollout }));
      });
      const patch = { id: updating.id, expectedVersion: updating.version, phase: 'RUNNING' } as const;
      const late = failureOf(await domainOf(hook.database).patchDeploymentStatus(local, patch));
      expect(hook.hits).toBeGreaterThan(0);
      expect(late).toMatchObject({ kind: 'VersionConflict' });
      expect(await stored(store, deployment.id)).toMatchObject({
        currentReleaseId: deployment.currentReleaseId,
      });
      expect(await holder()).toBe(rollout);
    });

    it.each([
      'deploy_lock_row',
      'deployment_patch_status',
      'rollouts_unfinished',
      'update_rollout',
      'deploy_lock_release',
    ])('goes with the promotion and the outcome or not at all: cut before %s', async (statement) => {
      const { rollout, updating, next } = await deploying();
      const before = await everything();
      const hook = hooked(store, statement, () => Promise.reject(new Error('cut')));
      const patch = { id: updating.id, expectedVersion: updating.version, phase: 'RUNNING' } as const;
      await expect(domainOf(hook.database).patchDeploymentStatus(local, patch)).rejects.toThrow('cut');
      expect(hook.hits).toBe(1);
      expect(await everything()).toEqual(before);
      await report(domain, updating, ['RUNNING']);
      expect(await stored(store, deployment.id)).toMatchObject({ currentReleaseId: next.id });
      expect((await rollouts()).at(-1)).toMatchObject({ id: rollout, outcome: 'SUCCEEDED' });
      expect(await holder()).toBeNull();
    });

    it.each(['deploy_lock_prove', 'update_deployment', 'update_rollout'])(
      'is one step from being built: cut before %s',
      async (statement) => {
        const next = await aRelease(domain);
        const first = await begin();
        const before = await everything();
        const hook = hooked(store, statement, () => Promise.reject(new Error('cut')));
        const activation = { id: first.id, release: { id: next.id } };
        await expect(domainOf(hook.database).activateRollout(local, activation)).rejects.toThrow('cut');
        expect(hook.hits).toBe(1);
        expect(await everything()).toEqual(before);
        valueOf(await domain.activateRollout(local, activation));
      },
    );
  });

  it('never lets a phase undo a cancellation', async () => {
    for (let round = 0; round < 20; round += 1) {
      const { id } = await begin();
      const phases = ['BUILDING', 'PUSHING', 'BUILDING'] as const;
      const outcomes = await Promise.all([
        ...phases.map((phase) => domain.setRolloutPhase(local, { id, phase })),
        domain.cancelRollout(local, { id }),
      ]);
      valueOf(outcomes[3] ?? fail());
      expect((await rollouts()).at(-1)).toMatchObject({ id, outcome: 'CANCELLED' });
      expect(await holder()).toBeNull();
    }
  });

  it('belongs to others at the instant at which it expires, by the clock of the database', async () => {
    const first = await begin();
    const grant = systemGrant('system:sweep', 'test');
    const lock = {
      deploymentId: deployment.id,
      namespace: 'default',
      rolloutId: newRolloutId(),
      startedBy: 'other',
    };
    const at = (moment: string) =>
      store.inTransaction(async (tx) => {
        await tx.query(`UPDATE deploy_lock SET expires_at = ${moment} WHERE deployment_id = $1`, [
          deployment.id,
        ]);
        const mine = await lockProve(tx, deployment.id, first.id);
        await tx.query(`UPDATE deploy_lock SET expires_at = ${moment} WHERE deployment_id = $1`, [
          deployment.id,
        ]);
        const theirs = await lockTake(tx, grant, lock);
        await tx.query('UPDATE deploy_lock SET rollout_id = $2 WHERE deployment_id = $1', [
          deployment.id,
          first.id,
        ]);
        return { mine, theirs };
      });
    expect(await at("date_trunc('milliseconds', now())")).toEqual({ mine: false, theirs: true });
    expect(await at("date_trunc('milliseconds', now()) + interval '1 millisecond'")).toEqual({
      mine: true,
      theirs: false,
    });
  });

  it('of a holder that is not there holds until it expires', async () => {
    await store.pool.query(
      `INSERT INTO deploy_lock (deployment_id, namespace, rollout_id, started_by, acquired_at, expires_at)
       VALUES ($1, 'default', $2, 'nobody', now(), now() + interval '1 minute')`,
      [deployment.id, newRolloutId()],
    );
    const refusal = failureOf(await domain.beginRollout(local, { id: deployment.id }));
    expect(refusal).toMatchObject({ kind: 'LockHeld', phase: null, lock: { startedBy: 'nobody' } });
    await expire();
    expect(await holder()).not.toBe((await begin()).id as RolloutId);
  });
});

function fail(): never {
  throw new Error('no outcome');
}
