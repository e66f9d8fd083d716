import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { phasesAhead } from '../../../src/deployments/plan.js';
import type { Database } from '../../../src/store/database.js';
import { local } from '../../support/callers.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import {
  aDeployment,
  aRelease,
  aRuntime,
  domainOf,
  failureOf,
  freshName,
  report,
  stored,
  TO_RUNNING,
  valueOf,
  type Domain,
} from '../../support/deployments.js';
import { openStore } from '../../support/open-store.js';

describe('a dry run', () => {
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

  /** Every row that there is, and which transaction wrote it. */
  const written = async () => {
    const tables = [
      'deployment',
      'deployment_internal',
      'rollout',
      'deploy_lock',
      'change',
      'idempotency_record',
    ];
    const all = tables.map(
      (table) => `SELECT '${table}' AS of, xmin::text AS by, to_jsonb(t) AS row FROM ${table} t`,
    );
    return (await store.pool.query(`${all.join(' UNION ALL ')} ORDER BY 1, 3`)).rows as unknown;
  };
  const aRunning = async () => {
    const seeded = await aDeployment(domain);
    return { ...seeded, deployment: await report(domain, seeded.deployment, TO_RUNNING) };
  };

  it('of a creation says what would be, writes nothing, and keeps no name', async () => {
    const runtime = await aRuntime(domain);
    const release = await aRelease(domain);
    const input = { name: freshName('dry'), runtime: { id: runtime.id }, release: { id: release.id } };
    const before = await written();
    const { deployment, result, plan } = valueOf(
      await domain.applyDeployment(local, {
        ...input,
        labels: { a: 'b' },
        dryRun: true,
        idempotencyKey: 'dry',
      }),
    );
    expect(result).toBe('CREATED');
    expect(deployment).toMatchObject({ name: input.name, phase: 'PENDING', targetReleaseId: release.id });
    expect(plan).toEqual({
      phases: ['PENDING', 'INITIAL_SETUP', 'PROVISIONING', 'RUNNING'],
      changes: [
        { field: 'labels', from: null, to: '{"a":"b"}' },
        { field: 'env', from: null, to: '[]' },
        { field: 'runtimeConfig', from: null, to: '{}' },
        { field: 'desiredState', from: null, to: '"DEPLOYED"' },
        { field: 'generation', from: null, to: '1' },
        { field: 'releaseId', from: null, to: `"${release.id}"` },
      ],
    });
    expect(await written()).toEqual(before);
    const real = valueOf(await domain.applyDeployment(local, { ...input, idempotencyKey: 'dry' }));
    expect(real).toMatchObject({ result: 'CREATED' });
    expect(real.plan).toBeUndefined();
  });

  it('of an update says only what would change, and the cache learns nothing of it', async () => {
    const { deployment } = await aRunning();
    const before = await written();
    const input = { name: deployment.name, runtimeConfig: { replicas: 2 } };
    const { result, plan } = valueOf(await domain.applyDeployment(local, { ...input, dryRun: true }));
    expect(result).toBe('UPDATED');
    expect(plan).toEqual({
      phases: ['UPDATE_PENDING', 'UPDATING', 'RUNNING'],
      changes: [
        { field: 'runtimeConfig', from: '{}', to: '{"replicas":2}' },
        { field: 'generation', from: '1', to: '2' },
      ],
    });
    expect(await written()).toEqual(before);
    const patch = {
      id: deployment.id,
      expectedVersion: deployment.version,
      phase: 'REFRESH_FAILED',
    } as const;
    expect(valueOf(await domain.patchDeploymentStatus(local, patch)).runtimeConfig).toEqual({});
    const same = valueOf(
      await domain.applyDeployment(local, { name: deployment.name, env: [], dryRun: true }),
    );
    expect(same).toMatchObject({ result: 'UNCHANGED', plan: { changes: [], phases: [] } });
  });

  it('of a release and of a rollback says where they would lead', async () => {
    const { deployment, release } = await aRunning();
    const next = await aRelease(domain);
    const { id } = deployment;
    const before = await written();
    const deploy = { id, release: { id: next.id } };
    const dry = valueOf(await domain.deployRelease(local, { ...deploy, dryRun: true }));
    expect(dry.rollout).toMatchObject({ operation: 'UPDATE', toReleaseId: next.id });
    expect(dry.plan?.changes).toContainEqual({
      field: 'releaseId',
      from: `"${release.id}"`,
      to: `"${next.id}"`,
    });
    expect(await written()).toEqual(before);
    valueOf(await domain.deployRelease(local, deploy));
    await report(domain, await stored(store, id), ['UPDATING', 'RUNNING']);
    const back = valueOf(await domain.rollbackDeployment(local, { id, dryRun: true }));
    expect(back).toMatchObject({ rollout: { operation: 'ROLLBACK', toReleaseId: release.id } });
    expect((await stored(store, id)).currentReleaseId).toBe(next.id);
  });

  it('is refused by what would refuse it', async () => {
    const { deployment } = await aDeployment(domain);
    const next = await aRelease(domain);
    const dry = { id: deployment.id, release: { id: next.id }, dryRun: true };
    expect(failureOf(await domain.deployRelease(local, dry))).toMatchObject({ kind: 'LockHeld' });
    expect(failureOf(await domain.deployRelease(local, { ...dry, expectedVersion: 9 }))).toMatchObject({
      kind: 'VersionConflict',
    });
  });
});

describe('phasesAhead', () => {
  it('goes around failures and waits, and ends where nothing more is to be done', () => {
    expect(phasesAhead('UNDEPLOYING')).toEqual(['UNDEPLOYING', 'UNDEPLOYED']);
    expect(phasesAhead('WAITING_FOR_AGENTS')).toEqual(['WAITING_FOR_AGENTS', 'PROVISIONING', 'RUNNING']);
    expect(phasesAhead('RUNNING')).toEqual(['RUNNING']);
    expect(phasesAhead('DELETE_PENDING')).toEqual(['DELETE_PENDING', 'DELETING', 'DELETED']);
  });
});
