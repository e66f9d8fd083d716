/** Server processes that end with their test, whatever became of it, and what operators and probes see of them. */
import { expect, onTestFinished } from 'vitest';
import {
  spawnServer,
  startServerProcess,
  type ServerOptions,
  type ServerProcess,
} from '../../support/server.js';

export async function served(options: ServerOptions): Promise<ServerProcess> {
  const server = await startServerProcess(options);
  onTestFinished(async ({ task }) => {
    server.kill('SIGKILL');
    await server.exited;
    if (task.result?.state === 'fail') process.stderr.write(server.output.stderr);
  });
  return server;
}

export interface Refusal {
  /** What it said besides log lines. */
  readonly message: string;
  /** All of it, to look for what must not be there. */
  readonly output: string;
}

/** What the first start after a change of the sources says before it begins. */
const BUILDING = /^(Building from source|Built in)/;

/** Starts a server that must refuse to: exit code 1, one line for a person, no stack, no banner. */
export async function refused(options: ServerOptions): Promise<Refusal> {
  const { child, output, exited } = spawnServer(options);
  onTestFinished(() => void child.kill('SIGKILL'));
  const { code } = await exited;
  const said = output.stderr
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('{') && !BUILDING.test(line));
  expect({ code, stdout: output.stdout, said }).toEqual({ code: 1, stdout: '', said: [expect.any(String)] });
  expect(output.stderr).not.toMatch(/^\s+at /m);
  return { message: said[0] ?? '', output: output.stderr };
}

/** Each line of the log; fails on a line that is no JSON object. */
export function logLines(server: Pick<ServerProcess, 'output'>): Record<string, unknown>[] {
  return server.output.stderr
    .split('\n')
    .filter((line) => line !== '' && !BUILDING.test(line))
    .map((line) => {
      const parsed: unknown = JSON.parse(line);
      expect(parsed, line).toBeTypeOf('object');
      return parsed as Record<string, unknown>; // just checked
    });
}

export async function probe(server: Pick<ServerProcess, 'url'>, path: '/livez' | '/readyz'): Promise<string> {
  const response = await fetch(`${server.url}${path}`);
  return `${response.status} ${(await response.text()).trim()}`;
}
