import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { authorise, systemGrant } from '../../../src/access/authorise.js';
import {
  deploymentPatchInternal,
  deploymentPatchStatusAndInternal,
  deploymentReadInternal,
  deploymentState,
} from '../../../src/deployments/store.js';
import { statusOf } from '../../../src/deployments/status.js';
import { newId, type DeploymentId, type RuntimeId } from '../../../src/kernel/ids.js';
import {
  runtimePatchInternal,
  runtimePatchStatusAndInternal,
  runtimeReadInternal,
  runtimeState,
} from '../../../src/runtimes/store.js';
import type { Database } from '../../../src/store/database.js';
import { MalformedObjectError } from '../../../src/store/malformed.js';
import { local, someone } from '../../support/callers.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import {
  aDeployment,
  aRuntime,
  changesOf,
  domainOf,
  failureOf,
  report,
  stored,
  valueOf,
  watched,
  type Domain,
} from '../../support/deployments.js';
import { openStore } from '../../support/open-store.js';

const GRANT = systemGrant('system:sweep', 'engine');
const STAMP = { actor: 'system:engine', reason: 'Stepped', traceId: null };
const DEFAULTS = {
  runtimeId: null,
  runtimeName: null,
  runtimeResourceId: null,
  runtimeNamespace: null,
  actorSubject: null,
  appProtocol: null,
  lastAppliedFingerprint: null,
  lastForceToken: null,
  discoveryMisses: 0,
  preparedStack: null,
  pendingPreparedStack: null,
  lastSyncedEnvHash: null,
  lastSyncedSecretNames: [],
  accessGranted: false,
};

