import { mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { Adapter, AdapterTarget } from '../../../src/adapters/contract.js';
import { newId } from '../../../src/kernel/ids.js';
import { AdapterDriver, adapterTarget, never, resource } from '../../support/adapter-driver.js';
import { programHost, type ProgramHost } from '../../support/programs.js';

let host: ProgramHost;
let adapter: Adapter;
let one: AdapterDriver;
let other: AdapterDriver;

const resources = [
  resource({ name: 'data', serviceType: 'directory', lifecycle: 'FROZEN' }),
  resource({ name: 'job', spec: { command: ['sleep', '300'], ports: { web: 8080 } } }),
];

beforeAll(async () => {
  host = programHost();
  adapter = host.adapter();
  const target = adapterTarget('process', resources, { name: 'first', namespace: 'team' });
  one = new AdapterDriver(adapter, target);
  other = new AdapterDriver(
    adapter,
    adapterTarget('process', resources, { name: 'second', runtime: target.runtime }),
  );
  for (const driver of [one, other]) expect((await driver.deploy()).outcome).toEqual({ kind: 'done' });
});

afterAll(async () => {
  expect(await host.end()).toBe(0);
});

async function discovered(
  known: readonly AdapterTarget[],
  runtimes = known.map(({ runtime }) => runtime.id),
) {
  const deployments = new Set(known.map(({ deploymentId }) => deploymentId));
  return adapter.discover?.(one.target.runtime, { deployments, runtimes: new Set(runtimes) }, never());
}

describe('discovering programs', () => {
  it('shows what no known deployment owns, as it was called, and not what one does', async () => {
    expect(await discovered([one.target, other.target])).toEqual([]);
    const found = await discovered([other.target]);
    expect(found).toHaveLength(1);
    expect(found?.[0]).toMatchObject({
      resourceId: one.target.deploymentId,
      name: 'first',
      namespace: 'team',
      app: 'shop',
      runtime: { resourceId: one.target.deploymentId, endpoint: 'tcp://127.0.0.1:8080' },
      internal: { runtimeResourceId: one.target.deploymentId, runtimeNamespace: host.hostName },
      instances: [
        { name: 'job', lifecycle: 'LIVE', status: 'READY' },
        { name: 'data', lifecycle: 'FROZEN', status: 'READY' },
      ],
    });
    expect(await discovered([other.target])).toEqual(found);
  });

  it('does not show what was made for another known runtime', async () => {
    const elsewhere = { ...one.target.runtime, id: newId('RUNTIME') };
    const ask = (runtimes: string[]) =>
      adapter.discover?.(elsewhere, { deployments: new Set(), runtimes: new Set(runtimes) }, never());
    expect(await ask([elsewhere.id, one.target.runtime.id])).toEqual([]);
    expect(await ask([elsewhere.id])).toHaveLength(2);
  });

  it('does not see programs of another server’s folder', async () => {
    const neighbor = programHost();
    const runtime = one.target.runtime;
    const known = { deployments: new Set<string>(), runtimes: new Set<string>() };
    expect(await neighbor.adapter().discover?.(runtime, known, never())).toEqual([]);
    expect(await neighbor.end()).toBe(0);
  });

  it('finds a program by its mark alone, and what it found can be taken away by that', async () => {
    rmSync(join(host.dataDir, 'process/runs', one.target.deploymentId), { recursive: true });
    const found = (await discovered([other.target]))?.[0];
    expect(found).toMatchObject({ resourceId: one.target.deploymentId, name: null });
    const adopted = new AdapterDriver(adapter, {
      ...adapterTarget('process', []),
      release: null,
      fence: 9n,
      recorded: { ...one.target.recorded, ...found?.internal },
    });
    expect((await adopted.settle(() => adopted.remove('LIVE'))).outcome).toEqual({ kind: 'done' });
    expect(await discovered([other.target])).toMatchObject([
      { instances: [{ name: 'data', lifecycle: 'FROZEN' }] },
    ]);
    expect((await adopted.remove('FROZEN')).outcome).toEqual({ kind: 'done' });
    expect(await discovered([other.target])).toEqual([]);
  });

  it('clears what a deletion that was cut off left, and old leases of what is gone', async () => {
    const base = join(host.dataDir, 'process');
    mkdirSync(join(base, 'trash/abc'), { recursive: true });
    writeFileSync(join(base, 'trash/abc/file'), '');
    const old = join(base, 'fences', newId('DEPLOYMENT'));
    mkdirSync(old);
    const longAgo = Date.now() / 1000 - 8 * 24 * 3600;
    utimesSync(old, longAgo, longAgo);
    utimesSync(join(base, 'fences', other.target.deploymentId), longAgo, longAgo);
    await discovered([other.target]);
    expect(readdirSync(join(base, 'trash'))).toEqual([]);
    // The one that was just taken away still keeps late servers out.
    expect(readdirSync(join(base, 'fences')).sort()).toEqual(
      [one.target.deploymentId, other.target.deploymentId].sort(),
    );
    await other.settle(() => other.remove('LIVE'));
    await other.remove('FROZEN');
  });
});

describe('a runtime’s host', () => {
  it('is this one when none is named, and the only one that acts', async () => {
    expect(adapter.configSchema.parse({})).toEqual({ host: host.hostName });
    expect(adapter.host?.({ host: 'elsewhere' })).toBe('elsewhere');
    const runtime = { ...one.target.runtime, config: { host: 'elsewhere' } };
    const there = new AdapterDriver(adapter, adapterTarget('process', resources, { runtime }));
    for (const call of [() => there.apply(), () => there.observe(), () => there.remove()]) {
      expect((await call()).outcome).toMatchObject({ kind: 'blocked', reason: 'OtherHost' });
    }
    expect(host.names(`fences/${there.target.deploymentId}`)).toEqual([]);
  });

  it('is named by preparing, before anything is there', async () => {
    const target = adapterTarget('process', resources);
    const answer = await adapter.prepare?.(target, never());
    expect(answer).toMatchObject({
      outcome: { kind: 'done' },
      internal: { runtimeResourceId: target.deploymentId, runtimeNamespace: host.hostName },
    });
    expect(host.names(`runs/${target.deploymentId}`)).toEqual([]);
  });
});
