import { describe, expect, it } from 'vitest';

import { noopAdapter, type NoopBehavior, type NoopCall } from '../../../src/adapters/noop.js';
import { systemClock } from '../../../src/kernel/clock.js';
import {
  AdapterDriver,
  adapterTarget,
  conditionOf,
  never,
  resource,
  statusOf,
} from '../../support/adapter-driver.js';
import { describeAdapterContract } from '../../support/adapter-contract.js';
import { ManualClock } from '../../support/manual-clock.js';

const api = resource({ name: 'api', serviceType: 'noop', spec: { outputs: { url: 'http://api' } } });
const data = resource({ name: 'data', serviceType: 'noop', lifecycle: 'FROZEN' });

describeAdapterContract('noop', {
  adapter: () => noopAdapter({ clock: systemClock }),
  target: () =>
    adapterTarget('noop', [api, data], { env: [{ name: 'KEY', value: 'a secret value', secret: true }] }),
  otherConfig: {},
  world: () => Promise.resolve([]),
  size: 0,
  end: () => Promise.resolve(0),
});

describe('the noop adapter', () => {
  it('is done at once, with the outputs of its spec', async () => {
    const driver = new AdapterDriver(noopAdapter({ clock: systemClock }), adapterTarget('noop', [data, api]));
    expect(await driver.deploy()).toMatchObject({ outcome: { kind: 'done' } });
    expect(statusOf(await driver.observe(), 'api')).toMatchObject({
      status: 'READY',
      health: 'HEALTHY',
      outputs: { url: 'http://api' },
    });
  });

  it('takes as long as the runtime configuration says, however often it is asked', async () => {
    const clock = new ManualClock();
    const runtimeConfig = { apply: { seconds: 5, delaySeconds: 2 } };
    const driver = new AdapterDriver(noopAdapter({ clock }), adapterTarget('noop', [api], { runtimeConfig }));
    expect((await driver.apply()).outcome).toEqual({ kind: 'inProgress', delaySeconds: 2 });
    clock.advance(4_999);
    expect((await driver.apply()).outcome.kind).toBe('inProgress');
    clock.advance(1);
    expect((await driver.apply()).outcome.kind).toBe('done');
    driver.next();
    expect((await driver.apply()).outcome.kind).toBe('inProgress');
  });

  it.each(['blocked', 'rejected'] as const)(
    'answers %s with the reason that it was given',
    async (outcome) => {
      const runtimeConfig = { apply: { outcome, reason: 'NoRoom', message: 'full' } };
      const driver = new AdapterDriver(
        noopAdapter({ clock: systemClock }),
        adapterTarget('noop', [api], { runtimeConfig }),
      );
      const answer = await driver.apply();
      expect(answer.outcome).toEqual({ kind: outcome, reason: 'NoRoom', message: 'full' });
      expect(conditionOf(answer, 'Ready')).toMatchObject({ status: 'FALSE', reason: 'NoRoom' });
    },
  );

  it('refuses a runtime configuration that it does not understand, and names the field', async () => {
    const runtimeConfig = { apply: { outcome: 'maybe' } };
    const target = adapterTarget('noop', [api], { runtimeConfig });
    const { outcome } = await new AdapterDriver(noopAdapter({ clock: systemClock }), target).apply();
    expect(outcome).toMatchObject({ kind: 'rejected', reason: 'InvalidConfig' });
    expect(outcome).toMatchObject({
      message: expect.stringContaining('runtimeConfig.apply.outcome') as string,
    });
  });

  it('throws, hangs until it is aborted, and is unwell, call by call, as it is steered', async () => {
    const behaviors: Partial<Record<NoopCall, NoopBehavior>> = {};
    const adapter = noopAdapter({ clock: systemClock, steer: (call) => behaviors[call] });
    const driver = new AdapterDriver(adapter, adapterTarget('noop', [api]));

    behaviors.apply = { outcome: 'fail', message: 'no route' };
    await expect(driver.apply()).rejects.toThrow('no route');

    behaviors.apply = { outcome: 'hang' };
    const controller = new AbortController();
    const hanging = driver.apply('LIVE', controller.signal);
    controller.abort();
    await expect(hanging).rejects.toMatchObject({ name: 'AbortError' });

    behaviors.observe = { outcome: 'unhealthy', reason: 'Sick', message: 'it coughs' };
    const sick = await driver.observe();
    expect(statusOf(sick, 'api')).toMatchObject({ status: 'UNHEALTHY', error: { code: 'Sick' } });
    expect(conditionOf(sick, 'Healthy')).toMatchObject({
      status: 'FALSE',
      reason: 'Sick',
      message: 'it coughs',
    });

    behaviors.observe = {};
    expect(conditionOf(await driver.observe(), 'Healthy')).toMatchObject({ status: 'TRUE' });
  });

  it('removes over several calls when told to, the release gone meanwhile', async () => {
    const clock = new ManualClock();
    const adapter = noopAdapter({ clock, steer: (call) => (call === 'remove' ? { seconds: 3 } : undefined) });
    const driver = new AdapterDriver(adapter, adapterTarget('noop', [api]));
    await driver.apply();
    driver.with({ release: null });
    expect(await driver.remove()).toMatchObject({
      outcome: { kind: 'inProgress' },
      instances: [{ status: 'DELETING' }],
    });
    clock.advance(3_000);
    expect(await driver.remove()).toMatchObject({
      outcome: { kind: 'done' },
      instances: [{ status: 'DELETED' }],
    });
  });

  it('shows the workloads of its world that nobody knows', async () => {
    const workload = (resourceId: string) => ({
      resourceId,
      name: resourceId,
      namespace: null,
      app: null,
      runtime: { id: null, name: null, resourceId, endpoint: null },
      environmentInfo: {
        provider: null,
        account: null,
        region: null,
        location: null,
        hostname: null,
        os: null,
        arch: null,
      },
      internal: {},
      instances: [],
    });
    const adapter = noopAdapter({
      clock: systemClock,
      workloads: () => [workload('ours'), workload('stray')],
    });
    const { runtime } = adapterTarget('noop', []);
    const known = { deployments: new Set(['ours']), runtimes: new Set([runtime.id]) };
    const found = await adapter.discover?.(runtime, known, never());
    expect(found?.map(({ resourceId }) => resourceId)).toEqual(['stray']);
  });
});
