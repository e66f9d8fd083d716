import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { DeploymentChange } from '../../../src/deployments/intents.js';
import type { Database } from '../../../src/store/database.js';
import { local, someone } from '../../support/callers.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import {
  aDeployment,
  changesOf,
  domainOf,
  failureOf,
  report,
  stored,
  TO_RUNNING,
  valueOf,
  watched,
  type Domain,
} from '../../support/deployments.js';
import { openStore } from '../../support/open-store.js';

describe('patchDeploymentStatus', () => {
  let test: TestDatabase;
  let store: Database;
  let domain: Domain;
  const controller = someone({ roles: ['CONTROLLER'] });
  beforeAll(async () => {
    test = await createDatabase();
    store = openStore(test);
    domain = domainOf(store);
  });
  afterAll(async () => {
    await store.close();
    await test.drop();
  });

  it('writes the status, the next version and one change row with reason, message and actor', async () => {
    const { deployment } = await aDeployment(domain);
    const patch = {
      id: deployment.id,
      expectedVersion: 1,
      phase: 'INITIAL_SETUP' as const,
      observedGeneration: 1,
      runtime: { id: 'i-1', endpoint: 'http://web' },
      conditions: [{ type: 'Ready', status: 'FALSE' as const, reason: 'Starting' }],
      reason: 'Begun',
      message: 'making the disk',
    };
    const row = valueOf(await domain.patchDeploymentStatus(controller, patch));
    expect(row).toMatchObject({
      version: 2,
      phase: 'INITIAL_SETUP',
      observedGeneration: 1,
      observedRuntime: { id: 'i-1', name: null, resourceId: null, endpoint: 'http://web' },
      conditions: [
        { type: 'Ready', status: 'FALSE', reason: 'Starting', message: '', observedGeneration: 1 },
      ],
    });
    expect(row).toEqual(await stored(store, deployment.id));
    expect((await changesOf(store, deployment.id)).at(-1)).toEqual({
      version: 2,
      op: 'UPDATE',
      from: 'PENDING',
      to: 'INITIAL_SETUP',
      reason: 'Begun',
      message: 'making the disk',
      actor: 'test:CONTROLLER',
    });
  });

  it('answers with the very row that the database has, report after report', async () => {
    const { deployment } = await aDeployment(domain);
    const unknown = { id: null, name: null, resourceId: null };
    const nowhere = { provider: null, account: null, region: null, location: null, os: null, arch: null };
    const ready = { type: 'Ready', status: 'UNKNOWN' as const, reason: 'Asked' };
    const error = { code: 'Broken', message: 'é 🚢 "quoted" \\ \n', retryable: false };
    const reports = [
      { phase: 'INITIAL_SETUP' as const, observedGeneration: 1, conditions: [ready] },
      { runtime: { ...unknown, endpoint: 'http://web' }, environmentInfo: { ...nowhere, hostname: 'a' } },
      { phase: 'INITIAL_SETUP_FAILED' as const, error, message: 'went wrong' },
      { error: null, conditions: [{ ...ready, status: 'FALSE' as const, message: 'no' }] },
      { runtime: null, environmentInfo: null, conditions: [{ ...ready, type: 'Reachable' }] },
    ];
    let version = 1;
    for (const report of reports) {
      const patch = { id: deployment.id, expectedVersion: version, ...report };
      const row = valueOf(await domain.patchDeploymentStatus(local, patch));
      version += 1;
      expect(row.version).toBe(version);
      expect(row).toEqual(await stored(store, deployment.id));
    }
  });

  it('promotes the target and clears the error when it becomes RUNNING', async () => {
    const { deployment, release } = await aDeployment(domain);
    const row = await report(domain, deployment, TO_RUNNING);
    expect(row).toMatchObject({
      phase: 'RUNNING',
      currentReleaseId: release.id,
      targetReleaseId: null,
      error: null,
    });
  });

  it('gives the loser of a race the object as it is', async () => {
    const { deployment } = await aDeployment(domain);
    const winner = await report(domain, deployment, ['INITIAL_SETUP']);
    const stale = { id: deployment.id, expectedVersion: 1, phase: 'PREFLIGHTS_FAILED' } as const;
    const failure = failureOf(await domain.patchDeploymentStatus(controller, stale));
    expect(failure).toMatchObject({ kind: 'VersionConflict', currentVersion: 2 });
    expect(failure).toHaveProperty('current', winner);
  });

  it('tells a stale patch that it is stale, not that its move is illegal or its content known', async () => {
    const { deployment } = await aDeployment(domain);
    const other = domainOf(store);
    // `other` has never heard of version 2.
    valueOf(await other.patchDeploymentStatus(local, { id: deployment.id, expectedVersion: 1 }));
    await report(domain, deployment, ['INITIAL_SETUP']);
    for (const phase of ['RUNNING', 'PENDING'] as const) {
      const patch = { id: deployment.id, expectedVersion: 1, phase };
      expect(failureOf(await other.patchDeploymentStatus(local, patch))).toMatchObject({
        kind: 'VersionConflict',
      });
    }
  });

  it('writes nothing for a patch that changes nothing', async () => {
    const { deployment } = await aDeployment(domain);
    const row = await report(domain, deployment, TO_RUNNING);
    const again = { id: row.id, expectedVersion: row.version, phase: 'RUNNING', reason: 'Beat' } as const;
    const before = await changesOf(store, row.id);
    expect(valueOf(await domain.patchDeploymentStatus(controller, again))).toEqual(row);
    expect(await stored(store, row.id)).toEqual(row);
    expect(await changesOf(store, row.id)).toEqual(before);
  });

  it('names the phases of a move that reports cannot make', async () => {
    const { deployment } = await aDeployment(domain);
    const patch = { id: deployment.id, expectedVersion: 1, phase: 'RUNNING' } as const;
    expect(failureOf(await domain.patchDeploymentStatus(controller, patch))).toMatchObject({
      kind: 'InvalidTransition',
      from: 'PENDING',
      to: 'RUNNING',
      allowed: ['INITIAL_SETUP', 'PREFLIGHTS_FAILED'],
    });
  });

  it('calls an unknown phase invalid input, and lists the known', async () => {
    const { deployment } = await aDeployment(domain);
    const patch = { id: deployment.id, expectedVersion: 1, phase: 'HAPPY' } as never;
    const failure = failureOf(await domain.patchDeploymentStatus(controller, patch));
    expect(failure).toMatchObject({ kind: 'InvalidInput', issues: [{ path: ['input', 'phase'] }] });
    expect(failure.message).toContain('UPDATE_PENDING');
  });

  it.each(['version', 'generation', 'env', 'labels', 'name', 'desiredState', 'internal', 'deletedAt'])(
    'has no field `%s`',
    async (field) => {
      const { deployment } = await aDeployment(domain);
      const patch = { id: deployment.id, expectedVersion: 1, [field]: 1 };
      expect(failureOf(await domain.patchDeploymentStatus(controller, patch))).toMatchObject({
        kind: 'InvalidInput',
        issues: [{ path: ['input', field], message: 'is not a field here' }],
      });
    },
  );

  it('names every issue of the input with its path', async () => {
    const patch = {
      id: 'rt_01h455vb4pex5vsknk084sn02q',
      expectedVersion: 0,
      error: { code: 'no code', message: 'x\0' },
      conditions: [{ type: 'A', status: 'MAYBE', reason: '' }],
      idempotencyKey: '',
    } as never;
    const failure = failureOf(await domain.patchDeploymentStatus(controller, patch));
    expect(failure.kind === 'InvalidInput' && failure.issues.map(({ path }) => path.join('.'))).toEqual([
      'input.id',
      'input.expectedVersion',
      'input.conditions.0.status',
      'input.conditions.0.reason',
      'input.error.code',
      'input.error.message',
      'input.idempotencyKey',
    ]);
  });

  it('never touches the spec', async () => {
    const { deployment } = await aDeployment(domain, {
      env: [{ name: 'A', value: '1' }],
      labels: { team: 'x' },
      runtimeConfig: { a: [1, { b: null }] },
    });
    const row = await report(domain, deployment, [...TO_RUNNING, 'REFRESH_FAILED', 'RUNNING']);
    const spec: (keyof DeploymentChange | 'name' | 'app' | 'runtimeId')[] = [
      'env',
      'labels',
      'runtimeConfig',
      'desiredState',
      'generation',
      'name',
      'app',
      'runtimeId',
    ];
    for (const field of spec) expect(row[field]).toEqual(deployment[field]);
  });

  it('is one statement when the version is the one this server knows', async () => {
    const { database, statements } = watched(store);
    const own = domainOf(database);
    const { deployment } = await aDeployment(own);
    const first = await report(own, deployment, ['INITIAL_SETUP']);
    statements.length = 0;
    await report(own, first, ['PROVISIONING']);
    expect(statements).toEqual(['deployment_patch_status']);
    statements.length = 0;
    // The loser: the write that finds nothing is not even tried, and one read tells the conflict with the object.
    failureOf(
      await own.patchDeploymentStatus(local, {
        id: deployment.id,
        expectedVersion: 2,
        phase: 'PROVISIONING',
      }),
    );
    expect(statements).toEqual(['read_deployment_within']);
  });

  it('is two statements when it lost to somebody this server has not heard of', async () => {
    const { database, statements } = watched(store);
    const own = domainOf(database);
    const { deployment } = await aDeployment(own);
    const mine = await report(own, deployment, ['INITIAL_SETUP']);
    await report(domain, mine, ['PROVISIONING']);
    statements.length = 0;
    const patch = { id: deployment.id, expectedVersion: 2, phase: 'PROVISIONING' } as const;
    expect(failureOf(await own.patchDeploymentStatus(local, patch))).toMatchObject({ currentVersion: 3 });
    expect(statements).toEqual(['deployment_patch_status', 'read_deployment_within']);
  });

  it('refuses a deployment on a runtime that this server drives itself, and says why', async () => {
    const { deployment, runtime } = await aDeployment(domain);
    const other = domainOf(store);
    await store.pool.query(`UPDATE runtime SET type = 'noop', version = version + 1 WHERE id = $1`, [
      runtime.id,
    ]);
    const patch = { id: deployment.id, expectedVersion: 1, phase: 'INITIAL_SETUP' } as const;
    const failure = failureOf(await other.patchDeploymentStatus(controller, patch));
    expect(failure).toMatchObject({ kind: 'InvalidInput', issues: [{ path: ['input', 'id'] }] });
    expect(failure.message).toContain('`noop`');
  });

  it('decides on a change that psql made, and logs it as sql', async () => {
    const { deployment } = await aDeployment(domain);
    await store.pool.query(
      `UPDATE deployment SET phase = 'PROVISIONING', version = version + 1 WHERE id = $1`,
      [deployment.id],
    );
    expect((await changesOf(store, deployment.id)).at(-1)).toMatchObject({
      version: 2,
      actor: `sql:${test.connection.user}`,
    });
    const patch = { id: deployment.id, expectedVersion: 2, phase: 'RUNNING' } as const;
    expect(valueOf(await domain.patchDeploymentStatus(controller, patch))).toMatchObject({
      phase: 'RUNNING',
      version: 3,
    });
  });

  it('may be made by CONTROLLER and ADMIN only, and in their namespaces only', async () => {
    const { deployment } = await aDeployment(domain);
    const patch = { id: deployment.id, expectedVersion: 1, phase: 'INITIAL_SETUP' } as const;
    for (const role of ['VIEWER', 'DEPLOYER', 'OPERATOR', 'AGENT'] as const) {
      await expect(domain.patchDeploymentStatus(someone({ roles: [role] }), patch)).rejects.toThrow('roles');
    }
    const elsewhere = someone({ roles: ['CONTROLLER'], namespaces: ['other'] });
    expect(failureOf(await domain.patchDeploymentStatus(elsewhere, patch))).toMatchObject({
      kind: 'NotFound',
    });
    expect(
      failureOf(await domain.patchDeploymentStatus(elsewhere, { ...patch, expectedVersion: 9 })).kind,
    ).toBe('NotFound');
    expect(await stored(store, deployment.id)).toEqual(deployment);
  });

  it('tells what never was, was purged, or may not be seen in the same words', async () => {
    const patch = { id: 'dep_01h455vb4pex5vsknk084sn02q', expectedVersion: 1, phase: 'RUNNING' } as const;
    const unknown = failureOf(await domain.patchDeploymentStatus(controller, patch));
    const { deployment } = await aDeployment(domain);
    const elsewhere = someone({ roles: ['CONTROLLER'], namespaces: ['other'] });
    const hidden = failureOf(await domain.patchDeploymentStatus(elsewhere, { ...patch, id: deployment.id }));
    expect(hidden).toEqual(unknown);
  });
});
