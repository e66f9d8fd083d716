import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { idempotencyPurgeUnchecked } from '../../../src/store/idempotency.js';
import type { Database } from '../../../src/store/database.js';
import { local, someone } from '../../support/callers.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import {
  aDeployment,
  aRelease,
  aRuntime,
  changesOf,
  domainOf,
  failureOf,
  freshName,
  report,
  valueOf,
  type Domain,
} from '../../support/deployments.js';
import { ManualClock } from '../../support/manual-clock.js';
import { openStore } from '../../support/open-store.js';

const REPLAYS = 16;

describe('idempotency keys', () => {
  let test: TestDatabase;
  let stores: [Database, Database];
  let domains: [Domain, Domain];
  const clock = new ManualClock();
  beforeAll(async () => {
    test = await createDatabase();
    stores = [openStore(test, 'one'), openStore(test, 'two')];
    domains = [domainOf(stores[0], clock), domainOf(stores[1], clock)];
  });
  afterAll(async () => {
    await Promise.all(stores.map((store) => store.close()));
    await test.drop();
  });
  const records = async (key: string) =>
    (await stores[0].pool.query('SELECT * FROM idempotency_record WHERE key = $1', [key])).rowCount;

  it('give one effect and equal answers to concurrent replays on two replicas', async () => {
    const { deployment } = await aDeployment(domains[0]);
    const idempotencyKey = freshName('key');
    const patch = { id: deployment.id, expectedVersion: 1, phase: 'INITIAL_SETUP', idempotencyKey } as const;
    const outcomes = await Promise.all(
      Array.from({ length: REPLAYS }, (_, at) => domains[at % 2 ? 0 : 1].patchDeploymentStatus(local, patch)),
    );
    const [first] = outcomes.map(valueOf);
    expect(first).toMatchObject({ version: 2, phase: 'INITIAL_SETUP' });
    for (const outcome of outcomes) expect(valueOf(outcome)).toEqual(first);
    expect(await changesOf(stores[0], deployment.id)).toHaveLength(2);
  });

  it('need one session each, also on a server that has not met the runtime and has none to spare', async () => {
    const { deployment } = await aDeployment(domains[0]);
    const store = openStore(test, 'small', 2);
    const domain = domainOf(store, clock);
    const patch = { id: deployment.id, expectedVersion: 1, phase: 'INITIAL_SETUP' } as const;
    const idempotencyKey = freshName('key');
    const outcomes = await Promise.all(
      Array.from({ length: REPLAYS }, () =>
        domain.patchDeploymentStatus(local, { ...patch, idempotencyKey }),
      ),
    );
    for (const outcome of outcomes) expect(valueOf(outcome)).toMatchObject({ version: 2 });
    await store.close();
  });

  it('give the first result again after the object has moved on', async () => {
    const { deployment } = await aDeployment(domains[0]);
    const idempotencyKey = freshName('key');
    const patch = { id: deployment.id, expectedVersion: 1, phase: 'INITIAL_SETUP', idempotencyKey } as const;
    const first = valueOf(await domains[0].patchDeploymentStatus(local, patch));
    await report(domains[1], first, ['PROVISIONING', 'RUNNING']);
    expect(valueOf(await domains[1].patchDeploymentStatus(local, patch))).toEqual(first);
  });

  it('make one of many creates: a deployment, a release, a runtime', async () => {
    const runtime = await aRuntime(domains[0]);
    const release = await aRelease(domains[0]);
    const resources = [{ name: 'web', serviceType: 'process' }];
    const creates = {
      deployment: (domain: Domain, key: string) =>
        domain.applyDeployment(local, {
          name: key,
          runtime: { id: runtime.id },
          release: { id: release.id },
          idempotencyKey: key,
        }),
      release: (domain: Domain, key: string) =>
        domain.createRelease(local, { app: 'shop', label: key, resources, idempotencyKey: key }),
      runtime: (domain: Domain, key: string) =>
        domain.createRuntime(local, { name: key, type: 'external', idempotencyKey: key }),
    };
    for (const create of Object.values(creates)) {
      const key = freshName('create');
      const outcomes = await Promise.all(
        Array.from({ length: REPLAYS }, (_, at) => create(domains[at % 2 ? 0 : 1], key)),
      );
      const [first] = outcomes.map((outcome) => valueOf<object>(outcome));
      for (const outcome of outcomes) expect(valueOf<object>(outcome)).toEqual(first);
    }
  });

  it('say so when the key comes with another input or another operation', async () => {
    const { deployment } = await aDeployment(domains[0]);
    const idempotencyKey = freshName('key');
    const patch = { id: deployment.id, expectedVersion: 1, phase: 'INITIAL_SETUP', idempotencyKey } as const;
    valueOf(await domains[0].patchDeploymentStatus(local, patch));
    const other = { ...patch, message: 'other' };
    expect(failureOf(await domains[0].patchDeploymentStatus(local, other))).toMatchObject({
      kind: 'IdempotencyKeyReused',
    });
    const retried = await domains[0].retryDeployment(local, { id: deployment.id, idempotencyKey });
    expect(failureOf(retried)).toMatchObject({ kind: 'IdempotencyKeyReused' });
  });

  it('belong to their caller', async () => {
    const { deployment } = await aDeployment(domains[0]);
    const idempotencyKey = freshName('key');
    const patch = { id: deployment.id, expectedVersion: 1, phase: 'INITIAL_SETUP', idempotencyKey } as const;
    valueOf(await domains[0].patchDeploymentStatus(local, patch));
    const somebodyElse = await domains[0].patchDeploymentStatus(someone({ roles: ['CONTROLLER'] }), patch);
    expect(failureOf(somebodyElse)).toMatchObject({ kind: 'VersionConflict' });
  });

  it('leave no record of what was refused: asked again, it is decided again', async () => {
    const { deployment } = await aDeployment(domains[0]);
    const idempotencyKey = freshName('key');
    const patch = { id: deployment.id, expectedVersion: 2, phase: 'PROVISIONING', idempotencyKey } as const;
    expect(failureOf(await domains[0].patchDeploymentStatus(local, patch))).toMatchObject({
      kind: 'VersionConflict',
    });
    expect(await records(idempotencyKey)).toBe(0);
    await report(domains[0], deployment, ['INITIAL_SETUP']);
    expect(valueOf(await domains[0].patchDeploymentStatus(local, patch))).toMatchObject({ version: 3 });
  });

  it('are remembered with a patch that changed nothing', async () => {
    const { deployment } = await aDeployment(domains[0]);
    const idempotencyKey = freshName('key');
    const patch = { id: deployment.id, expectedVersion: 1, phase: 'PENDING', idempotencyKey } as const;
    expect(valueOf(await domains[0].patchDeploymentStatus(local, patch))).toEqual(deployment);
    await report(domains[0], deployment, ['INITIAL_SETUP']);
    expect(valueOf(await domains[0].patchDeploymentStatus(local, patch))).toEqual(deployment);
  });

  it('are honoured for 24 hours of the database, whatever a server takes for the time, and swept after', async () => {
    const { deployment } = await aDeployment(domains[0]);
    const idempotencyKey = freshName('key');
    const patch = { id: deployment.id, expectedVersion: 1, phase: 'INITIAL_SETUP', idempotencyKey } as const;
    const first = valueOf(await domains[0].patchDeploymentStatus(local, patch));
    const age = (interval: string) =>
      stores[0].pool.query('UPDATE idempotency_record SET created_at = created_at - $1::interval', [
        interval,
      ]);
    await age('23 hours 59 minutes');
    clock.advance(48 * 3_600_000);
    expect(valueOf(await domains[0].patchDeploymentStatus(local, patch))).toEqual(first);
    expect(await idempotencyPurgeUnchecked(stores[0].pool, 1_000)).toBe(0);
    await age('1 minute 1 millisecond');
    // Not honoured, although nothing has swept it yet.
    expect(failureOf(await domains[0].patchDeploymentStatus(local, patch))).toMatchObject({
      kind: 'VersionConflict',
    });
    expect(await idempotencyPurgeUnchecked(stores[0].pool, 2)).toBe(2);
    while ((await idempotencyPurgeUnchecked(stores[0].pool, 1_000)) > 0);
    expect(await records(idempotencyKey)).toBe(0);
  });

  it('leave nothing of a try that was decided again: no lock without its rollout', async () => {
    // Between two tries time must pass.
    const racing = [domainOf(stores[0]), domainOf(stores[1])] as const;
    const { deployment } = await aDeployment(domains[0]);
    await report(domains[0], deployment, ['PREFLIGHTS_FAILED']);
    const outcomes = await Promise.all(
      Array.from({ length: 6 }, (_, at) =>
        racing[at % 2 ? 0 : 1].undeployDeployment(local, {
          id: deployment.id,
          idempotencyKey: freshName('key'),
        }),
      ),
    );
    for (const outcome of outcomes) expect(valueOf(outcome)).toMatchObject({ phase: 'UNDEPLOYED' });
    const locks = await stores[0].pool.query('SELECT 1 FROM deploy_lock WHERE deployment_id = $1', [
      deployment.id,
    ]);
    expect(locks.rowCount).toBe(0);
  });

  it('tell nothing of a namespace that the caller has lost since', async () => {
    const { deployment } = await aDeployment(domains[0]);
    const patch = {
      id: deployment.id,
      expectedVersion: 1,
      phase: 'INITIAL_SETUP',
      idempotencyKey: freshName('key'),
    } as const;
    const within = (namespaces: string[]) => someone({ roles: ['CONTROLLER'], namespaces });
    valueOf(await domains[0].patchDeploymentStatus(within(['default', 'other']), patch));
    expect(failureOf(await domains[0].patchDeploymentStatus(within(['other']), patch))).toMatchObject({
      kind: 'NotFound',
    });
  });

  it('take a dry run that is off for none', async () => {
    const { deployment, release } = await aDeployment(domains[0]);
    await report(domains[0], deployment, ['INITIAL_SETUP', 'PROVISIONING', 'RUNNING']);
    const again = {
      id: deployment.id,
      release: { id: release.id },
      idempotencyKey: freshName('key'),
    } as const;
    const first = valueOf(await domains[0].deployRelease(local, { ...again, dryRun: false })); // ids of the rows above
    expect(valueOf(await domains[1].deployRelease(local, again as never))).toEqual(first); // ids of the rows above
  });
});
