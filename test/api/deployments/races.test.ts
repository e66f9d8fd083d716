import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { Database } from '../../../src/store/database.js';
import type { DeploymentRow } from '../../../src/store/rows.js';
import { local } from '../../support/callers.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import {
  aDeployment,
  aRelease,
  aRuntime,
  changesOf,
  domainOf,
  freshName,
  report,
  stored,
  TO_RUNNING,
  valueOf,
  watched,
  type Domain,
} from '../../support/deployments.js';
import { startFeed, type TestFeed } from '../../support/feeds.js';
import { openStore } from '../../support/open-store.js';
import { deploymentCommands } from '../../../src/deployments/index.js';
import { systemClock } from '../../../src/kernel/clock.js';

const OBJECTS = 8;
const RACERS = 12;
const ROUNDS = 10;

describe('racing writers of deployments', () => {
  let test: TestDatabase;
  let stores: Database[];
  let domains: [Domain, Domain];
  beforeAll(async () => {
    test = await createDatabase();
    stores = [openStore(test, 'one'), openStore(test, 'two')];
    domains = stores.map((store) => domainOf(store)) as [Domain, Domain]; // two stores
  });
  afterAll(async () => {
    await Promise.all(stores.map((store) => store.close()));
    await test.drop();
  });

  /** Every version has one change row, in order, from 1 to the current one. */
  async function expectWhole(row: DeploymentRow): Promise<void> {
    const changes = await changesOf(domains[0].database, row.id);
    expect(changes.map(({ version }) => version)).toEqual(
      Array.from({ length: row.version }, (_, at) => at + 1),
    );
  }

  it('lets exactly one patch of each version win, on two replicas, and shows every loser the object', async () => {
    const seeded = await Promise.all(Array.from({ length: OBJECTS }, () => aDeployment(domains[0])));
    await Promise.all(
      seeded.map(async ({ deployment }) => {
        let current = await report(domains[0], deployment, TO_RUNNING);
        for (let round = 0; round < ROUNDS; round += 1) {
          const { id, version } = current;
          const outcomes = await Promise.all(
            Array.from({ length: RACERS }, (_, racer) =>
              domains[racer % 2 ? 0 : 1].patchDeploymentStatus(local, {
                id,
                expectedVersion: version,
                conditions: [{ type: 'Winner', status: 'TRUE', reason: `R${round}x${racer}` }],
              }),
            ),
          );
          const winners = outcomes.flatMap((outcome) => (outcome.done ? [outcome.value] : []));
          expect(winners).toHaveLength(1);
          for (const outcome of outcomes) {
            if (outcome.done) continue;
            expect(outcome.failure).toMatchObject({ kind: 'VersionConflict', currentVersion: version + 1 });
            expect(outcome.failure).toHaveProperty('current', winners[0]);
          }
          current = winners[0] ?? current;
        }
        expect(await stored(domains[0].database, current.id)).toEqual(current);
        expect(current.version).toBe(4 + ROUNDS);
        await expectWhole(current);
      }),
    );
  });

  it('makes one deployment of many applies that create it at once', async () => {
    const runtime = await aRuntime(domains[0]);
    const releases = await Promise.all([aRelease(domains[0]), aRelease(domains[0])]);
    for (let round = 0; round < ROUNDS; round += 1) {
      const name = freshName('raced');
      const outcomes = await Promise.all(
        Array.from({ length: RACERS }, (_, racer) =>
          domains[racer % 2 ? 0 : 1].applyDeployment(local, {
            name,
            runtime: { id: runtime.id },
            release: { id: releases[racer < RACERS / 2 ? 0 : 1].id },
          }),
        ),
      );
      const applied = outcomes.flatMap((outcome) => (outcome.done ? [outcome.value] : []));
      expect(applied.filter(({ result }) => result === 'CREATED')).toHaveLength(1);
      // Who asked for the same finds it done; who asked for the other release finds a rollout under way.
      expect(applied.filter(({ result }) => result === 'UNCHANGED')).toHaveLength(RACERS / 2 - 1);
      const refused = outcomes.flatMap((outcome) => (outcome.done ? [] : [outcome.failure.kind]));
      expect(refused).toEqual(Array.from({ length: RACERS / 2 }, () => 'LockHeld'));
      const row = await stored(domains[0].database, applied[0]?.deployment.id ?? '');
      expect(row.generation).toBe(1);
      await expectWhole(row);
    }
  });

  it('decides again for a mutation without an expected version, until it fits', async () => {
    const { deployment } = await aDeployment(domains[0]);
    const running = await report(domains[0], deployment, TO_RUNNING);
    const labels = Array.from({ length: RACERS }, (_, racer) => ({ racer: `r${racer}` }));
    const outcomes = await Promise.all(
      labels.map((one, at) =>
        domains[at % 2 ? 0 : 1].applyDeployment(local, { name: running.name, labels: one }),
      ),
    );
    for (const outcome of outcomes) expect(valueOf(outcome).result).toBe('UPDATED');
    const row = await stored(domains[0].database, running.id);
    expect(row).toMatchObject({ version: running.version + RACERS, generation: running.generation });
    await expectWhole(row);
  });

  it('hears from the feed what others wrote, and patches that in one statement', async () => {
    const feed: TestFeed = await startFeed(test.connection);
    const { database, statements } = watched(feed.database);
    const own = deploymentCommands({ database, clock: systemClock, feed: feed.feed });
    try {
      const { deployment } = await aDeployment(domains[0]);
      const first = { id: deployment.id, expectedVersion: 1, observedGeneration: 1 };
      valueOf(await own.patchDeploymentStatus(local, first));
      const told = new Promise<void>((resolve) => {
        feed.feed.listen(['DEPLOYMENT'], (change) => {
          if (change.objectId === deployment.id && change.version === 3) resolve();
        });
      });
      valueOf(
        await domains[0].patchDeploymentStatus(local, {
          id: deployment.id,
          expectedVersion: 2,
          phase: 'INITIAL_SETUP',
        }),
      );
      feed.feed.wake();
      await told;
      statements.length = 0;
      const patch = { id: deployment.id, expectedVersion: 3, phase: 'PROVISIONING' } as const;
      expect(valueOf(await own.patchDeploymentStatus(local, patch))).toMatchObject({ version: 4 });
      expect(
        statements.filter((statement) => statement.startsWith('deployment') || statement.startsWith('read_')),
      ).toEqual(['deployment_patch_status']);
    } finally {
      await feed.close();
    }
  });

  it('gives a name that was deleted back at once', async () => {
    const { deployment, runtime, release } = await aDeployment(domains[0]);
    valueOf(await domains[0].deleteDeployment(local, { id: deployment.id, mode: 'FORGET' }));
    const input = { name: deployment.name, runtime: { id: runtime.id }, release: { id: release.id } };
    const again = valueOf(await domains[1].applyDeployment(local, input));
    expect(again).toMatchObject({ result: 'CREATED', deployment: { version: 1, generation: 1 } });
    expect(again.deployment.id).not.toBe(deployment.id);
  });

  it('keeps nothing of a transaction that waits: a create under a runtime that is being deleted sees the mark', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const runtime = await aRuntime(domains[0]);
      const release = await aRelease(domains[0]);
      const input = { name: freshName('late'), runtime: { id: runtime.id }, release: { id: release.id } };
      const [created, deleted] = await Promise.all([
        domains[0].applyDeployment(local, input),
        domains[1].deleteRuntime(local, { id: runtime.id }),
      ]);
      const gone = valueOf(deleted).deletedAt !== null;
      // Either the deployment came first and holds the runtime, or the runtime went first and refused it.
      expect(created.done).toBe(!gone);
      if (!created.done) expect(['Terminating', 'NotFound']).toContain(created.failure.kind);
    }
  });
});
