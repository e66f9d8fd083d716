import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { createDatabase, type TestDatabase } from '../../support/database.js';
import { spawnServer, startTestServer } from '../../support/server.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

describe('npm run token -- create', () => {
  let test: TestDatabase;
  beforeAll(async () => {
    test = await createDatabase();
  });
  afterAll(() => test.drop());

  it('is a script of the package, which is this', async () => {
    const text = await readFile(new URL('../../../package.json', import.meta.url), 'utf8');
    const { scripts } = JSON.parse(text) as { scripts: Record<string, string> }; // our own package.json
    expect(scripts['token']).toBe('node .config/start.mjs token');
  });

  async function run(...argv: string[]): Promise<{ code: unknown; stdout: string; stderr: string }> {
    const child = spawn(process.execPath, ['.config/start.mjs', 'token', ...argv], {
      cwd: ROOT,
      env: { PATH: process.env['PATH'] ?? '', DATABASE_URL: test.url },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const output = { stdout: '', stderr: '' };
    child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()));
    const [code] = (await once(child, 'close')) as [unknown]; // the event's first argument
    return { code, ...output };
  }

  const ask = async (url: string, token?: string) => {
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify({ query: '{ __typename }' }),
    });
    return response.json();
  };

  it('lets a server start where others can reach it, which it refuses without', async () => {
    const elsewhere = { databaseUrl: test.url, env: { SLIPWAY_HOST: '0.0.0.0' } };
    const refused = spawnServer(elsewhere);
    expect(await refused.exited).toMatchObject({ code: 1 });
    expect(refused.output.stderr).toMatch(
      /SLIPWAY_HOST is 0\.0\.0\.0.*SLIPWAY_BOOTSTRAP_TOKEN.*npm run token -- create/,
    );

    const made = await run('create', '--name', 'admin', '--role', 'ADMIN', '--expires', '30d');
    expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^slp_[\w-]{43}\n$/) });
    expect(made.stderr).toMatch(/Made tok_\w+ \(ADMIN in \*; expires \d{4}-/);

    const server = await startTestServer(elsewhere);
    const url = `http://127.0.0.1:${server.port}`;
    expect(await ask(url, made.stdout.trim())).toEqual({ data: { __typename: 'Query' } });
    expect(await ask(url)).toMatchObject({ errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] });
    expect(await ask(url, `${made.stdout.trim()}x`)).toMatchObject({
      errors: [{ extensions: { code: 'UNAUTHENTICATED' } }],
    });
    await server.close();
  });

  it.each([
    [['create', '--name', 'x', '--role', 'KING'], 1, /`roles\.0`/],
    [['create', '--name', 'x', '--role', 'AGENT'], 1, /`agentName`/],
    [['create', '--name', 'x'], 2, /--name and --role are needed/],
    [['create', '--name', 'x', '--role', 'VIEWER', '--expires', 'soon'], 2, /--expires must be/],
    [['create', '--root'], 2, /--root/],
    [['revoke'], 2, /Usage: npm run token -- create/],
  ])('%j ends with %d and says why', async (argv, code, stderr) => {
    expect(await run(...argv)).toEqual({ code, stdout: '', stderr: expect.stringMatching(stderr) });
  });
});
