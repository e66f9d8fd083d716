import { afterAll, describe, expect, it } from 'vitest';

import type { Adapter, AdapterAnswer, AdapterTarget } from '../../src/adapters/contract.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { AdapterDriver, resource } from './adapter-driver.js';

/** What the contract's tests need of an adapter, and of the world that it acts on. */
export interface AdapterSubject {
  /** A server's adapter; another call gives that of a server started later. */
  adapter(): Adapter;
  /** A deployment that becomes ready, with a secret value in its environment. */
  target(): AdapterTarget;
  /** A configuration of the same runtime that points elsewhere. */
  readonly otherConfig: JsonObject;
  /** What is there, told so that two worlds can be compared: which programs, with their ids. Empty when nothing is. */
  world(target: AdapterTarget): Promise<readonly string[]>;
  /** How many things are there when the target is deployed. */
  readonly size: number;
  /** Ends everything; gives how many things had been left. */
  end(): Promise<number>;
}

const SCOPES = ['FROZEN', 'LIVE'] as const;
const SIGNAL_CHECKS_MAX = 200;

/** Every adapter passes this. */
export function describeAdapterContract(name: string, subject: AdapterSubject): void {
  describe(`the adapter contract: ${name}`, () => {
    afterAll(async () => {
      expect(await subject.end()).toBe(0);
    });

    const deployed = async (target = subject.target()): Promise<AdapterDriver> => {
      const driver = new AdapterDriver(subject.adapter(), target);
      expect((await driver.deploy()).outcome).toEqual({ kind: 'done' });
      expect(await subject.world(target)).toHaveLength(subject.size);
      return driver;
    };
    const removed = async (driver: AdapterDriver): Promise<void> => {
      for (const scope of ['LIVE', 'FROZEN'] as const) {
        const { outcome } = await driver.settle(() => driver.remove(scope));
        expect(outcome).toEqual({ kind: 'done' });
      }
      expect(await subject.world(driver.target)).toEqual([]);
    };

    it('names a service type that it does not know, and the resource', () => {
      const verdict = subject.adapter().supports(resource({ name: 'cache', serviceType: 'no-such-type' }));
      expect(verdict).toMatchObject({ ok: false, reason: 'UnknownServiceType' });
      expect(verdict).toMatchObject({ message: expect.stringMatching(/`cache`.*`no-such-type`/) as string });
    });

    it('refuses to apply a resource that it does not support, and touches nothing', async () => {
      const target = subject.target();
      const resources = [
        ...target.release!.resources,
        resource({ name: 'cache', serviceType: 'no-such-type' }),
      ]; // has one
      const driver = new AdapterDriver(subject.adapter(), {
        ...target,
        release: { ...target.release!, resources },
      });
      for (const scope of SCOPES) {
        expect((await driver.apply(scope)).outcome).toMatchObject({
          kind: 'rejected',
          reason: 'UnknownServiceType',
        });
      }
      expect(await subject.world(target)).toEqual([]);
    });

    it('takes a configuration of its own making again, and no unknown field', () => {
      const { configSchema } = subject.adapter();
      const config = configSchema.parse({});
      expect(configSchema.parse(config)).toEqual(config);
      expect(configSchema.safeParse({ unknownField: 1 }).success).toBe(false);
    });

    it('makes the same world when it is applied again', async () => {
      const driver = await deployed();
      const before = await subject.world(driver.target);
      for (const scope of [...SCOPES, ...SCOPES]) {
        expect((await driver.apply(scope)).outcome).toEqual({ kind: 'done' });
      }
      expect(await subject.world(driver.target)).toEqual(before);
      await removed(driver);
    });

    it('goes on from wherever a call was cut off', async () => {
      let cut = 0;
      for (let at = 1; at <= SIGNAL_CHECKS_MAX; at += 1) {
        const target = subject.target();
        const first = new AdapterDriver(subject.adapter(), target);
        let wasCut = false;
        for (const scope of SCOPES) {
          // What a call that was cut off would have answered is lost: the next one is told what the first was.
          const answer = await cutOff(at, (signal) => first.adapter.apply(target, scope, signal));
          wasCut ||= answer === undefined;
        }
        const later = new AdapterDriver(subject.adapter(), { ...target, fence: target.fence + 1n });
        expect((await later.deploy()).outcome).toEqual({ kind: 'done' });
        expect(await subject.world(target)).toHaveLength(subject.size);
        for (const scope of SCOPES) {
          const { fence } = later.target;
          await cutOff(at, (signal) =>
            subject.adapter().remove({ ...later.target, fence: fence + 1n }, scope, signal),
          );
        }
        await removed(later.with({ fence: later.target.fence + 2n }));
        if (!wasCut) break;
        cut += 1;
      }
      expect(cut).toBeGreaterThan(0);
      expect(cut).toBeLessThan(SIGNAL_CHECKS_MAX);
    });

    it('observes without changing anything, before and while and after something is there', async () => {
      const driver = new AdapterDriver(subject.adapter(), subject.target());
      await driver.observe();
      expect(await subject.world(driver.target)).toEqual([]);
      await driver.deploy();
      const before = await subject.world(driver.target);
      for (let round = 0; round < 3; round += 1) {
        const answer = await driver.observe();
        expect(answer.outcome).toEqual({ kind: 'done' });
        expect(answer.conditions).toContainEqual(
          expect.objectContaining({ type: 'Healthy', status: 'TRUE' }),
        );
        expect(answer.instances.map(({ status }) => status)).toEqual(answer.instances.map(() => 'READY'));
      }
      expect(await subject.world(driver.target)).toEqual(before);
      await removed(driver);
      await driver.observe();
      expect(await subject.world(driver.target)).toEqual([]);
    });

    it('removes what is not there any more, or never was, with success', async () => {
      const driver = await deployed();
      await removed(driver);
      await removed(driver);
      await removed(new AdapterDriver(subject.adapter(), subject.target()));
    });

    it('removes by what was recorded after the configuration changed, with the release gone', async () => {
      const driver = await deployed();
      const { runtime } = driver.target;
      driver.with({ release: null, runtimeConfig: {}, runtime: { ...runtime, config: subject.otherConfig } });
      await removed(driver);
    });

    it('leaves a deployment alone whose neighbor is removed', async () => {
      const [one, other] = [await deployed(), await deployed()];
      const before = await subject.world(other.target);
      await removed(one);
      expect(await subject.world(other.target)).toEqual(before);
      await removed(other);
    });

    it('does nothing once it is aborted', async () => {
      const driver = await deployed();
      const before = await subject.world(driver.target);
      const { adapter, target } = driver;
      for (const call of [
        () => adapter.apply(target, 'LIVE', AbortSignal.abort()),
        () => adapter.apply(target, 'FROZEN', AbortSignal.abort()),
        () => adapter.observe(target, AbortSignal.abort()),
        () => adapter.remove(target, 'LIVE', AbortSignal.abort()),
        () => adapter.remove(target, 'FROZEN', AbortSignal.abort()),
      ]) {
        await expect(call()).rejects.toMatchObject({ name: 'AbortError' });
      }
      expect(await subject.world(driver.target)).toEqual(before);
      await removed(driver);
    });

    it('tells no secret', async () => {
      const driver = await deployed();
      await driver.observe();
      await removed(driver);
      const secrets = driver.target.env.filter(({ secret }) => secret).map(({ value }) => value);
      expect(secrets).not.toEqual([]);
      const told = JSON.stringify(driver.answers.map(withoutSensitive));
      for (const secret of secrets) expect(told).not.toContain(secret);
    });

    it('is handed what it remembered, and forgets it when everything is gone', async () => {
      const driver = await deployed();
      await removed(driver);
      expect(driver.target.recorded).toMatchObject({ runtimeId: null, runtimeResourceId: null });
    });
  });
}

function withoutSensitive(answer: AdapterAnswer): unknown {
  return { ...answer, instances: answer.instances.map((report) => ({ ...report, sensitiveOutputs: {} })) };
}

/** The answer, or undefined when the call was cut off: at the `at`-th time that it looks at its signal. */
async function cutOff(
  at: number,
  call: (signal: AbortSignal) => Promise<AdapterAnswer>,
): Promise<AdapterAnswer | undefined> {
  const controller = new AbortController();
  const signal = controller.signal;
  let looks = 0;
  signal.throwIfAborted = () => {
    looks += 1;
    if (looks === at) controller.abort();
    if (signal.aborted) throw signal.reason;
  };
  try {
    return await call(signal);
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
}
