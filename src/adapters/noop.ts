import { z } from 'zod';

import type { Clock } from '../kernel/clock.js';
import { reasonSchema, textSchema } from '../kernel/text.js';
import { validated } from '../kernel/validate.js';
import type { ReleaseResource, ResourceLifecycle } from '../releases/index.js';
import {
  answer,
  blocked,
  condition,
  DONE,
  inProgress,
  instanceReport,
  NOTHING_RUNS,
  OK,
  rejected,
  unfit,
} from './answers.js';
import type {
  Adapter,
  AdapterAnswer,
  AdapterTarget,
  DiscoveredWorkload,
  InstanceReport,
  RuntimeSnapshot,
  Verdict,
} from './contract.js';

/** How one kind of call goes. Everything has a default: `{}` is done at once. */
const behaviorSchema = z.strictObject({
  /**
   * `done`, after `seconds` of `inProgress`; `blocked` and `rejected` with `reason` and `message`; `fail` throws, as a network
   * would; `hang` answers only when it is aborted; `unhealthy` is done, and unwell.
   */
  outcome: z.enum(['done', 'blocked', 'rejected', 'fail', 'hang', 'unhealthy']).default('done'),
  /** Counted from the first call of the try. */
  seconds: z.number().min(0).max(86_400).default(0),
  /** Between two looks while it is in progress. */
  delaySeconds: z.number().min(0.01).max(3600).default(1),
  reason: reasonSchema.default('AsConfigured'),
  message: textSchema(4096).default('The runtime configuration asks for this.'),
});
export type NoopBehavior = z.input<typeof behaviorSchema>;

/** A deployment's `runtimeConfig` on a runtime of type `noop`. */
const trialSchema = z.strictObject({
  apply: behaviorSchema.prefault({}),
  observe: behaviorSchema.prefault({}),
  remove: behaviorSchema.prefault({}),
});

const specSchema = z.strictObject({
  /** What resources that require this one could bind. */
  outputs: z.record(z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/), textSchema(1024)).default({}),
});

export type NoopCall = 'apply' | 'observe' | 'remove';

export interface NoopAdapterOptions {
  readonly clock: Clock;
  /** Wins over the runtime configuration when it gives something: tests drive every outcome by it. */
  readonly steer?: (call: NoopCall, target: AdapterTarget) => NoopBehavior | undefined;
  /** What its world holds that nobody may know. Absent: nothing. */
  readonly workloads?: (runtime: RuntimeSnapshot) => readonly DiscoveredWorkload[];
}

/**
 * Runs nothing and says that it does: for trying releases, rollouts and the engine itself. Takes the service type `noop`.
 * It keeps no state of its own; when a try began stands in the instances' internal facts.
 */
export function noopAdapter({ clock, steer, workloads }: NoopAdapterOptions): Adapter {
  const play = async (
    call: NoopCall,
    target: AdapterTarget,
    signal: AbortSignal,
    facts: (state: Played) => Partial<AdapterAnswer>,
  ): Promise<AdapterAnswer> => {
    signal.throwIfAborted();
    const given = steer?.(call, target);
    const config = validated(trialSchema, target.runtimeConfig, ['runtimeConfig']);
    if (!config.done && given === undefined && call === 'apply') {
      return answer(rejected('InvalidConfig', config.failure.message));
    }
    const behavior = behaviorSchema.parse(given ?? (config.done ? config.value[call] : {}));
    if (behavior.outcome === 'hang') await aborted(signal);
    if (behavior.outcome === 'fail') throw new Error(behavior.message);
    const { reason, message, outcome } = behavior;
    if (outcome === 'blocked') return answer(blocked(reason, message));
    if (outcome === 'rejected') return answer(rejected(reason, message));
    const since = sinceOf(target, call) ?? clock.now().toISOString();
    const ready = clock.now().getTime() - Date.parse(since) >= behavior.seconds * 1000;
    const state = { call, since, ready, unwell: outcome === 'unhealthy' ? { reason, message } : null };
    return answer(ready ? DONE : inProgress(behavior.delaySeconds), facts(state));
  };
  return {
    type: 'noop',
    configSchema: z.strictObject({}),
    supports,
    apply: (target, scope, signal) => {
      const resources = resourcesOf(target).filter(({ lifecycle }) => lifecycle === scope);
      const refusal = resourcesOf(target)
        .map(supports)
        .find((verdict) => !verdict.ok);
      if (refusal) return Promise.resolve(answer(rejected(refusal.reason, refusal.message)));
      if (target.release === null) {
        return Promise.resolve(answer(rejected('ReleaseMissing', 'there is no release to run')));
      }
      return play('apply', target, signal, (state) => observed(target, resources, state));
    },
    observe: (target, signal) =>
      play('observe', target, signal, (state) => observed(target, resourcesOf(target), state)),
    remove: (target, scope, signal) =>
      play('remove', target, signal, (state) => removed(target, scope, state)),
    discover: (runtime, known, signal) => {
      signal.throwIfAborted();
      const all = workloads?.(runtime) ?? [];
      return Promise.resolve(all.filter(({ resourceId }) => !known.deployments.has(resourceId)));
    },
  };
}

