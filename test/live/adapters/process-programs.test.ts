import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { Adapter } from '../../../src/adapters/contract.js';
import type { ReleaseResource } from '../../../src/releases/index.js';
import {
  AdapterDriver,
  adapterTarget,
  conditionOf,
  resource,
  statusOf,
} from '../../support/adapter-driver.js';
import {
  binding,
  freePort,
  listenSomewhere,
  programHost,
  webHealth,
  webProgram,
  type ProgramHost,
} from '../../support/programs.js';

let host: ProgramHost;
let adapter: Adapter;

beforeAll(() => {
  host = programHost();
  adapter = host.adapter();
});

afterAll(async () => {
  expect(await host.end()).toBe(0);
});

/** A deployment of these resources, removed when the test is over. */
async function deployment(
  resources: readonly ReleaseResource[],
  use: (driver: AdapterDriver) => Promise<void>,
  facts: Parameters<typeof adapterTarget>[2] = {},
): Promise<void> {
  const driver = new AdapterDriver(adapter, adapterTarget('process', resources, facts));
  try {
    await use(driver);
  } finally {
    driver.next();
    await driver.settle(() => driver.remove('LIVE'));
    await driver.settle(() => driver.remove('FROZEN'));
  }
}

async function launchesOf(driver: AdapterDriver): Promise<string[]> {
  const { deploymentId } = driver.target;
  return (await host.processes())
    .filter(({ pid, session, mark }) => pid === session && mark.deploymentId === deploymentId)
    .map(({ mark }) => `${mark.resource} ${mark.launch}`)
    .sort();
}

const web = (port: number, facts: Partial<ReleaseResource> = {}, more = {}): ReleaseResource =>
  resource({ name: 'web', spec: { command: webProgram(port), health: webHealth(port), ...more }, ...facts });

