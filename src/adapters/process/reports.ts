import type { ObservedRuntime } from '../../deployments/index.js';
import { MESSAGE_MAX_BYTES, type ReportedCondition } from '../../kernel/conditions.js';
import { cutToBytes } from '../../kernel/text.js';
import { condition, DONE, inProgress, instanceReport } from '../answers.js';
import type { AdapterMemory, AdapterOutcome, AdapterTarget, InstanceReport, Inventory } from '../contract.js';
import type { Assessment } from './assess.js';
import type { Found } from './find.js';
import type { Host } from './host.js';

/** What the state of all LIVE resources says about the deployment. */
export function liveConditions(all: readonly Assessment[]): readonly ReportedCondition[] {
  const bad = all.filter(({ report }) => report.health === 'UNHEALTHY');
  const waiting = all.find(({ kind }) => kind === 'starting' || kind === 'waiting');
  const degraded = all.find(({ kind }) => kind === 'degraded');
  const firstBad = bad[0]?.report.error;
  if (firstBad) {
    const messages = bad.map(({ report }) => report.error?.message ?? report.name);
    const message = cutToBytes(messages.join('; '), MESSAGE_MAX_BYTES);
    return [
      condition('Ready', 'FALSE', firstBad.code, message),
      condition('Healthy', 'FALSE', firstBad.code, message),
    ];
  }
  if (waiting) {
    const message = waiting.report.statusMessage ?? `\`${waiting.report.name}\` is starting`;
    return [
      condition('Ready', 'FALSE', 'Starting', message),
      condition('Healthy', 'UNKNOWN', 'Starting', message),
    ];
  }
  const health = degraded
    ? condition('Healthy', 'TRUE', 'HealthCheckFailing', degraded.report.statusMessage ?? '')
    : condition('Healthy', 'TRUE', 'Healthy');
  return [condition('Ready', 'TRUE', 'Ready'), health];
}

/** The soonest that any of them wants to be looked at again. */
export function whenAgain(all: readonly Assessment[]): AdapterOutcome {
  const delays = all.flatMap(({ delaySeconds }) => delaySeconds ?? []);
  return delays.length === 0 ? DONE : inProgress(Math.min(...delays));
}

export function directoryReport(name: string, path: string, there: boolean): InstanceReport {
  const facts = { name, serviceType: 'directory', lifecycle: 'FROZEN' } as const;
  if (there) return instanceReport({ ...facts, status: 'READY', health: 'HEALTHY', outputs: { path } });
  const message = `${path} is no longer there`;
  return instanceReport({
    ...facts,
    status: 'FAILED',
    health: 'UNHEALTHY',
    statusMessage: message,
    error: { code: 'DirectoryMissing', message, detail: null },
  });
}

/** The identity that removal goes by: the deployment's own id, on this host. */
export function identity(host: Host, target: AdapterTarget): Partial<AdapterMemory> {
  return {
    runtimeId: target.runtime.id,
    runtimeName: target.runtime.name,
    runtimeResourceId: identityOf(target),
    runtimeNamespace: host.name,
  };
}

export const NO_IDENTITY: Partial<AdapterMemory> = {
  runtimeId: null,
  runtimeName: null,
  runtimeResourceId: null,
  runtimeNamespace: null,
};

/** What was recorded comes first. */
export function identityOf({
  recorded,
  deploymentId,
}: Pick<AdapterTarget, 'recorded' | 'deploymentId'>): string {
  return recorded.runtimeResourceId ?? deploymentId;
}

export function runtimeFacts(host: Host, target: AdapterTarget, endpoint: string | null): ObservedRuntime {
  return { id: host.name, name: target.name, resourceId: identityOf(target), endpoint };
}

export function inventoryOf(host: Host, target: AdapterTarget, found: readonly Found[]): Inventory {
  const resources = found.flatMap(({ launch, state }) =>
    state.kind !== 'running'
      ? []
      : {
          id: launch.launch,
          kind: 'process',
          name: launch.resource,
          attributes: { pid: state.pid, startedAt: launch.record?.startedAt ?? null },
        },
  );
  return { scope: `${host.name}/${identityOf(target)}`, complete: true, resources };
}
