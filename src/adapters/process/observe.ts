import { answer, condition, NOTHING_RUNS, rememberedOf } from '../answers.js';
import type { AdapterAnswer, AdapterTarget, InstanceReport } from '../contract.js';
import { assess, type Assessment } from './assess.js';
import { directoryThere } from './directory.js';
import { superseded } from './fence.js';
import { currentOf, lookUpLaunches } from './find.js';
import type { Host } from './host.js';
import { resourceFolder } from './layout.js';
import { outRotate } from './out.js';
import { directoryOutputs } from './plan.js';
import { redactor } from './redact.js';
import {
  directoryReport,
  identityOf,
  inventoryOf,
  liveConditions,
  runtimeFacts,
  whenAgain,
} from './reports.js';
import { supports } from './spec.js';

/** Looks at what the release names, or, without one, at what has a record. Rotates logs, and changes nothing else. */
export async function observe(
  host: Host,
  target: AdapterTarget,
  signal: AbortSignal,
): Promise<AdapterAnswer> {
  const id = identityOf(target);
  const found = await lookUpLaunches(host, id);
  const redact = redactor(target.env);
  const names = liveNames(target) ?? [...new Set(found.map(({ launch }) => launch.resource))];
  signal.throwIfAborted();
  const assessments = await Promise.all(
    names.map((name) =>
      assess(
        host,
        { name, found: currentOf(found, name), remembered: rememberedOf(target, name), redact },
        signal,
      ),
    ),
  );
  const directories = await lookAtDirectories(host, target);
  await rotate(host, target, names);
  const running = found.filter(({ state }) => state.kind === 'running');
  const endpoint = running.findLast(({ launch }) => launch.record?.endpoint)?.launch.record?.endpoint ?? null;
  return answer(whenAgain(assessments), {
    conditions: withDirectories(assessments, directories),
    runtime: running.length === 0 ? NOTHING_RUNS : runtimeFacts(host, target, endpoint),
    environmentInfo: host.facts,
    instances: [...assessments.map(({ report }) => report), ...directories],
    inventory: inventoryOf(host, target, found),
  });
}

function liveNames({ release }: AdapterTarget): string[] | undefined {
  return release?.resources.filter(({ lifecycle }) => lifecycle === 'LIVE').map(({ name }) => name);
}

async function lookAtDirectories(host: Host, target: AdapterTarget): Promise<InstanceReport[]> {
  const reports: InstanceReport[] = [];
  for (const resource of target.release?.resources ?? []) {
    // A release that was stored before a rule became stricter must not hide how the rest goes.
    if (resource.serviceType !== 'directory' || !supports(resource).ok) continue;
    const { path = '' } = directoryOutputs(host, identityOf(target), resource);
    reports.push(directoryReport(resource.name, path, await directoryThere(path)));
  }
  return reports;
}

function withDirectories(assessments: readonly Assessment[], directories: readonly InstanceReport[]) {
  const missing = directories.find(({ error }) => error !== null)?.error;
  if (!missing) return liveConditions(assessments);
  return [
    condition('Ready', 'FALSE', missing.code, missing.message),
    condition('Healthy', 'FALSE', missing.code, missing.message),
  ];
}

/** A server whose lease is over leaves the files to the other one. */
async function rotate(host: Host, target: AdapterTarget, names: readonly string[]): Promise<void> {
  const id = identityOf(target);
  if (await superseded(host.layout, id, target.fence)) return;
  for (const name of names) await outRotate(resourceFolder(host.layout, id, name), host.logMaxBytes);
}