describe('a program', () => {
  it('is started, told healthy by its own answer, and reachable', async () => {
    const port = await freePort();
    await deployment([web(port)], async (driver) => {
      const first = await driver.apply();
      expect(first.outcome.kind).toBe('inProgress');
      expect(statusOf(first, 'web')).toMatchObject({ status: 'PROVISIONING', health: 'UNKNOWN' });
      expect(conditionOf(first, 'Ready')).toMatchObject({ status: 'FALSE', reason: 'Starting' });

      const ready = await driver.deploy();
      expect(ready.outcome).toEqual({ kind: 'done' });
      expect(statusOf(ready, 'web')).toMatchObject({ status: 'READY', health: 'HEALTHY', error: null });
      expect(ready.runtime).toEqual({
        id: host.hostName,
        name: 'shop',
        resourceId: driver.target.deploymentId,
        endpoint: `http://127.0.0.1:${port}`,
      });
      expect(ready.environmentInfo).toMatchObject({ provider: 'host', hostname: host.hostName, os: 'linux' });
      expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(200);
    });
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
  });

  it('is told healthy by a port that it listens on', async () => {
    const port = await freePort();
    const health = { tcp: { port }, intervalSeconds: 0.1 };
    await deployment([web(port, {}, { health })], async (driver) => {
      const ready = await driver.deploy();
      expect(ready.outcome).toEqual({ kind: 'done' });
      expect(ready.runtime?.endpoint).toBe(`tcp://127.0.0.1:${port}`);
    });
  });

  it('gets a safe base, its own variables and the deployment’s, and nothing of the server’s', async () => {
    const port = await freePort();
    adapter = host.adapter({
      environment: {
        PATH: process.env['PATH'],
        HOME: '/srv/home',
        TZ: 'UTC',
        DATABASE_URL: 'postgresql://secret@db',
        SLIPWAY_SECRET_KEY: 'secret',
        NODE_OPTIONS: '--no-warnings',
      },
    });
    const env = [
      { name: 'SHARED', value: 'of the deployment', secret: false },
      { name: 'TOKEN', value: 'a secret\nin two lines', secret: true },
    ];
    const own = { env: { SHARED: 'of the spec', OWN: 'é "quoted" $HOME' } };
    await deployment(
      [web(port, {}, own)],
      async (driver) => {
        expect((await driver.deploy()).outcome).toEqual({ kind: 'done' });
        const seen = (await (await fetch(`http://127.0.0.1:${port}/env`)).json()) as Record<string, string>;
        expect(seen).toMatchObject({
          HOME: '/srv/home',
          TZ: 'UTC',
          SHARED: 'of the deployment',
          TOKEN: 'a secret\nin two lines',
          OWN: 'é "quoted" $HOME',
          SLIPWAY_DEPLOYMENT: driver.target.deploymentId,
          SLIPWAY_RESOURCE: 'web',
        });
        const unexpected = Object.keys(seen).filter(
          (name) => !/^(PATH|HOME|TZ|LANG|SHARED|TOKEN|OWN|PWD|OLDPWD|_|SHLVL)$/.test(name),
        );
        expect(unexpected.filter((name) => !name.startsWith('SLIPWAY_'))).toEqual([]);
        expect(unexpected.sort()).toEqual([
          'SLIPWAY_DEPLOYMENT',
          'SLIPWAY_FENCE',
          'SLIPWAY_FOLDER',
          'SLIPWAY_LAUNCH',
          'SLIPWAY_RESOURCE',
        ]);
        for (const { pid } of await host.processes()) {
          expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8')).not.toContain('a secret');
        }
      },
      { env },
    );
  });

  it('is not touched when nothing that it was started with changed, its health check and labels aside', async () => {
    const port = await freePort();
    await deployment([web(port)], async (driver) => {
      await driver.deploy();
      const before = await launchesOf(driver);
      driver.next([
        web(port, {}, { health: { ...webHealth(port), http: { port, path: '/' } }, stopSeconds: 3 }),
      ]);
      expect((await driver.deploy()).outcome).toEqual({ kind: 'done' });
      expect(await launchesOf(driver)).toEqual(before);
    });
  });

  it.each([
    ['command', (port: number) => web(port, {}, { command: webProgram(port, { text: 'new' }) }), {}],
    ['environment', (port: number) => web(port, {}, { env: { COLOR: 'blue' } }), {}],
    ['secret', web, { env: [{ name: 'TOKEN', value: 'changed', secret: true }] }],
  ] as const)('is replaced by one with the new %s, never two at once', async (_what, changed, facts) => {
    const port = await freePort();
    await deployment([web(port)], async (driver) => {
      await driver.deploy();
      const before = await launchesOf(driver);
      driver.next([changed(port)]).with(facts);
      const most = { count: 0 };
      const done = await driver.settle(async () => {
        const answer = await driver.apply();
        most.count = Math.max(most.count, (await launchesOf(driver)).length);
        return answer;
      });
      expect(done.outcome).toEqual({ kind: 'done' });
      const after = await launchesOf(driver);
      expect(after).toHaveLength(1);
      expect(after).not.toEqual(before);
      expect(most.count).toBe(1);
    });
  });

  it('runs where its spec says, and else in a folder of its own', async () => {
    const folder = join(host.dataDir, 'somewhere');
    mkdirSync(folder);
    const here = resource({
      name: 'here',
      spec: { command: ['sh', '-c', 'pwd > here.txt; sleep 60'], cwd: folder },
    });
    const own = resource({ name: 'own', spec: { command: ['sh', '-c', 'touch mine; pwd; sleep 60'] } });
    await deployment([here, own], async (driver) => {
      expect((await driver.deploy()).outcome).toEqual({ kind: 'done' });
      expect(readFileSync(join(folder, 'here.txt'), 'utf8').trim()).toBe(folder);
      expect(host.names(`runs/${driver.target.deploymentId}/own/work`)).toEqual(['mine']);
    });
  });

  it('is refused where its folder is missing, and runs once it is there', async () => {
    const cwd = join(host.dataDir, 'later');
    await deployment([resource({ name: 'job', spec: { command: ['sleep', '60'], cwd } })], async (driver) => {
      const refused = await driver.deploy();
      expect(refused.outcome).toMatchObject({ kind: 'rejected', reason: 'NoSuchFolder' });
      expect(refused.outcome).toMatchObject({ message: expect.stringContaining(cwd) as string });
      expect(await launchesOf(driver)).toEqual([]);
      mkdirSync(cwd);
      expect((await driver.next().deploy()).outcome).toEqual({ kind: 'done' });
    });
  });

  it.each([
    [
      'exits',
      ['sh', '-c', 'echo first; echo "cannot read config" >&2; exit 3'],
      'exit code 3',
      'cannot read config',
    ],
    ['is killed', ['sh', '-c', 'kill -9 $$'], 'exit code 137 (SIGKILL)', null],
    ['is not there', ['no-such-program'], 'exit code 127', 'not found'],
    ['may not be run', ['/etc/passwd'], 'exit code 126', 'ermission denied'],
    ['is a word of the shell', ['exit', '0'], 'exit code 127', 'not found'],
    ['ends at once, content', ['true'], 'exit code 0', null],
  ])(
    'that %s fails its try with exit code and last line, and is not started again in it',
    async (_what, command, how, line) => {
      await deployment([resource({ name: 'job', spec: { command } })], async (driver) => {
        const answer = await driver.deploy();
        expect(answer.outcome).toMatchObject({ kind: 'rejected', reason: 'ProcessExited' });
        const { status, health, error } = statusOf(answer, 'job');
        expect({ status, health }).toEqual({ status: 'FAILED', health: 'UNHEALTHY' });
        expect(error?.message).toContain(how);
        if (line === null) expect(error?.detail).toBeNull();
        else expect(error?.detail).toContain(line);
        const records = host.names(`runs/${driver.target.deploymentId}/job/launches`);
        expect((await driver.deploy()).outcome.kind).toBe('rejected');
        expect(host.names(`runs/${driver.target.deploymentId}/job/launches`)).toEqual(records);

        await driver.next().apply();
        expect(host.names(`runs/${driver.target.deploymentId}/job/launches`)).not.toEqual(records);
      });
    },
  );

  it('that is never healthy fails its try after startSeconds, and is replaced in the next', async () => {
    const port = await freePort();
    const statusFile = join(host.dataDir, 'status-start');
    writeFileSync(statusFile, '503');
    const spec = {
      command: webProgram(port, { statusFile }),
      health: { ...webHealth(port), startSeconds: 2 },
    };
    await deployment([resource({ name: 'web', spec })], async (driver) => {
      const late = await driver.deploy();
      expect(late.outcome).toMatchObject({ kind: 'rejected', reason: 'StartTimeout' });
      expect(late.outcome).toMatchObject({ message: expect.stringContaining('within 2 s') as string });
      expect(statusOf(late, 'web')).toMatchObject({ status: 'UNHEALTHY', health: 'UNHEALTHY' });
      const before = await launchesOf(driver);
      expect(before).toHaveLength(1);
      writeFileSync(statusFile, '200');
      expect(statusOf(await driver.observe(), 'web')).toMatchObject({ status: 'READY', health: 'HEALTHY' });
      writeFileSync(statusFile, '503');
      driver.next().with({ instances: [] });
      await driver.apply();
      writeFileSync(statusFile, '200');
      expect((await driver.deploy()).outcome).toEqual({ kind: 'done' });
      expect(await launchesOf(driver)).not.toEqual(before);
    });
  });

  it('that dies later is told with its exit code, is not restarted by looking, and is by the next try', async () => {
    const port = await freePort();
    await deployment([web(port)], async (driver) => {
      await driver.deploy();
      await fetch(`http://127.0.0.1:${port}/exit/7`).catch(() => undefined);
      const dead = await driver.settle(() => driver.observe());
      expect(conditionOf(dead, 'Healthy')).toMatchObject({ status: 'FALSE', reason: 'ProcessExited' });
      expect(conditionOf(dead, 'Healthy')?.message).toMatch(/exit code 7 at .*last line: told to exit/);
      expect(statusOf(dead, 'web')).toMatchObject({ status: 'FAILED', error: { detail: 'told to exit' } });
      expect(dead.runtime?.endpoint).toBeNull();
      await driver.observe();
      expect(await launchesOf(driver)).toEqual([]);
      expect((await driver.next().deploy()).outcome).toEqual({ kind: 'done' });
      expect(await launchesOf(driver)).toHaveLength(1);
    });
  });

  it('that fails tells no secret with its last line', async () => {
    const env = [{ name: 'TOKEN', value: 'hunter2-hunter2', secret: true }];
    const job = resource({ name: 'job', spec: { command: ['sh', '-c', 'echo "bad token $TOKEN"; exit 1'] } });
    await deployment(
      [job],
      async (driver) => {
        const { outcome } = await driver.deploy();
        expect(outcome).toMatchObject({
          message: expect.stringContaining('last line: bad token ***') as string,
        });
        expect(JSON.stringify(driver.answers)).not.toContain('hunter2');
      },
      { env },
    );
  });

  it('that is unwell is not counted worse for being looked at often', async () => {
    const port = await freePort();
    const statusFile = join(host.dataDir, 'status-often');
    const health = { ...webHealth(port), intervalSeconds: 60, failureThreshold: 2 };
    const spec = { command: webProgram(port, { statusFile }), health };
    await deployment([resource({ name: 'web', spec })], async (driver) => {
      await driver.deploy();
      writeFileSync(statusFile, '500');
      for (let look = 0; look < 5; look += 1) {
        expect(statusOf(await driver.observe(), 'web')).toMatchObject({
          status: 'READY',
          health: 'DEGRADED',
        });
      }
      // As if a minute had passed since the failure that counted.
      const instances = driver.target.instances.map((instance) => ({
        ...instance,
        internal: { ...instance.internal, failedAt: '2020-01-01T00:00:00.000Z' },
      }));
      driver.with({ instances });
      expect(statusOf(await driver.observe(), 'web')).toMatchObject({ status: 'UNHEALTHY' });
    });
  });

  it('that is unwell is told degraded, then unhealthy, and healthy again by itself', async () => {
    const port = await freePort();
    const statusFile = join(host.dataDir, 'status-unwell');
    const spec = {
      command: webProgram(port, { statusFile }),
      health: { ...webHealth(port), failureThreshold: 3 },
    };
    await deployment([resource({ name: 'web', spec })], async (driver) => {
      await driver.deploy();
      const before = await launchesOf(driver);
      writeFileSync(statusFile, '500');
      const once = await driver.observe();
      expect(statusOf(once, 'web')).toMatchObject({ status: 'READY', health: 'DEGRADED' });
      expect(once.outcome).toEqual({ kind: 'inProgress', delaySeconds: 0.1 });
      // Looking more often than the interval counts no more failures.
      for (let look = 0; look < 5; look += 1) await driver.observe();
      const unhealthy = await driver.settle(() => driver.observe());
      expect(statusOf(unhealthy, 'web')).toMatchObject({ status: 'UNHEALTHY', health: 'UNHEALTHY' });
      expect(conditionOf(unhealthy, 'Healthy')).toMatchObject({
        status: 'FALSE',
        reason: 'HealthCheckFailed',
      });
      expect(conditionOf(unhealthy, 'Healthy')?.message).toContain('answered 500');
      writeFileSync(statusFile, '204');
      const well = await driver.observe();
      expect(statusOf(well, 'web')).toMatchObject({ status: 'READY', health: 'HEALTHY', error: null });
      expect(await launchesOf(driver)).toEqual(before);
    });
  });

  it('whose check hangs is asked no longer than the timeout', async () => {
    const silent = createServer(() => undefined);
    const port = await listenSomewhere(silent);
    const health = { http: { port }, timeoutSeconds: 0.2, startSeconds: 0.5, intervalSeconds: 0.1 };
    await deployment(
      [resource({ name: 'job', spec: { command: ['sleep', '60'], health } })],
      async (driver) => {
        const { outcome } = await driver.deploy();
        expect(outcome).toMatchObject({ kind: 'rejected', reason: 'StartTimeout' });
        expect(outcome).toMatchObject({
          message: expect.stringContaining('did not answer within 0.2 s') as string,
        });
      },
    );
    silent.closeAllConnections();
    silent.close();
  });
});

