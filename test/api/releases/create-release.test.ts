import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { Database } from '../../../src/store/database.js';
import { local, someone } from '../../support/callers.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import {
  changesOf,
  domainOf,
  failureOf,
  freshName,
  valueOf,
  type Domain,
} from '../../support/deployments.js';
import { openStore } from '../../support/open-store.js';

describe('createRelease', () => {
  let test: TestDatabase;
  let store: Database;
  let domain: Domain;
  const resources = [{ name: 'web', serviceType: 'process' }];
  beforeAll(async () => {
    test = await createDatabase();
    store = openStore(test);
    domain = domainOf(store);
  });
  afterAll(async () => {
    await store.close();
    await test.drop();
  });

  it('stores what to run, with every default written out', async () => {
    const input = { app: 'shop', label: '1.2.3+build.7', resources, source: { sha: 'abc', dirty: true } };
    const row = valueOf(await domain.createRelease(someone({ roles: ['DEPLOYER'] }), input));
    expect(row).toMatchObject({
      namespace: 'default',
      app: 'shop',
      label: '1.2.3+build.7',
      description: null,
      resources: [
        {
          name: 'web',
          serviceType: 'process',
          spec: {},
          requires: [],
          lifecycle: 'LIVE',
          reschedule: 'NEVER',
        },
      ],
      source: { sha: 'abc', branch: null, repository: null, dirty: true, message: null, author: null },
    });
    expect(await changesOf(store, row.id)).toMatchObject([
      { op: 'INSERT', version: 1, actor: 'test:DEPLOYER' },
    ]);
  });

  it('takes a label once per app and namespace, and names the release that has it', async () => {
    const label = freshName('v');
    const first = valueOf(await domain.createRelease(local, { app: 'shop', label, resources }));
    const races = await Promise.all(
      [1, 2, 3].map(() => domain.createRelease(local, { app: 'shop', label, resources })),
    );
    for (const outcome of races) {
      expect(failureOf(outcome)).toMatchObject({ kind: 'AlreadyExists', existingId: first.id });
    }
    valueOf(await domain.createRelease(local, { app: 'cart', label, resources }));
    valueOf(await domain.createRelease(local, { namespace: 'other', app: 'shop', label, resources }));
  });

  it('never changes, whoever tries', async () => {
    const row = valueOf(await domain.createRelease(local, { app: 'shop', label: freshName('v'), resources }));
    const update = store.pool.query(`UPDATE release SET label = 'x', version = version + 1 WHERE id = $1`, [
      row.id,
    ]);
    await expect(update).rejects.toMatchObject({ code: 'SL005' });
  });

  it('names every issue with its path', async () => {
    const bad = [
      { name: 'a', serviceType: 'process', requires: ['b'] },
      { name: 'a', serviceType: 'process', lifecycle: 'LIVE' as const },
    ];
    const outcome = await domain.createRelease(local, { app: 'shop', label: freshName('v'), resources: bad });
    const failure = failureOf(outcome);
    expect(failure.kind === 'InvalidInput' && failure.issues.map(({ path }) => path.join('.'))).toEqual([
      'input.resources.1.name',
      'input.resources.0.requires.0',
    ]);
  });

  it('may be done by DEPLOYER, OPERATOR and ADMIN in their namespaces', async () => {
    const input = () => ({ app: 'shop', label: freshName('v'), resources });
    for (const role of ['VIEWER', 'CONTROLLER', 'AGENT'] as const) {
      expect(failureOf(await domain.createRelease(someone({ roles: [role] }), input()))).toMatchObject({
        kind: 'NotFound',
      });
    }
    const elsewhere = someone({ roles: ['DEPLOYER'], namespaces: ['other'] });
    expect(failureOf(await domain.createRelease(elsewhere, input()))).toMatchObject({ kind: 'NotFound' });
    valueOf(await domain.createRelease(elsewhere, { ...input(), namespace: 'other' }));
  });
});