interface Played {
  readonly call: NoopCall;
  readonly since: string;
  readonly ready: boolean;
  readonly unwell: { readonly reason: string; readonly message: string } | null;
}

function supports({ name, serviceType, spec }: ReleaseResource): Verdict {
  if (serviceType !== 'noop') {
    return unfit(
      'UnknownServiceType',
      `\`${name}\` has service type \`${serviceType}\`; runtimes of type \`noop\` take \`noop\``,
    );
  }
  const parsed = validated(specSchema, spec, [name, 'spec']);
  return parsed.done ? OK : unfit('InvalidSpec', parsed.failure.message);
}

function resourcesOf({ release }: AdapterTarget): readonly ReleaseResource[] {
  return release?.resources ?? [];
}

function observed(
  target: AdapterTarget,
  resources: readonly ReleaseResource[],
  { call, since, ready, unwell }: Played,
): Partial<AdapterAnswer> {
  const error = unwell && { code: unwell.reason, message: unwell.message, detail: null };
  const instances = resources.map((resource) =>
    report(resource, {
      status: !ready ? 'PROVISIONING' : error ? 'UNHEALTHY' : 'READY',
      health: !ready ? 'UNKNOWN' : error ? 'UNHEALTHY' : 'HEALTHY',
      outputs: ready ? (validated(specSchema, resource.spec).done ? outputsOf(resource) : {}) : {},
      error: ready ? error : null,
      internal: { call, since, attempt: target.attempt },
    }),
  );
  const facts = { id: target.runtime.id, name: target.name, resourceId: target.deploymentId, endpoint: null };
  return {
    instances,
    runtime: facts,
    internal: {
      runtimeId: target.runtime.id,
      runtimeName: target.runtime.name,
      runtimeResourceId: target.deploymentId,
    },
    conditions: !ready
      ? [condition('Ready', 'FALSE', 'Starting'), condition('Healthy', 'UNKNOWN', 'Starting')]
      : unwell
        ? [
            condition('Ready', 'FALSE', unwell.reason, unwell.message),
            condition('Healthy', 'FALSE', unwell.reason, unwell.message),
          ]
        : [condition('Ready', 'TRUE', 'Ready'), condition('Healthy', 'TRUE', 'Healthy')],
  };
}

/** What was recorded goes, and what the release names; without either, there is nothing to wait for. */
function removed(
  target: AdapterTarget,
  scope: ResourceLifecycle,
  { call, since, ready }: Played,
): Partial<AdapterAnswer> {
  const named = resourcesOf(target);
  const unnamed = target.instances
    .filter(({ name }) => !named.some((resource) => resource.name === name))
    .map(({ name }): ReleaseResource => {
      return { name, serviceType: 'noop', spec: {}, requires: [], lifecycle: scope, reschedule: 'NEVER' };
    });
  const instances = [...named.filter(({ lifecycle }) => lifecycle === scope), ...unnamed].map((resource) =>
    report(resource, {
      status: ready ? 'DELETED' : 'DELETING',
      internal: { call, since, attempt: target.attempt },
    }),
  );
  const gone = scope === 'LIVE' && ready ? { runtime: NOTHING_RUNS } : {};
  const forgotten = ready ? { runtimeId: null, runtimeName: null, runtimeResourceId: null } : {};
  return { ...gone, internal: forgotten, ...(instances.length === 0 ? { outcome: DONE } : {}), instances };
}

function outputsOf(resource: ReleaseResource): Readonly<Record<string, string>> {
  return specSchema.parse(resource.spec).outputs;
}

function report(
  { name, serviceType, lifecycle }: ReleaseResource,
  facts: Pick<InstanceReport, 'status'> & Partial<InstanceReport>,
): InstanceReport {
  return instanceReport({ name, serviceType, lifecycle, ...facts });
}

/** When this try's first such call was, if any instance remembers it. */
function sinceOf(target: AdapterTarget, call: NoopCall): string | undefined {
  const memory = z.object({
    call: z.literal(call),
    since: z.iso.datetime(),
    attempt: z.literal(target.attempt),
  });
  for (const { internal } of target.instances) {
    const read = memory.safeParse(internal);
    if (read.success) return read.data.since;
  }
  return undefined;
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }); // whatever aborted it
  });
}