describe('the resources of a release', () => {
  const sleeper = (name: string, requires: string[] = [], spec = {}) =>
    resource({ name, requires, spec: { command: ['sleep', '300'], ...spec } });

  it('start level by level, and bind what the levels before them put out', async () => {
    const port = await freePort();
    const resources = [
      resource({
        name: 'top',
        requires: ['web', 'data'],
        spec: {
          command: [
            'sh',
            '-c',
            'echo "$@" "$URL"; exec sleep 300',
            'top',
            binding('web', 'port'),
            binding('web', 'ports.admin'),
            `$${binding('ke', 'pt')}`,
          ],
          env: { URL: `${binding('web', 'url')}/api` },
          cwd: binding('data', 'path'),
        },
      }),
      web(port, { requires: ['base'] }, { ports: { main: port, admin: 9 } }),
      sleeper('base'),
      resource({ name: 'data', serviceType: 'directory', lifecycle: 'FROZEN' }),
    ];
    await deployment(resources, async (driver) => {
      await driver.apply('FROZEN');
      const first = await driver.apply();
      expect(statusOf(first, 'base')).toMatchObject({ status: 'PROVISIONING' });
      expect(statusOf(first, 'web')).toMatchObject({ status: 'PENDING' });
      expect(statusOf(first, 'top')).toMatchObject({ status: 'PENDING' });
      expect(await launchesOf(driver)).toHaveLength(1);
      expect((await driver.deploy()).outcome).toEqual({ kind: 'done' });
      const starts = driver.answers.map(
        (answer) => answer.instances.filter(({ status }) => status !== 'PENDING').length,
      );
      expect(starts).toEqual([...starts].sort((a, b) => a - b));
      const out = readFileSync(
        join(host.dataDir, 'process/runs', driver.target.deploymentId, 'top/out'),
        'utf8',
      );
      expect(out.trim()).toBe(`${port} 9 ${binding('ke', 'pt')} http://127.0.0.1:${port}/api`);
    });
  });

  it('that are no longer in the release are stopped, and the others stay', async () => {
    await deployment([sleeper('stays'), sleeper('goes')], async (driver) => {
      await driver.deploy();
      const [, stays] = await launchesOf(driver);
      driver.next([sleeper('stays')]);
      const first = await driver.apply();
      expect(statusOf(first, 'goes')).toMatchObject({ status: 'DELETING' });
      const done = await driver.deploy();
      expect(done.outcome).toEqual({ kind: 'done' });
      expect(driver.answers.flatMap(({ instances }) => instances)).toContainEqual(
        expect.objectContaining({ name: 'goes', status: 'DELETED' }),
      );
      expect(await launchesOf(driver)).toEqual([stays]);
      expect(host.names(`runs/${driver.target.deploymentId}`)).toEqual(['stays']);
    });
  });

  it('are all refused, nothing touched, when one of them cannot be', async () => {
    await deployment([sleeper('one')], async (driver) => {
      await driver.deploy();
      const before = await launchesOf(driver);
      driver.next([
        sleeper('one', [], { env: { A: 'changed' } }),
        sleeper('two', ['one'], { cwd: binding('one', 'path') }),
      ]);
      const { outcome } = await driver.deploy();
      expect(outcome).toMatchObject({ kind: 'rejected', reason: 'InvalidBinding' });
      expect(outcome).toMatchObject({
        message: expect.stringContaining('`one` has no such output') as string,
      });
      expect(await launchesOf(driver)).toEqual(before);
    });
  });

  it('hold the next level where it is while one of them is replaced', async () => {
    const port = await freePort();
    const upper = sleeper('upper', ['web']);
    await deployment([web(port), upper], async (driver) => {
      await driver.deploy();
      const [kept] = await launchesOf(driver);
      driver.next([web(port, {}, { command: webProgram(port, { text: 'new' }) }), upper]);
      expect(statusOf(await driver.apply(), 'upper')).toMatchObject({ status: 'READY' });
      expect((await driver.deploy()).outcome).toEqual({ kind: 'done' });
      expect(await launchesOf(driver)).toContain(kept);
    });
  });
});

