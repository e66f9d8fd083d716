import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { canonicalJson, type JsonObject } from '../../../src/kernel/json.js';
import type { Database } from '../../../src/store/database.js';
import { someone } from '../../support/callers.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import {
  aDeployment,
  aRelease,
  aRuntime,
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
} from '../../support/deployments.js';
import { openStore } from '../../support/open-store.js';

describe('applyDeployment', () => {
  let test: TestDatabase;
  let store: Database;
  let domain: Domain;
  const deployer = someone({ roles: ['DEPLOYER'] });
  beforeAll(async () => {
    test = await createDatabase();
    store = openStore(test);
    domain = domainOf(store);
  });
  afterAll(async () => {
    await store.close();
    await test.drop();
  });

  it('creates by name, with runtime and release by name', async () => {
    const runtime = await aRuntime(domain);
    const release = await aRelease(domain, 'cart');
    const name = freshName('web');
    const applied = valueOf(
      await domain.applyDeployment(deployer, {
        name,
        runtime: { name: runtime.name },
        release: { app: 'cart', label: release.label },
        labels: { team: 'x' },
        env: [
          { name: 'B', value: '2' },
          { name: 'A', value: '' },
        ],
      }),
    );
    expect(applied).toMatchObject({
      result: 'CREATED',
      deployment: {
        namespace: 'default',
        name,
        app: 'cart',
        runtimeId: runtime.id,
        labels: { team: 'x' },
        env: [
          { name: 'A', value: '' },
          { name: 'B', value: '2' },
        ],
        phase: 'PENDING',
        desiredState: 'DEPLOYED',
        generation: 1,
        version: 1,
        currentReleaseId: null,
        targetReleaseId: release.id,
      },
    });
    expect(await changesOf(store, applied.deployment.id)).toMatchObject([
      { version: 1, op: 'INSERT', from: null, to: 'PENDING', reason: 'Created', actor: 'test:DEPLOYER' },
    ]);
  });

  it('writes nothing when nothing changes, whatever the order of keys and variables', async () => {
    const env = [
      { name: 'A', value: '1' },
      { name: 'B', value: '2' },
    ];
    const { deployment, runtime, release } = await aDeployment(domain, {
      env,
      runtimeConfig: { a: 1, b: { c: 2, d: [] } },
    });
    const again = {
      name: deployment.name,
      runtime: { id: runtime.id },
      release: { id: release.id },
      env: [...env].reverse(),
      runtimeConfig: { b: { d: [], c: 2 }, a: 1 },
    };
    expect(valueOf(await domain.applyDeployment(deployer, again))).toEqual({
      result: 'UNCHANGED',
      deployment,
    });
    expect(await stored(store, deployment.id)).toEqual(deployment);
    expect(await changesOf(store, deployment.id)).toHaveLength(1);
  });

  it('leaves what is absent as it is', async () => {
    const seeded = await aDeployment(domain, { env: [{ name: 'A', value: '1' }], labels: { a: 'b' } });
    const deployment = await report(domain, seeded.deployment, TO_RUNNING);
    const { result, deployment: row } = valueOf(
      await domain.applyDeployment(deployer, { name: deployment.name, runtimeConfig: { x: 1 } }),
    );
    expect(result).toBe('UPDATED');
    expect(row).toMatchObject({
      env: deployment.env,
      labels: { a: 'b' },
      runtimeConfig: { x: 1 },
      generation: 2,
    });
    expect(row.targetReleaseId).toBe(deployment.currentReleaseId);
  });

  it('refuses another spec while one is under way, and takes the labels', async () => {
    const { deployment } = await aDeployment(domain);
    const { name } = deployment;
    const refusal = failureOf(
      await domain.applyDeployment(deployer, { name, runtimeConfig: { x: 1 }, labels: { a: 'b' } }),
    );
    expect(refusal).toMatchObject({ kind: 'LockHeld', phase: 'ACTIVATING', lock: { startedBy: 'local' } });
    expect(await stored(store, deployment.id)).toEqual(deployment);
    const labelled = valueOf(await domain.applyDeployment(deployer, { name, labels: { a: 'b' } }));
    expect(labelled).toMatchObject({ result: 'UPDATED', deployment: { labels: { a: 'b' }, generation: 1 } });
  });

  it('keeps every key of a configuration, whatever it is called', async () => {
    const runtimeConfig = JSON.parse('{ "__proto__": { "a": 1 }, "b": [{ "__proto__": 2 }] }') as JsonObject;
    const { deployment } = await aDeployment(domain, { runtimeConfig });
    const { name } = deployment;
    const again = valueOf(await domain.applyDeployment(deployer, { name, runtimeConfig }));
    expect(again.result).toBe('UNCHANGED');
    await report(domain, deployment, TO_RUNNING);
    const env = [{ name: 'A', value: '1' }];
    const updated = valueOf(await domain.applyDeployment(deployer, { name, env }));
    expect(updated.result).toBe('UPDATED');
    expect(canonicalJson(updated.deployment.runtimeConfig)).toBe(canonicalJson(runtimeConfig));
  });

  it('updates a running deployment to another release, and runs it when that is reported', async () => {
    const { deployment, release } = await aDeployment(domain);
    const running = await report(domain, deployment, TO_RUNNING);
    const next = await aRelease(domain);
    const { deployment: row } = valueOf(
      await domain.applyDeployment(deployer, { name: running.name, release: { label: next.label } }),
    );
    expect(row).toMatchObject({
      phase: 'UPDATE_PENDING',
      generation: 2,
      currentReleaseId: release.id,
      targetReleaseId: next.id,
    });
    const updated = await report(domain, row, ['UPDATING', 'RUNNING']);
    expect(updated).toMatchObject({ currentReleaseId: next.id, targetReleaseId: null });
  });

  it('keeps labels apart from the spec: a version, no generation, no phase', async () => {
    const { deployment } = await aDeployment(domain);
    const running = await report(domain, deployment, TO_RUNNING);
    const { deployment: row } = valueOf(
      await domain.applyDeployment(deployer, { name: running.name, labels: { 'example.com/team': 'x' } }),
    );
    expect(row).toMatchObject({ version: running.version + 1, generation: 1, phase: 'RUNNING' });
  });

  it.each(['UNDEPLOYED', 'UNDEPLOYING', 'UNDEPLOY_FAILED', 'UPDATE_FAILED', 'ERROR'] as const)(
    'edits the labels of what is %s, and nothing else of it',
    async (phase) => {
      const seeded = await aDeployment(domain);
      const row = await inPhase(domain, seeded, phase);
      // What never changes is only checked: naming it asks for nothing.
      const input = { name: row.name, app: 'shop', runtime: { id: seeded.runtime.id }, labels: { a: 'b' } };
      const { result, deployment } = valueOf(await domain.applyDeployment(deployer, input));
      expect(result).toBe('UPDATED');
      expect(deployment).toEqual({
        ...row,
        labels: { a: 'b' },
        version: row.version + 1,
        updatedAt: deployment.updatedAt,
      });
      expect(valueOf(await domain.applyDeployment(deployer, input)).result).toBe('UNCHANGED');
      expect(valueOf(await domain.applyDeployment(deployer, { name: row.name })).result).toBe('UNCHANGED');
    },
  );

  it('edits no labels of what is being deleted', async () => {
    const row = await inPhase(domain, await aDeployment(domain), 'DELETE_FAILED');
    const outcome = await domain.applyDeployment(deployer, { name: row.name, labels: { a: 'b' } });
    expect(failureOf(outcome)).toMatchObject({ kind: 'Terminating' });
    expect(await stored(store, row.id)).toEqual(row);
  });

  it('sees a conflict only when a version was expected', async () => {
    const { deployment } = await aDeployment(domain);
    const input = { name: deployment.name, labels: { a: 'b' }, expectedVersion: 7 };
    expect(failureOf(await domain.applyDeployment(deployer, input))).toMatchObject({
      kind: 'VersionConflict',
      currentVersion: 1,
      current: deployment,
    });
    expect(
      failureOf(await domain.applyDeployment(deployer, { ...input, name: freshName('none') })),
    ).toMatchObject({
      kind: 'NotFound',
    });
  });

  it('never moves a deployment to another runtime or app', async () => {
    const { deployment } = await aDeployment(domain);
    const other = await aRuntime(domain);
    const foreign = await aRelease(domain, 'cart');
    const cases = [
      { input: { runtime: { id: other.id } }, path: 'runtime' },
      { input: { app: 'cart' }, path: 'app' },
      { input: { release: { id: foreign.id } }, path: 'release' },
      { input: { release: { app: 'cart', label: foreign.label } }, path: 'release' },
    ];
    for (const { input, path } of cases) {
      const outcome = await domain.applyDeployment(deployer, { name: deployment.name, ...input });
      expect(failureOf(outcome)).toMatchObject({ kind: 'InvalidInput', issues: [{ path: ['input', path] }] });
    }
    expect(await stored(store, deployment.id)).toEqual(deployment);
  });

  it('asks for runtime and release when it creates', async () => {
    const failure = failureOf(await domain.applyDeployment(deployer, { name: freshName('web') }));
    expect(failure).toMatchObject({ kind: 'InvalidInput' });
    expect(failure.kind === 'InvalidInput' && failure.issues.map(({ path }) => path.join('.'))).toEqual([
      'input.runtime',
      'input.release',
    ]);
  });

  it('refuses a secret variable, without repeating it', async () => {
    const { deployment } = await aDeployment(domain);
    const env = [{ name: 'KEY', secretValue: 'hunter2' }];
    const failure = failureOf(await domain.applyDeployment(deployer, { name: deployment.name, env }));
    expect(failure).toMatchObject({
      kind: 'InvalidInput',
      issues: [
        {
          path: ['input', 'env', '0', 'secretValue'],
          message: expect.stringContaining('external') as string,
        },
      ],
    });
    expect(JSON.stringify(failure)).not.toContain('hunter2');
  });

  it('names what is out of bounds', async () => {
    const { deployment } = await aDeployment(domain);
    const inputs = [
      { env: Array.from({ length: 257 }, (_, n) => ({ name: `V${n}`, value: '' })) },
      { env: [{ name: 'A', value: 'x'.repeat(32_769) }] },
      {
        env: [
          { name: 'A', value: '1' },
          { name: 'A', value: '2' },
        ],
      },
      { runtimeConfig: { x: 'y'.repeat(65_536) } },
      { runtimeConfig: { x: '\0' } },
      { runtimeConfig: { x: '\ud800' } },
      { labels: Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`l${n}`, ''])) },
      { labels: { 'no spaces': 'x' } },
      { release: { id: 'rel_x', label: 'v1' } },
      { runtime: {} },
    ];
    for (const input of inputs) {
      const outcome = await domain.applyDeployment(deployer, { name: deployment.name, ...input });
      expect([Object.keys(input), failureOf(outcome).kind]).toEqual([Object.keys(input), 'InvalidInput']);
    }
  });

  it('stores text of every kind that it accepts as it was given', async () => {
    const runtimeConfig = {
      emoji: '🚢 – €',
      'a.b/c': { deep: [1.5, -0.25, 1e21, null, true, ''] },
      '': 'empty key',
    };
    const { deployment } = await aDeployment(domain, { runtimeConfig });
    expect(deployment.runtimeConfig).toEqual(runtimeConfig);
    const again = await domain.applyDeployment(deployer, { name: deployment.name, runtimeConfig });
    expect(valueOf(again).result).toBe('UNCHANGED');
  });

  it('finds neither runtimes nor releases of other namespaces', async () => {
    const runtime = await aRuntime(domain, { namespace: 'other' });
    const release = await aRelease(domain);
    const name = freshName('web');
    const input = { name, runtime: { id: runtime.id }, release: { id: release.id } };
    const failure = failureOf(await domain.applyDeployment(deployer, input));
    expect(failure).toEqual({ kind: 'NotFound', message: 'No such runtime, or you may not see it.' });
  });

  it('may be done in the namespaces of the caller only', async () => {
    const elsewhere = someone({ roles: ['DEPLOYER'], namespaces: ['other'] });
    const { deployment } = await aDeployment(domain);
    const outcome = await domain.applyDeployment(elsewhere, { name: deployment.name, labels: { a: 'b' } });
    expect(failureOf(outcome)).toMatchObject({ kind: 'NotFound' });
    const viewer = await domain.applyDeployment(someone({ roles: ['VIEWER'] }), { name: deployment.name });
    expect(failureOf(viewer)).toMatchObject({ kind: 'NotFound' });
    expect(await stored(store, deployment.id)).toEqual(deployment);
  });
});
