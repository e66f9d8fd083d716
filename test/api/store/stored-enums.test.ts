import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { DEPLOYMENT_PHASES } from '../../../src/deployments/index.js';
import { ROLLOUT_ENUMS } from '../../../src/rollouts/index.js';
import type { Database } from '../../../src/store/database.js';
import { checkStoredEnums } from '../../../src/store/stored-enums.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { openStore } from '../../support/open-store.js';
import { startTestServer } from '../../support/server.js';

const ENUMS = { DeploymentPhase: DEPLOYMENT_PHASES, ...ROLLOUT_ENUMS };

describe('checkStoredEnums', () => {
  let test: TestDatabase;
  let store: Database;
  beforeAll(async () => {
    test = await createDatabase();
    store = openStore(test);
  });
  afterAll(async () => {
    await store.close();
    await test.drop();
  });

  it('passes the database of this version', async () => {
    await expect(checkStoredEnums(store.pool, ENUMS)).resolves.toBeUndefined();
  });

  it('names what another one has and lacks, and no server starts on it', async () => {
    await store.pool.query(`ALTER TYPE "DeploymentPhase" ADD VALUE 'DREAMING'`);
    await store.pool.query(`ALTER TYPE "RolloutOutcome" RENAME VALUE 'INTERRUPTED' TO 'LOST'`);
    await store.pool.query(`ALTER TYPE "RolloutPhase" ADD VALUE 'SIGNING'`);
    const what =
      'DeploymentPhase: it has unknown DREAMING. RolloutPhase: it has unknown SIGNING.' +
      ' RolloutOutcome: the database lacks INTERRUPTED; it has unknown LOST';
    await expect(checkStoredEnums(store.pool, ENUMS)).rejects.toThrow(what);
    await expect(startTestServer({ databaseUrl: test.url })).rejects.toThrow(what);
  });
});