describe('a directory', () => {
  const data = (spec = {}) => resource({ name: 'data', serviceType: 'directory', lifecycle: 'FROZEN', spec });
  const writer = resource({
    name: 'writer',
    requires: ['data'],
    spec: { command: ['sh', '-c', 'echo kept >> log.txt; exec sleep 300'], cwd: binding('data', 'path') },
  });

  it('keeps its path and content over releases and undeploying, until it is removed', async () => {
    await deployment([data({ mode: '0750' }), writer], async (driver) => {
      const frozen = await driver.apply('FROZEN');
      const path = statusOf(frozen, 'data').outputs['path'] ?? '';
      await driver.deploy();
      await driver.settle(() => driver.remove('LIVE'));
      expect(driver.target.recorded.runtimeResourceId).toBe(driver.target.deploymentId);
      expect(readFileSync(join(path, 'log.txt'), 'utf8')).toBe('kept\n');
      driver.next([data({ mode: '0700' }), writer]);
      expect(statusOf(await driver.apply('FROZEN'), 'data').outputs['path']).toBe(path);
      await driver.deploy();
      expect(readFileSync(join(path, 'log.txt'), 'utf8')).toBe('kept\nkept\n');
      expect((await driver.remove('FROZEN')).outcome).toMatchObject({
        kind: 'blocked',
        reason: 'StillRunning',
      });
      await driver.settle(() => driver.remove('LIVE'));
      expect((await driver.remove('FROZEN')).outcome).toEqual({ kind: 'done' });
      expect(host.names(`directories/${driver.target.deploymentId}`)).toEqual([]);
    });
  });

  it('must be there before what requires it', async () => {
    await deployment([data(), writer], async (driver) => {
      expect((await driver.apply('LIVE')).outcome).toMatchObject({
        kind: 'blocked',
        reason: 'DirectoryMissing',
      });
      expect(await launchesOf(driver)).toEqual([]);
    });
  });

  it('that vanished is told', async () => {
    await deployment([data()], async (driver) => {
      const path = statusOf(await driver.apply('FROZEN'), 'data').outputs['path'] ?? '';
      rmSync(path, { recursive: true });
      const answer = await driver.observe();
      expect(conditionOf(answer, 'Healthy')).toMatchObject({ status: 'FALSE', reason: 'DirectoryMissing' });
    });
  });

  it('is neither made nor emptied through a symlink', async () => {
    const outside = join(host.dataDir, 'outside');
    mkdirSync(outside);
    writeFileSync(join(outside, 'precious'), '');
    await deployment([data()], async (driver) => {
      const folder = join(host.dataDir, 'process/directories', driver.target.deploymentId);
      mkdirSync(join(host.dataDir, 'process/directories'), { recursive: true });
      symlinkSync(outside, folder);
      expect((await driver.apply('FROZEN')).outcome).toMatchObject({ kind: 'rejected', reason: 'NoFolder' });
      expect((await driver.remove('FROZEN')).outcome).toEqual({ kind: 'done' });
      await driver.next().apply('FROZEN');
      symlinkSync(outside, join(folder, 'data/data/way-out'));
      expect((await driver.remove('FROZEN')).outcome).toEqual({ kind: 'done' });
      expect(readFileSync(join(outside, 'precious'), 'utf8')).toBe('');
    });
  });
});
