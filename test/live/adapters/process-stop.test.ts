import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { Adapter } from '../../../src/adapters/contract.js';
import { launchProgram } from '../../../src/adapters/process/launch.js';
import { layoutOf } from '../../../src/adapters/process/layout.js';
import { procfs } from '../../../src/adapters/process/process-table.js';
import { systemClock } from '../../../src/kernel/clock.js';
import { silentLog } from '../../../src/kernel/log.js';
import type { ReleaseResource } from '../../../src/releases/index.js';
import {
  AdapterDriver,
  adapterTarget,
  conditionOf,
  resource,
  statusOf,
} from '../../support/adapter-driver.js';
import { programHost, type ProgramHost } from '../../support/programs.js';
import { waitFor } from '../../support/wait-for.js';

let host: ProgramHost;
let adapter: Adapter;

beforeAll(() => {
  host = programHost();
  adapter = host.adapter();
});

afterAll(async () => {
  expect(await host.end()).toBe(0);
});

const program = (script: string, spec = {}, facts: Partial<ReleaseResource> = {}): ReleaseResource =>
  resource({ name: 'job', spec: { command: ['sh', '-c', script], ...spec }, ...facts });

/** Where the only launch of `job` keeps its files. */
function launchFolder({ target: { deploymentId } }: AdapterDriver): string {
  const [launch = ''] = host.names(`runs/${deploymentId}/job/launches`);
  return join(host.dataDir, 'process/runs', deploymentId, 'job/launches', launch);
}

async function deployed(...resources: ReleaseResource[]): Promise<AdapterDriver> {
  const driver = new AdapterDriver(adapter, adapterTarget('process', resources));
  expect((await driver.deploy()).outcome).toEqual({ kind: 'done' });
  return driver;
}

async function processesOf({ target }: AdapterDriver) {
  return (await host.processes()).filter(({ mark }) => mark.deploymentId === target.deploymentId);
}

const outOf = ({ target }: AdapterDriver, name = 'job'): string =>
  readFileSync(join(host.dataDir, 'process/runs', target.deploymentId, name, 'out'), 'utf8');

describe('stopping a program', () => {
  it('gives it SIGTERM and its time, and deletes its log and record at the end', async () => {
    const said = join(host.dataDir, 'said');
    const driver = await deployed(
      program(`trap 'sleep 0.3; echo bye > ${said}; exit 0' TERM; while :; do sleep 0.05; done`),
    );
    const first = await driver.remove();
    expect(first.outcome.kind).toBe('inProgress');
    expect(statusOf(first, 'job')).toMatchObject({ status: 'DELETING' });
    expect(existsSync(said)).toBe(false);
    const done = await driver.settle(() => driver.remove());
    expect(statusOf(done, 'job')).toMatchObject({ status: 'DELETED' });
    expect(done.runtime).toEqual({ id: null, name: null, resourceId: null, endpoint: null });
    expect(readFileSync(said, 'utf8')).toBe('bye\n');
    expect(host.names(`runs/${driver.target.deploymentId}`)).toEqual([]);
    expect(host.names('trash')).toEqual([]);
  });

  it('kills one that does not listen, after stopSeconds and not before', async () => {
    const driver = await deployed(program("trap '' TERM; while :; do sleep 0.05; done", { stopSeconds: 1 }));
    const from = performance.now();
    expect((await driver.settle(() => driver.remove())).outcome).toEqual({ kind: 'done' });
    expect(performance.now() - from).toBeGreaterThan(950);
    expect(await processesOf(driver)).toEqual([]);
  });

  it('ends everything that it started, what left its group and what forgot its environment included', async () => {
    const driver = await deployed(
      program('sleep 300 & setsid sleep 301 & env -i /bin/sleep 302 & (sleep 303 &) ; wait'),
    );
    // The program's two shells, and four sleepers.
    await waitFor(async () => (await processesOf(driver)).length >= 6, 'all of them');
    expect((await driver.settle(() => driver.remove())).outcome).toEqual({ kind: 'done' });
    expect(await processesOf(driver)).toEqual([]);
    expect(await host.processes()).toEqual([]);
  });

  it('ends what a program left behind before another one is started', async () => {
    const driver = await deployed(program('setsid sleep 300 & sleep 1.5; exit 4'));
    await waitFor(async () => (await processesOf(driver)).length === 1, 'the program’s own end');
    expect(statusOf(await driver.observe(), 'job')).toMatchObject({ status: 'FAILED' });
    const [left] = await processesOf(driver);
    driver.next([program('sleep 301')]);
    expect((await driver.deploy()).outcome).toEqual({ kind: 'done' });
    expect((await processesOf(driver)).map(({ pid }) => pid)).not.toContain(left?.pid);
    await driver.settle(() => driver.remove());
  });

  it('stops what starts last first', async () => {
    const order = join(host.dataDir, 'order');
    writeFileSync(order, '');
    const told = (name: string) =>
      `trap 'sleep 0.2; echo ${name} >> ${order}; exit 0' TERM; while :; do sleep 0.02; done`;
    const driver = await deployed(
      program(told('base'), {}, { name: 'base' }),
      program(told('top'), {}, { name: 'top', requires: ['base'] }),
    );
    await driver.with({ release: null }).settle(() => driver.remove());
    expect(readFileSync(order, 'utf8')).toBe('top\nbase\n');
  });

  it('does not touch a process that got the pid of one of ours', async () => {
    const driver = await deployed(program('sleep 300'));
    const folder = launchFolder(driver);
    const innocent = spawn('sleep', ['304'], { stdio: 'ignore', detached: true });
    for (const { pid } of await processesOf(driver)) process.kill(pid, 'SIGKILL');
    await waitFor(async () => (await processesOf(driver)).length === 0, 'their end');
    writeFileSync(join(folder, 'pid'), String(innocent.pid));
    expect(statusOf(await driver.observe(), 'job')).toMatchObject({ status: 'FAILED' });
    expect((await driver.settle(() => driver.remove())).outcome).toEqual({ kind: 'done' });
    expect(innocent.exitCode ?? innocent.signalCode).toBeNull();
    innocent.kill('SIGKILL');
  });
});

