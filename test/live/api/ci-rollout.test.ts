import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { ask, mutate } from '../../support/api.js';
import type { Slipway } from '../../../src/main.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { startTestServer } from '../../support/server.js';

/** The mutations that README.md gives for CI, as they stand there. */
const README = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8');
const documentOf = (name: string): string => {
  const [document] =
    new RegExp(`^mutation ${name} \\{$[^]*?^\\}$`, 'm').exec(README.split('### Roll out')[1] ?? '') ?? [];
  if (document === undefined) throw new Error(`README.md has no mutation ${name} below "Roll out"`);
  return document;
};

describe('the rollout of README.md', () => {
  let test: TestDatabase;
  let server: Slipway;
  beforeAll(async () => {
    test = await createDatabase();
    server = await startTestServer({ databaseUrl: test.url });
  });
  afterAll(async () => {
    await server.close();
    await test.drop();
  });

  it('takes the lock, says how far it is and puts the release into service', async () => {
    const resources = [{ name: 'web', serviceType: 'process' }];
    await mutate(server.url, 'createRuntime', { name: 'lab', type: 'external' }, '__typename');
    for (const label of ['1.0.0', '1.0.1']) {
      await mutate(server.url, 'createRelease', { app: 'shop', label, resources }, '__typename');
    }
    const first = { name: 'shop', runtime: { name: 'lab' }, release: { app: 'shop', label: '1.0.0' } };
    const { deployment } = await mutate<{ deployment: { id: string } }>(
      server.url,
      'applyDeployment',
      first,
      '... on ApplyDeploymentPayload { deployment { id } }',
    );
    const report = async (expectedVersion: number, phase: string) =>
      mutate(
        server.url,
        'patchDeploymentStatus',
        { id: deployment.id, expectedVersion, phase },
        '__typename',
      );
    await report(1, 'INITIAL_SETUP');
    await report(2, 'PROVISIONING');
    await report(3, 'RUNNING');

    const run = async (name: string, rollout = '') => {
      const document = documentOf(name).replaceAll('dep_…', deployment.id).replaceAll('ro_…', rollout);
      const { data, errors } = await ask(server.url, document);
      expect(errors).toBeUndefined();
      return Object.values(data ?? {})[0] as Record<string, Record<string, unknown>>;
    };
    const begun = await run('Begin');
    const id = String(begun['rollout']?.['id']);
    expect(await run('Begin')).toMatchObject({
      phase: 'PREPARING',
      lock: { rolloutId: id, startedBy: 'local' },
    });
    expect(await run('Building', id)).toEqual({ rollout: { phase: 'BUILDING' } });
    expect(await run('Activate', id)).toEqual({
      rollout: { phase: 'ACTIVATING', toRelease: { label: '1.0.1' } },
    });
    await report(5, 'UPDATING');
    await report(6, 'RUNNING');
    const { data } = await ask(
      server.url,
      `{ rollout(id: "${id}") { outcome source logUrl deployment { currentRelease { label } canRollback lock { rolloutId } } } }`,
    );
    expect(data).toMatchObject({
      rollout: {
        outcome: 'SUCCEEDED',
        source: { sha: '4be1f0c', branch: 'main' },
        deployment: { currentRelease: { label: '1.0.1' }, canRollback: true, lock: null },
      },
    });
  });
});
