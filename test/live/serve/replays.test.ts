import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { createDatabase, withClient, type TestDatabase } from '../../support/database.js';
import type { ServerProcess } from '../../support/server.js';
import { served } from './served.js';

const REPLAYS = 24;
const PATCH = `mutation ($input: PatchDeploymentStatusInput!) { patchDeploymentStatus(input: $input) {
  __typename ... on PatchDeploymentStatusPayload { deployment { id version updatedAt status { phase } } } ... on Failure { code message } } }`;
const CREATE = `mutation ($input: CreateRuntimeInput!) { createRuntime(input: $input) {
  __typename ... on CreateRuntimePayload { runtime { id name version createdAt } } ... on Failure { code message } } }`;

interface Answer {
  readonly data: Record<string, { readonly __typename: string; readonly runtime?: { readonly id: string } }>;
}

/** One key, sent again and again to whichever process: as a client does that lost its answer. */
describe('idempotency keys over two server processes', () => {
  let test: TestDatabase;
  let servers: ServerProcess[];
  beforeEach(async () => {
    test = await createDatabase();
    servers = await Promise.all([served({ databaseUrl: test.url }), served({ databaseUrl: test.url })]);
  });
  afterEach(async () => {
    await Promise.all(servers.map((server) => server.stop()));
    await test.drop();
  });

  async function send(at: number, query: string, input: object): Promise<Answer> {
    const response = await fetch(`${servers[at % 2]?.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query, variables: { input } }),
    });
    return (await response.json()) as Answer; // an answer of ours
  }
  const replays = (query: string, input: object) =>
    Promise.all(Array.from({ length: REPLAYS }, (_, at) => send(at, query, input)));
  const changesOf = (id: unknown) =>
    withClient(test.connection, async (client) => {
      const { rows } = await client.query<{ version: number }>(
        'SELECT version FROM change WHERE object_id = $1 ORDER BY seq',
        [id],
      );
      return rows.map(({ version }) => version);
    });

  it('have one effect and equal answers, and refuse another payload', async () => {
    const create = { name: 'place', type: 'external', idempotencyKey: 'create' };
    const [made, ...again] = await replays(CREATE, create);
    expect(made).toMatchObject({ data: { createRuntime: { __typename: 'CreateRuntimePayload' } } });
    for (const answer of again) expect(answer).toEqual(made);
    const runtime = made?.data['createRuntime']?.runtime?.id;
    expect(await changesOf(runtime)).toEqual([1]);

    const deployment = 'dep_01h455vb4pex5vsknk084sn02q';
    await withClient(test.connection, (client) =>
      client.query(
        `INSERT INTO deployment (id, namespace, name, app, runtime_id) VALUES ($1, 'default', 'shop', 'shop', $2)`,
        [deployment, runtime],
      ),
    );
    const patch = { id: deployment, expectedVersion: 1, phase: 'INITIAL_SETUP', idempotencyKey: 'patch' };
    const [first, ...others] = await replays(PATCH, patch);
    expect(first).toMatchObject({
      data: { patchDeploymentStatus: { deployment: { version: 2, status: { phase: 'INITIAL_SETUP' } } } },
    });
    for (const answer of others) expect(answer).toEqual(first);
    expect(await changesOf(deployment)).toEqual([1, 2]);

    const reused = { __typename: 'IdempotencyKeyReused' };
    for (const at of [0, 1]) {
      const answers = [
        await send(at, CREATE, { ...create, name: 'other' }),
        await send(at, PATCH, { ...patch, phase: 'ERROR' }),
        await send(at, PATCH, { ...patch, expectedVersion: 2 }),
        await send(at, CREATE, { ...create, idempotencyKey: 'patch' }),
      ];
      for (const { data } of answers) expect(Object.values(data)).toMatchObject([reused]);
    }
    expect(await changesOf(deployment)).toEqual([1, 2]);
    await withClient(test.connection, async (client) => {
      const { rows } = await client.query('SELECT name FROM runtime');
      expect(rows).toEqual([{ name: 'place' }]);
    });
  });

  it('keep their answer when the process that gave it is killed amid replays', async () => {
    const create = { name: 'place', type: 'external', idempotencyKey: 'create' };
    const pending = Array.from({ length: REPLAYS }, (_, at) =>
      send(at, CREATE, create).then(
        (answer) => {
          // The first answer of the process ends it: others of it are lost.
          if (at % 2 === 0) servers[0]?.kill('SIGKILL');
          return answer;
        },
        () => undefined,
      ),
    );
    const answers = (await Promise.all(pending)).filter((answer) => answer !== undefined);
    await servers[0]?.exited;
    expect(answers.length).toBeGreaterThan(REPLAYS / 2 - 1);
    const later = await send(1, CREATE, create);
    for (const answer of answers) expect(answer).toEqual(later);
    expect(await changesOf(later.data['createRuntime']?.runtime?.id)).toEqual([1]);
  });
});