describe('internal metadata', () => {
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
  const fresh = async () => {
    const { deployment } = await aDeployment(domain);
    return { deployment, id: deployment.id as DeploymentId }; // a stored id
  };
  const setData = (id: string, data: string) =>
    store.pool.query(
      `INSERT INTO deployment_internal (deployment_id, data) VALUES ($1, $2)
       ON CONFLICT (deployment_id) DO UPDATE SET data = excluded.data`,
      [id, data],
    );

  it('merges named fields and leaves the others', async () => {
    const { id } = await fresh();
    expect(
      await deploymentPatchInternal(store.pool, GRANT, id, { runtimeId: 'i-1', discoveryMisses: 2 }),
    ).toBe(true);
    await deploymentPatchInternal(store.pool, GRANT, id, {
      discoveryMisses: 0,
      lastSyncedSecretNames: ['A'],
    });
    expect(await deploymentReadInternal(store.pool, GRANT, id)).toEqual({
      ...DEFAULTS,
      runtimeId: 'i-1',
      lastSyncedSecretNames: ['A'],
    });
  });

  it('changes no version, writes no change, touches no public column', async () => {
    const { id, deployment } = await fresh();
    await deploymentPatchInternal(store.pool, GRANT, id, { runtimeId: 'i-1' });
    expect(await stored(store, id)).toEqual(deployment);
    expect(await changesOf(store, id)).toHaveLength(1);
  });

  it.each([
    ['null', null],
    ['undefined', undefined],
    ['nothing named', {}],
    ['only undefined named', { runtimeId: undefined }],
    ['an unknown field', { runtimeId: 'x', phase: 'RUNNING' }],
    ['an impossible value', { discoveryMisses: -1 }],
  ])('fails before any statement for %s', async (_what, patch) => {
    const { id, deployment } = await fresh();
    const { database, statements } = watched(store);
    const row = statusOf(deploymentState(deployment));
    await expect(deploymentPatchInternal(database.pool, GRANT, id, patch as never)).rejects.toThrow();
    await expect(
      deploymentPatchStatusAndInternal(database, GRANT, deployment, row, patch as never, STAMP),
    ).rejects.toThrow();
    const runtime = newId('RUNTIME');
    await expect(runtimePatchInternal(database.pool, GRANT, runtime, patch as never)).rejects.toThrow();
    expect(statements).toEqual([]);
  });

  it('fails before any statement for a status that is missing', async () => {
    const { id, deployment } = await fresh();
    const { database, statements } = watched(store);
    const patch = { runtimeId: 'i-1' };
    await expect(
      deploymentPatchStatusAndInternal(database, GRANT, deployment, null as never, patch, STAMP),
    ).rejects.toThrow(TypeError);
    expect(statements).toEqual([]);
    expect(await deploymentReadInternal(store.pool, GRANT, id)).toEqual(DEFAULTS);
  });

  it('is written with the status or not at all', async () => {
    const { id, deployment } = await fresh();
    const status = { ...statusOf(deploymentState(deployment)), phase: 'INITIAL_SETUP' as const };
    const patch = { runtimeId: 'i-1' };
    // Somebody was faster: neither is written.
    const winner = await report(domain, deployment, ['INITIAL_SETUP']);
    expect(
      await deploymentPatchStatusAndInternal(store, GRANT, deployment, status, patch, STAMP),
    ).toBeUndefined();
    expect(await deploymentReadInternal(store.pool, GRANT, id)).toEqual(DEFAULTS);
    // The internal half fails in the database: the status goes back with it.
    await store.pool.query(
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
       CREATE TRIGGER refuse BEFORE INSERT ON deployment_internal FOR EACH ROW EXECUTE FUNCTION refuse()`,
    );
    const next = { ...status, phase: 'PROVISIONING' as const };
    await expect(deploymentPatchStatusAndInternal(store, GRANT, winner, next, patch, STAMP)).rejects.toThrow(
      'refused',
    );
    expect(await stored(store, id)).toMatchObject({ version: 2, phase: 'INITIAL_SETUP' });
    await store.pool.query('DROP TRIGGER refuse ON deployment_internal');
    expect(await deploymentPatchStatusAndInternal(store, GRANT, winner, next, patch, STAMP)).toMatchObject({
      version: 3,
    });
    expect(await deploymentReadInternal(store.pool, GRANT, id)).toMatchObject({ runtimeId: 'i-1' });
  });

  it('is in no public row, and no read of the graph may see it', async () => {
    const { id } = await fresh();
    await deploymentPatchInternal(store.pool, GRANT, id, { runtimeId: 'MARKER-1' });
    const row = await report(domain, await stored(store, id), ['INITIAL_SETUP']);
    expect(JSON.stringify(row)).not.toContain('MARKER');
    const { rows } = await store.pool.query('SELECT * FROM change_payload');
    expect(JSON.stringify(rows)).not.toContain('MARKER');
    await expect(store.prisma.deploymentInternal.findMany()).rejects.toThrow();
  });

  describe('every form of missing', () => {
    it('no deployment: not found, and nothing written', async () => {
      const id = newId('DEPLOYMENT');
      expect(await deploymentReadInternal(store.pool, GRANT, id)).toBeUndefined();
      expect(await deploymentPatchInternal(store.pool, GRANT, id, { runtimeId: 'x' })).toBe(false);
      expect(failureOf(await domain.patchDeploymentStatus(local, { id, expectedVersion: 1 })).kind).toBe(
        'NotFound',
      );
    });

    it('no internal row: defaults', async () => {
      const { id } = await fresh();
      expect(await deploymentReadInternal(store.pool, GRANT, id)).toEqual(DEFAULTS);
    });

    it('empty metadata: defaults', async () => {
      const { id } = await fresh();
      await setData(id, '{}');
      expect(await deploymentReadInternal(store.pool, GRANT, id)).toEqual(DEFAULTS);
    });

    it('a row from before a field was added, or from a version that added one: loads', async () => {
      const { id } = await fresh();
      await setData(id, '{"runtimeId":"i-1","fromTheFuture":{"x":1}}');
      expect(await deploymentReadInternal(store.pool, GRANT, id)).toEqual({ ...DEFAULTS, runtimeId: 'i-1' });
    });

    it.each(['[]', '"text"', 'null', '{"discoveryMisses":"PLENTY"}', '{"lastSyncedSecretNames":null}'])(
      'malformed metadata %s: an error that names the object, and no other object stops',
      async (data) => {
        const [bad, good] = [await fresh(), await fresh()];
        await setData(bad.id, data);
        if (data === 'null') {
          expect(await deploymentReadInternal(store.pool, GRANT, bad.id)).toEqual(DEFAULTS);
          return;
        }
        const failure = deploymentReadInternal(store.pool, GRANT, bad.id);
        await expect(failure).rejects.toThrow(MalformedObjectError);
        await expect(failure).rejects.toThrow(bad.id);
        await expect(failure).rejects.not.toThrow('PLENTY'); // no id has capitals
        expect(await deploymentReadInternal(store.pool, GRANT, good.id)).toEqual(DEFAULTS);
      },
    );

    it.each([
      ['conditions', '[{"type":"A"}]'],
      ['conditions', '{}'],
      ['observed_runtime', '"x"'],
      ['error', '{"code":1}'],
      ['labels', '[1]'],
      ['env', '{}'],
    ])(
      'malformed public %s %s: the patch of that object fails by name, others go on',
      async (column, value) => {
        const [bad, good] = [await fresh(), await fresh()];
        await store.pool.query(`UPDATE deployment SET ${column} = $2, version = version + 1 WHERE id = $1`, [
          bad.id,
          value,
        ]);
        const other = domainOf(store);
        const patch = { id: bad.id, expectedVersion: 2, phase: 'INITIAL_SETUP' } as const;
        await expect(other.patchDeploymentStatus(local, patch)).rejects.toThrow(MalformedObjectError);
        expect((await report(other, good.deployment, ['INITIAL_SETUP'])).version).toBe(2);
      },
    );

    it('no release: what has none can still be reported on, and asks for one when applied', async () => {
      const { id, deployment } = await fresh();
      await store.pool.query('UPDATE deployment SET target_release_id = NULL, version = 2 WHERE id = $1', [
        id,
      ]);
      const row = await report(domain, await stored(store, id), ['INITIAL_SETUP', 'PROVISIONING', 'RUNNING']);
      expect(row).toMatchObject({ phase: 'RUNNING', currentReleaseId: null, targetReleaseId: null });
      const { name } = deployment;
      const outcome = await domain.applyDeployment(local, { name, runtimeConfig: { x: 1 } });
      expect(failureOf(outcome)).toMatchObject({
        kind: 'InvalidInput',
        issues: [{ path: ['input', 'release'] }],
      });
      expect(valueOf(await domain.applyDeployment(local, { name, labels: { a: 'b' } })).result).toBe(
        'UPDATED',
      );
    });

    it('no runtime: an error that names the deployment', async () => {
      const { id, deployment } = await fresh();
      await store.inTransaction(async (tx) => {
        // Past every guard, as a broken restore would leave it.
        await tx.query('SET LOCAL session_replication_role = replica');
        await tx.query('DELETE FROM runtime WHERE id = $1', [deployment.runtimeId]);
      });
      const other = domainOf(store);
      const patch = { id, expectedVersion: 1, phase: 'INITIAL_SETUP' } as const;
      await expect(other.patchDeploymentStatus(local, patch)).rejects.toThrow(
        `${id}: stored runtime is malformed`,
      );
      expect(failureOf(await other.applyDeployment(local, { name: deployment.name, labels: {} })).kind).toBe(
        'NotFound',
      );
      expect(valueOf(await other.deleteDeployment(local, { id, mode: 'FORGET' })).phase).toBe('DELETED');
    });
  });

  it('is held against the namespaces of the grant', async () => {
    const { id } = await fresh();
    const grant = authorise(someone({ roles: ['CONTROLLER'], namespaces: ['other'] }), 'deployment:report');
    if (!grant) throw new Error('a controller may report');
    expect(await deploymentPatchInternal(store.pool, grant, id, { runtimeId: 'x' })).toBe(false);
    expect(await deploymentReadInternal(store.pool, grant, id)).toBeUndefined();
  });

  it('of runtimes keeps the same contract', async () => {
    const runtime = await aRuntime(domain);
    const id = runtime.id as RuntimeId; // a stored id
    expect(await runtimeReadInternal(store.pool, GRANT, id)).toEqual({
      host: null,
      lastPolledAt: null,
      pollFailures: 0,
    });
    await runtimePatchInternal(store.pool, GRANT, id, { host: 'h1' });
    await runtimePatchInternal(store.pool, GRANT, id, { pollFailures: 3 });
    expect(await runtimeReadInternal(store.pool, GRANT, id)).toEqual({
      host: 'h1',
      lastPolledAt: null,
      pollFailures: 3,
    });
    const status = { ...runtimeState(runtime), observedGeneration: 1 };
    const patch = { host: 'h2' };
    expect(await runtimePatchStatusAndInternal(store, GRANT, id, 9, status, patch, STAMP)).toBeUndefined();
    expect(await runtimePatchStatusAndInternal(store, GRANT, id, 1, status, patch, STAMP)).toMatchObject({
      version: 2,
      observedGeneration: 1,
    });
    expect(await runtimeReadInternal(store.pool, GRANT, id)).toMatchObject({ host: 'h2', pollFailures: 3 });
    expect(await runtimeReadInternal(store.pool, GRANT, newId('RUNTIME'))).toBeUndefined();
  });
});
