import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { newId } from '../../../src/kernel/ids.js';
import type { Slipway } from '../../../src/main.js';
import { ask } from '../../support/api.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { startTestServer } from '../../support/server.js';

describe('the cost of a mutation', () => {
  let database: TestDatabase;
  let server: Slipway;

  beforeAll(async () => {
    database = await createDatabase();
    server = await startTestServer({ databaseUrl: database.url, env: { SLIPWAY_MAX_COMPLEXITY: '100' } });
  });
  afterAll(async () => {
    await server.close();
    await database.drop();
  });

  it('is counted anew where a variable says how much is selected', async () => {
    const query = `mutation ($input: PatchDeploymentStatusInput!, $first: Int!) {
      patchDeploymentStatus(input: $input) {
        __typename
        ... on PatchDeploymentStatusPayload { deployment { changes(first: $first) { nodes { version } } } }
      }
    }`;
    const input = { id: newId('DEPLOYMENT'), expectedVersion: 1, phase: 'RUNNING' };
    const patch = (first: number) => ask(server.url, query, { input, first });
    const few = { data: { patchDeploymentStatus: { __typename: 'NotFound' } } };
    expect(await patch(2)).toEqual(few);
    expect(await patch(100)).toMatchObject({ errors: [{ extensions: { code: 'TOO_COMPLEX' } }] });
    expect(await patch(2)).toEqual(few);
  });
});
