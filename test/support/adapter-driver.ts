import { setTimeout as delay } from 'node:timers/promises';

import type {
  Adapter,
  AdapterAnswer,
  AdapterMemory,
  AdapterTarget,
  InstanceReport,
  RecordedInstance,
} from '../../src/adapters/contract.js';
import { newId } from '../../src/kernel/ids.js';
import type { ReleaseResource } from '../../src/releases/index.js';

export const NOTHING_RECORDED: AdapterMemory = {
  runtimeId: null,
  runtimeName: null,
  runtimeResourceId: null,
  runtimeNamespace: null,
  actorSubject: null,
  appProtocol: null,
  lastSyncedEnvHash: null,
  lastSyncedSecretNames: [],
  accessGranted: false,
};

/** A deployment as an adapter sees it, on a runtime of that type. */
export function adapterTarget(
  type: string,
  resources: readonly ReleaseResource[],
  facts: Partial<AdapterTarget> = {},
): AdapterTarget {
  return {
    deploymentId: newId('DEPLOYMENT'),
    namespace: 'default',
    name: 'shop',
    app: 'shop',
    labels: {},
    generation: 1,
    attempt: 'first',
    runtime: {
      id: newId('RUNTIME'),
      namespace: 'default',
      name: 'here',
      type,
      environment: null,
      config: {},
      generation: 1,
    },
    release: { id: newId('RELEASE'), app: 'shop', label: '1.0', resources },
    env: [],
    runtimeConfig: {},
    recorded: NOTHING_RECORDED,
    instances: [],
    fence: 1n,
    ...facts,
  };
}

export function resource(facts: Partial<ReleaseResource> & Pick<ReleaseResource, 'name'>): ReleaseResource {
  return { serviceType: 'process', spec: {}, requires: [], lifecycle: 'LIVE', reschedule: 'NEVER', ...facts };
}

/** Calls an adapter as the engine does: remembers what it answers, and asks again when it says so. */
export class AdapterDriver {
  readonly adapter: Adapter;
  target: AdapterTarget;
  /** Every answer so far, oldest first. */
  readonly answers: AdapterAnswer[] = [];

  constructor(adapter: Adapter, target: AdapterTarget) {
    this.adapter = adapter;
    this.target = target;
  }

  with(facts: Partial<AdapterTarget>): this {
    this.target = { ...this.target, ...facts };
    return this;
  }

  /** A new release, or the same one, in a new try of a new lease. */
  next(resources?: readonly ReleaseResource[]): this {
    const { release, generation, fence } = this.target;
    return this.with({
      attempt: `attempt-${fence + 1n}`,
      fence: fence + 1n,
      ...(resources ? { generation: generation + 1, release: { ...release!, resources } } : {}), // tests begin with one
    });
  }

  async apply(scope: 'FROZEN' | 'LIVE' = 'LIVE', signal = never()): Promise<AdapterAnswer> {
    return this.remember(await this.adapter.apply(this.target, scope, signal));
  }

  async observe(signal = never()): Promise<AdapterAnswer> {
    return this.remember(await this.adapter.observe(this.target, signal));
  }

  async remove(scope: 'FROZEN' | 'LIVE' = 'LIVE', signal = never()): Promise<AdapterAnswer> {
    return this.remember(await this.adapter.remove(this.target, scope, signal));
  }

  /** FROZEN, then LIVE, until either is refused or both are done. */
  async deploy(): Promise<AdapterAnswer> {
    const frozen = await this.settle(() => this.apply('FROZEN'));
    return frozen.outcome.kind === 'done' ? this.settle(() => this.apply('LIVE')) : frozen;
  }

  async settle(call: () => Promise<AdapterAnswer>, withinMs = 20_000): Promise<AdapterAnswer> {
    const deadline = performance.now() + withinMs;
    for (;;) {
      const answer = await call();
      const { outcome } = answer;
      if (outcome.kind !== 'inProgress') return answer;
      if (performance.now() > deadline) {
        throw new Error(`still in progress after ${withinMs} ms: ${JSON.stringify(answer)}`);
      }
      await delay(Math.min(outcome.delaySeconds, 0.03) * 1000);
    }
  }

  private remember(answer: AdapterAnswer): AdapterAnswer {
    this.answers.push(answer);
    const instances = new Map(this.target.instances.map((instance) => [instance.name, instance]));
    for (const { name, internal } of answer.instances) {
      instances.set(name, recorded(instances.get(name), name, internal));
    }
    this.target = {
      ...this.target,
      recorded: { ...this.target.recorded, ...answer.internal },
      instances: [...instances.values()],
    };
    return answer;
  }
}

function recorded(
  known: RecordedInstance | undefined,
  name: string,
  internal: InstanceReport['internal'],
): RecordedInstance {
  return { name, assignment: known?.assignment ?? 1, internal };
}

export function never(): AbortSignal {
  return new AbortController().signal;
}

export function statusOf(answer: AdapterAnswer, name: string): InstanceReport {
  const report = answer.instances.find((instance) => instance.name === name);
  if (!report) throw new Error(`no report about ${name} in ${JSON.stringify(answer)}`);
  return report;
}

export function conditionOf(answer: AdapterAnswer, type: string) {
  return answer.conditions.find((condition) => condition.type === type);
}