describe('programs of one resource', () => {
  it('are told apart by their marks: one that has no record is ended, the recorded one stays', async () => {
    const driver = await deployed(program('sleep 300'));
    const [own] = await processesOf(driver);
    // In a group that is not ours to signal: this test's.
    const twin = spawn('sleep', ['305'], {
      stdio: 'ignore',
      env: {
        PATH: process.env['PATH'],
        SLIPWAY_FOLDER: own?.mark.folder,
        SLIPWAY_DEPLOYMENT: driver.target.deploymentId,
        SLIPWAY_RESOURCE: 'job',
        SLIPWAY_LAUNCH: 'ffffffffffffffff',
        SLIPWAY_FENCE: '0',
      },
    });
    await waitFor(async () => (await processesOf(driver)).some(({ pid }) => pid === twin.pid), 'the twin');
    const done = await driver.deploy();
    expect(done.outcome).toEqual({ kind: 'done' });
    const launches = new Set((await processesOf(driver)).map(({ mark }) => mark.launch));
    expect([...launches]).toEqual([own?.mark.launch]);
    await driver.settle(() => driver.remove());
  });

  it('whose shell has not decided yet whether it may run them are waited for', async () => {
    const driver = await deployed(program('sleep 300'));
    const before = (await processesOf(driver)).map(({ pid }) => pid);
    const folder = launchFolder(driver);
    const pid = readFileSync(join(folder, 'pid'), 'utf8');
    const record = JSON.parse(readFileSync(join(folder, 'launch.json'), 'utf8')) as object; // as it was written
    rmSync(join(folder, 'pid'));
    writeFileSync(
      join(folder, 'launch.json'),
      JSON.stringify({ ...record, startedAt: new Date().toISOString() }),
    );
    for (const answer of [await driver.apply(), await driver.observe(), await driver.remove()]) {
      expect(answer.outcome.kind).toBe('inProgress');
    }
    expect((await processesOf(driver)).map((one) => one.pid)).toEqual(before);
    writeFileSync(join(folder, 'pid'), pid);
    expect((await driver.deploy()).outcome).toEqual({ kind: 'done' });
    expect((await processesOf(driver)).map((one) => one.pid)).toEqual(before);
    await driver.settle(() => driver.remove());
  });

  it('whose record is lost are said to be unknown, and replaced by the next try', async () => {
    const driver = await deployed(program('sleep 300'));
    const folder = launchFolder(driver);
    writeFileSync(join(folder, 'launch.json'), '{"half":');
    expect(conditionOf(await driver.observe(), 'Healthy')).toMatchObject({
      status: 'FALSE',
      reason: 'RecordMissing',
    });
    expect((await driver.next().deploy()).outcome).toEqual({ kind: 'done' });
    const launches = new Set((await processesOf(driver)).map(({ mark }) => mark.launch));
    expect(launches.size).toBe(1);
    expect(launches).not.toContain(basename(folder));
    await driver.settle(() => driver.remove());
  });
});

describe('the script around a program', () => {
  it('does not run it when a later lease acted between our look and its own', async () => {
    const layout = layoutOf(host.dataDir);
    const deploymentId = 'dep_late';
    const here = {
      name: host.hostName,
      layout,
      table: procfs,
      clock: systemClock,
      log: silentLog,
      environment: { PATH: process.env['PATH'] },
      logMaxBytes: 1000,
      facts: {
        provider: 'host',
        account: null,
        region: null,
        location: null,
        hostname: null,
        os: null,
        arch: null,
      },
    };
    // As if the server were frozen right after it looked: its file is gone, and it does not know.
    const fence = { number: 1n, file: join(layout.fences, deploymentId, '1'), check: () => undefined };
    const ran = join(host.dataDir, 'ran');
    const result = await launchProgram(
      here,
      {
        deploymentId,
        resource: 'job',
        argv: ['touch', ran],
        cwd: null,
        env: {},
        record: {
          namespace: 'default',
          deployment: 'late',
          app: 'late',
          runtimeId: 'rt_1',
          attempt: 'first',
          hash: '',
          level: 0,
          stopSeconds: 1,
          health: { intervalSeconds: 1, timeoutSeconds: 1, startSeconds: 1, failureThreshold: 1 },
          outputs: {},
          endpoint: null,
        },
      },
      fence,
    );
    expect(result.ok).toBe(true);
    await waitFor(
      async () => !(await host.processes()).some(({ mark }) => mark.deploymentId === deploymentId),
      'the end of the script',
    );
    expect(existsSync(ran)).toBe(false);
  });
});

describe('what a program wrote', () => {
  it('goes to one file in the order of its writing, over restarts', async () => {
    const driver = await deployed(program('echo one; echo two >&2; echo three; sleep 300'));
    expect(outOf(driver)).toBe('one\ntwo\nthree\n');
    driver.next([program('echo four; sleep 300')]);
    await driver.deploy();
    expect(outOf(driver)).toBe('one\ntwo\nthree\nfour\n');
    await driver.settle(() => driver.remove());
  });
});
