import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';

import type { Log } from '../../../src/kernel/log.js';
import type { Slipway } from '../../../src/main.js';
import { documentIdOf } from '../../../src/transport/trusted-documents.js';
import { createDatabase, makeTestFolder, type TestDatabase } from '../../support/database.js';
import { openEventStream } from '../../support/event-stream.js';
import { startTestServer } from '../../support/server.js';

const HEAD = '{ head }';
const WATCH = 'subscription { watchDeployments { __typename } }';

let database: TestDatabase;
let folder: string;

beforeAll(async () => {
  database = await createDatabase();
  folder = makeTestFolder('trusted');
});

afterAll(() => database.drop());

function fileOf(name: string, content: unknown): string {
  const file = join(folder, name);
  writeFileSync(file, JSON.stringify(content));
  return file;
}

const trustedFile = () =>
  fileOf('trusted.json', { [documentIdOf(HEAD)]: HEAD, [documentIdOf(WATCH)]: WATCH });

async function serverWith(env: Record<string, string>, log?: Log): Promise<Slipway> {
  const server = await startTestServer({ databaseUrl: database.url, env, ...(log ? { log } : {}) });
  onTestFinished(() => server.close());
  return server;
}

async function ask(
  server: Slipway,
  body: object,
): Promise<{ data?: unknown; errors?: { extensions: { code: string } }[] }> {
  const response = await fetch(`${server.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return (await response.json()) as { data?: unknown; errors?: { extensions: { code: string } }[] };
}

describe('trusted documents', () => {
  it('run by their text or by their hash alone, and no others do', async () => {
    const server = await serverWith({ SLIPWAY_TRUSTED_DOCUMENTS: trustedFile() });
    const whole = { data: { head: expect.any(String) as string } };
    expect(await ask(server, { query: HEAD })).toEqual(whole);
    expect(await ask(server, { documentId: documentIdOf(HEAD) })).toEqual(whole);
    expect((await ask(server, { query: '{ head viewer { name } }' })).errors?.[0]?.extensions.code).toBe(
      'FORBIDDEN',
    );
    expect((await ask(server, { documentId: documentIdOf('{ other }') })).errors?.[0]?.extensions.code).toBe(
      'GRAPHQL_PARSE_FAILED',
    );
  });

  it('hold for event streams as well', async () => {
    const server = await serverWith({ SLIPWAY_TRUSTED_DOCUMENTS: trustedFile() });
    const trusted = await openEventStream(`${server.url}/graphql`, { query: WATCH });
    onTestFinished(() => trusted.close());
    expect(await trusted.next()).toMatchObject({
      data: { data: { watchDeployments: { __typename: 'SnapshotEnd' } } },
    });
    const other = await openEventStream(`${server.url}/graphql`, {
      query: 'subscription { watchAgents { __typename } }',
    });
    onTestFinished(() => other.close());
    expect(await other.next()).toMatchObject({ data: { errors: [{ extensions: { code: 'FORBIDDEN' } }] } });
  });

  it('are only told apart in the log where the mode says so', async () => {
    const warned: object[] = [];
    const none = (): void => undefined;
    const log = { debug: none, info: none, error: none, warn: (fields: object) => void warned.push(fields) };
    const server = await serverWith(
      { SLIPWAY_TRUSTED_DOCUMENTS: trustedFile(), SLIPWAY_TRUSTED_DOCUMENTS_MODE: 'log' },
      log,
    );
    const other = '{ viewer { name } }';
    expect(await ask(server, { query: other })).toMatchObject({ data: { viewer: { name: 'local' } } });
    expect(await ask(server, { query: HEAD })).toMatchObject({ data: {} });
    expect(warned).toMatchObject([{ documentId: documentIdOf(other) }]);
  });

  it('stop a start whose file is not theirs', async () => {
    const wrong = fileOf('wrong.json', { [documentIdOf(HEAD)]: WATCH });
    await expect(serverWith({ SLIPWAY_TRUSTED_DOCUMENTS: wrong })).rejects.toThrow(
      /^SLIPWAY_TRUSTED_DOCUMENTS: the file has an entry "sha256:[0-9a-f]{64}" that is not the sha256 of its document/,
    );
    await expect(serverWith({ SLIPWAY_TRUSTED_DOCUMENTS: join(folder, 'absent.json') })).rejects.toThrow(
      'SLIPWAY_TRUSTED_DOCUMENTS: the file cannot be read as JSON.',
    );
  });
});
