import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSlipwayClient, DeploymentsDocument } from '../../../src/client/index.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { startServerProcess, type ServerProcess } from '../../support/server.js';
import { waitFor } from '../../support/wait-for.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

let database: TestDatabase;
let server: ServerProcess;

beforeAll(async () => {
  database = await createDatabase();
  const env = {
    SLIPWAY_HEARTBEAT_INTERVAL_SECONDS: '0.5',
    SLIPWAY_HEARTBEAT_TIMEOUT_SECONDS: '5',
    SLIPWAY_AGENT_SWEEP_SECONDS: '0.5',
  };
  server = await startServerProcess({ databaseUrl: database.url, env });
});

afterAll(async () => {
  await server.stop();
  await database.drop();
});

function runDemo(url: string) {
  const child = spawn(process.execPath, ['.config/start.mjs', 'demo'], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'] ?? '', SLIPWAY_URL: url },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { text: '' };
  child.stdout.on('data', (chunk: Buffer) => (output.text += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output.text += chunk.toString()));
  const exited = once(child, 'close').then(([code]) => code as number | null); // of a ChildProcess
  return { child, output, exited };
}

/** The process that the demo started for its deployment, once it has. */
async function programOf(output: { readonly text: string }): Promise<number> {
  return Number(await waitFor(() => /process (\d+) listens/.exec(output.text)?.[1], 'the program', 30_000));
}

function alive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe('the demo', () => {
  it(
    'shows everything that it announces, twice in a row, and leaves nothing running',
    { timeout: 120_000 },
    async () => {
      for (let run = 0; run < 2; run += 1) {
        const { output, exited } = runDemo(server.url);
        const program = await programOf(output);
        expect(await exited, output.text).toBe(0);
        for (const move of [
          '(new) → PENDING',
          'PENDING → INITIAL_SETUP',
          'INITIAL_SETUP → PROVISIONING',
          'PROVISIONING → RUNNING',
          'RUNNING → DELETE_PENDING',
          'DELETE_PENDING → DELETING',
          'DELETING → DELETED',
          '(new) → READY',
          'READY → CONGESTED',
          'CONGESTED → READY',
          'READY → UNAVAILABLE',
          '“Hello from Slipway”',
          'the other got VersionConflict',
        ]) {
          expect(output.text).toContain(move);
        }
        expect(alive(program)).toBe(false);
      }
      const client = createSlipwayClient({ url: `${server.url}/graphql`, transport: 'sse' });
      expect((await client.query(DeploymentsDocument, {})).deployments.nodes).toEqual([]);
    },
  );

  it('says what to do when no server answers', { timeout: 60_000 }, async () => {
    const { output, exited } = runDemo('http://127.0.0.1:9');
    expect(await exited).toBe(1);
    expect(output.text).toContain('Start one with `npm start` in another terminal');
  });

  it('ends its program and deletes what it made when it is interrupted', { timeout: 60_000 }, async () => {
    const { child, output, exited } = runDemo(server.url);
    const program = await programOf(output);
    child.kill('SIGINT');
    expect(await exited).toBe(1);
    expect(output.text).toContain('Its deployment and its agent are deleted again.');
    expect(alive(program)).toBe(false);
  });

  it('leaves no program behind when it is killed', { timeout: 60_000 }, async () => {
    const { child, output, exited } = runDemo(server.url);
    const program = await programOf(output);
    child.kill('SIGKILL');
    await exited;
    await waitFor(() => !alive(program), 'the program to end');
  });
});
