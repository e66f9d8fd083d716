import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';

const START_MS = 10_000;
const HEALTHY_MS = 15_000;
const HEALTH_EVERY_MS = 100;
const STOP_MS = 3_000;

/** A real process that was started for a deployment. */
export interface ChildProgram {
  readonly pid: number;
  readonly url: string;
  /** Resolves when `/health` answers 200; rejects when it ends before, or is not healthy in time. */
  healthy(): Promise<{ readonly checks: number }>;
  /** Ends it, by force if it does not go by itself. May be called twice. */
  stop(): Promise<void>;
}

/** Starts the program file with Node on a free port. It ends with this process, however that ends. */
export async function startProgram(file: string, release: string): Promise<ChildProgram> {
  const child = spawn(process.execPath, [file, '0', release], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => resolve(`the program ended with ${signal ?? code}`));
    child.once('error', (error) => resolve(`the program did not start: ${error.message}`));
  });
  try {
    const url = await firstLine(child, ended);
    return {
      pid: child.pid ?? 0,
      url,
      healthy: () => untilHealthy(url, ended),
      stop: () => stop(child, ended),
    };
  } catch (error) {
    await stop(child, ended);
    throw error;
  }
}

function firstLine(child: ChildProcess, ended: Promise<string>): Promise<string> {
  return new Promise((resolve, reject) => {
    const { stdout } = child;
    if (!stdout) {
      reject(new Error('The program has no output.'));
      return;
    }
    createInterface({ input: stdout }).once('line', resolve);
    void ended.then((why) => reject(new Error(why)));
    setTimeout(() => reject(new Error(`The program said nothing for ${START_MS} ms.`)), START_MS).unref();
  });
}

async function untilHealthy(url: string, ended: Promise<string>): Promise<{ checks: number }> {
  let gone: string | undefined;
  void ended.then((why) => {
    gone = why;
  });
  const deadline = performance.now() + HEALTHY_MS;
  for (let checks = 1; performance.now() < deadline; checks += 1) {
    if (gone !== undefined) throw new Error(gone);
    const response = await fetch(`${url}/health`).catch(() => undefined);
    await response?.body?.cancel();
    if (response?.ok) return { checks };
    await new Promise((resolve) => {
      setTimeout(resolve, HEALTH_EVERY_MS);
    });
  }
  throw new Error(`The program was not healthy within ${HEALTHY_MS} ms.`);
}

async function stop(child: ChildProcess, ended: Promise<string>): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  const force = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  await ended;
  clearTimeout(force);
}
