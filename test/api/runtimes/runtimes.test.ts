import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { canonicalJson, type JsonObject } from '../../../src/kernel/json.js';
import type { Database } from '../../../src/store/database.js';
import { someone } from '../../support/callers.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import {
  aDeployment,
  aRuntime,
  changesOf,
  domainOf,
  failureOf,
  freshName,
  valueOf,
  type Domain,
} from '../../support/deployments.js';
import { openStore } from '../../support/open-store.js';

describe('runtimes', () => {
  let test: TestDatabase;
  let store: Database;
  let domain: Domain;
  const operator = someone({ roles: ['OPERATOR'] });
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
  const row = (id: string) =>
    store.prisma.runtime.findUniqueOrThrow({ where: { id }, select: { version: true, updatedAt: true } });

  describe('createRuntime', () => {
    it('registers a place, once by name among those that live', async () => {
      const name = freshName('rt');
      const input = {
        name,
        type: 'external' as const,
        environment: 'prod',
        config: { region: 'eu' },
        labels: { a: 'b' },
      };
      const made = valueOf(await domain.createRuntime(operator, input));
      expect(made).toMatchObject({
        ...input,
        namespace: 'default',
        generation: 1,
        version: 1,
        conditions: [],
      });
      expect(failureOf(await domain.createRuntime(operator, input))).toMatchObject({
        kind: 'AlreadyExists',
        existingId: made.id,
      });
    });

    it('knows the type `external` alone, and names it', async () => {
      const failure = failureOf(
        await domain.createRuntime(operator, { name: freshName('rt'), type: 'noop' as never }),
      );
      expect(failure).toMatchObject({
        kind: 'InvalidInput',
        issues: [{ path: ['input', 'type'], message: 'must be a known runtime type: external' }],
      });
    });
  });

  describe('updateRuntime', () => {
    it('is one more generation for config or environment, none for labels', async () => {
      const { id } = await aRuntime(domain, { config: { a: 1, b: 2 }, environment: 'prod' });
      const update = async (change: object) =>
        valueOf(await domain.updateRuntime(operator, { id, ...change }));
      expect(await update({ labels: { a: 'b' } })).toMatchObject({ version: 2, generation: 1 });
      expect(await update({ config: { a: 2 } })).toMatchObject({
        version: 3,
        generation: 2,
        environment: 'prod',
      });
      expect(await update({ environment: null })).toMatchObject({
        version: 4,
        generation: 3,
        environment: null,
      });
    });

    it('writes nothing when nothing changes', async () => {
      const { id } = await aRuntime(domain, { config: { a: 1, b: 2 } });
      const before = await row(id);
      valueOf(await domain.updateRuntime(operator, { id, config: { b: 2, a: 1 }, labels: {} }));
      expect(await row(id)).toEqual(before);
      expect(await changesOf(store, id)).toHaveLength(1);
    });

    it('keeps every key of a configuration, whatever it is called', async () => {
      const config = JSON.parse('{ "__proto__": { "a": 1 }, "b": [{ "__proto__": 2 }] }') as JsonObject;
      const { id } = await aRuntime(domain, { config });
      expect(valueOf(await domain.updateRuntime(operator, { id, config }))).toMatchObject({ version: 1 });
      const updated = valueOf(await domain.updateRuntime(operator, { id, environment: 'prod' }));
      expect(updated.version).toBe(2);
      expect(canonicalJson(updated.config)).toBe(canonicalJson(config));
    });

    it('has no field for type or name, and says what conflicts', async () => {
      const runtime = await aRuntime(domain);
      const { id } = runtime;
      for (const field of ['type', 'name', 'namespace', 'generation']) {
        const outcome = await domain.updateRuntime(operator, { id, [field]: 'x' });
        expect(failureOf(outcome)).toMatchObject({
          kind: 'InvalidInput',
          issues: [{ path: ['input', field] }],
        });
      }
      const outcome = await domain.updateRuntime(operator, { id, labels: { a: 'b' }, expectedVersion: 3 });
      expect(failureOf(outcome)).toMatchObject({ kind: 'VersionConflict', current: runtime });
    });

    it('refuses a new spec while it terminates, and still takes labels and reports', async () => {
      const { runtime } = await aDeployment(domain);
      const { id } = runtime;
      const { version } = valueOf(await domain.deleteRuntime(operator, { id }));
      expect(failureOf(await domain.updateRuntime(operator, { id, config: { a: 1 } })).kind).toBe(
        'Terminating',
      );
      valueOf(await domain.updateRuntime(operator, { id, labels: { a: 'b' } }));
      const report = { id, expectedVersion: version + 1, observedGeneration: 1 };
      valueOf(await domain.patchRuntimeStatus(controller, report));
    });

    it('decides again for racing updates without an expected version', async () => {
      const { id } = await aRuntime(domain);
      await Promise.all(
        Array.from({ length: 10 }, async (_, n) =>
          valueOf(await domain.updateRuntime(operator, { id, config: { n: n + 1 } })),
        ),
      );
      expect((await changesOf(store, id)).map(({ version }) => version)).toEqual(
        Array.from({ length: 11 }, (_, n) => n + 1),
      );
    });
  });

  describe('patchRuntimeStatus', () => {
    it('merges conditions, lets one of racing reports win, and shows the others the runtime', async () => {
      const { id } = await aRuntime(domain);
      const outcomes = await Promise.all(
        Array.from({ length: 8 }, (_, n) =>
          domain.patchRuntimeStatus(controller, {
            id,
            expectedVersion: 1,
            observedGeneration: 1,
            conditions: [{ type: 'Ready', status: 'TRUE', reason: `R${n}` }],
          }),
        ),
      );
      const winners = outcomes.filter((outcome) => outcome.done);
      expect(winners).toHaveLength(1);
      for (const outcome of outcomes) {
        if (!outcome.done) {
          expect(outcome.failure).toMatchObject({ kind: 'VersionConflict', currentVersion: 2 });
        }
      }
      const next = {
        id,
        expectedVersion: 2,
        conditions: [{ type: 'Full', status: 'FALSE' as const, reason: 'Room' }],
      };
      const after = valueOf(await domain.patchRuntimeStatus(controller, next));
      expect(after.conditions).toMatchObject([{ type: 'Ready' }, { type: 'Full', observedGeneration: 1 }]);
      expect(valueOf(await domain.patchRuntimeStatus(controller, { ...next, expectedVersion: 3 }))).toEqual(
        after,
      );
      const beyond = { id, expectedVersion: 3, observedGeneration: 2 };
      expect(failureOf(await domain.patchRuntimeStatus(controller, beyond)).kind).toBe('InvalidInput');
    });

    it('is for external runtimes', async () => {
      const { id } = await aRuntime(domain);
      await store.pool.query(`UPDATE runtime SET type = 'process', version = 2 WHERE id = $1`, [id]);
      const failure = failureOf(await domain.patchRuntimeStatus(controller, { id, expectedVersion: 2 }));
      expect(failure.message).toContain('`process`');
    });
  });

  it('are changed by their roles and in their namespaces only', async () => {
    const { id } = await aRuntime(domain);
    const deployer = someone({ roles: ['DEPLOYER', 'VIEWER'] });
    expect(
      failureOf(await domain.createRuntime(deployer, { name: freshName('rt'), type: 'external' })).kind,
    ).toBe('NotFound');
    await expect(domain.updateRuntime(deployer, { id, labels: {} })).rejects.toThrow('roles');
    await expect(domain.deleteRuntime(deployer, { id })).rejects.toThrow('roles');
    await expect(domain.patchRuntimeStatus(operator, { id, expectedVersion: 1 })).rejects.toThrow('roles');
    const elsewhere = someone({ roles: ['ADMIN'], namespaces: ['other'] });
    const outcomes = [
      await domain.updateRuntime(elsewhere, { id, labels: { a: 'b' } }),
      await domain.deleteRuntime(elsewhere, { id }),
      await domain.patchRuntimeStatus(elsewhere, { id, expectedVersion: 1 }),
    ];
    for (const outcome of outcomes) expect(failureOf(outcome).kind).toBe('NotFound');
    expect(await changesOf(store, id)).toHaveLength(1);
  });
});
