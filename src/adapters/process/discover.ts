import { readdir, rm, stat } from 'node:fs/promises';

import type { DiscoveredWorkload, InstanceReport, KnownIds, RuntimeSnapshot } from '../contract.js';
import { absent } from './absent.js';
import { live } from './assess.js';
import { lookUpLaunches, type Found } from './find.js';
import type { Host } from './host.js';
import { launchUnrecorded, namesIn } from './launches.js';
import { below } from './layout.js';
import { directoryReport } from './reports.js';
import { emptyTrash } from './trash.js';

/** How long a deployment that is gone keeps an old lease from coming back. */
const FENCE_KEPT_MS = 7 * 24 * 3_600_000;

/**
 * Programs and directories below this server's data folder whose deployment nobody knows. They belong to the runtime that
 * they were started for; to any that asks, when that one is gone too.
 */
export async function discover(
  host: Host,
  { runtime, known }: { readonly runtime: RuntimeSnapshot; readonly known: KnownIds },
  signal: AbortSignal,
): Promise<readonly DiscoveredWorkload[]> {
  const marked = (await host.table.list()).filter(({ mark }) => mark.folder === host.layout.base);
  const ids = new Set([
    ...(await namesIn(host.layout.runs)),
    ...(await namesIn(host.layout.directories)),
    ...marked.map(({ mark }) => mark.deploymentId),
  ]);
  const workloads: DiscoveredWorkload[] = [];
  for (const id of [...ids].filter((one) => !known.deployments.has(one)).sort()) {
    signal.throwIfAborted();
    const found = await lookUpLaunches(host, id);
    const unrecorded = marked.filter(
      ({ mark }) => mark.deploymentId === id && !found.some(({ launch }) => launch.launch === mark.launch),
    );
    const runtimeId = found.find(({ launch }) => launch.record)?.launch.record?.runtimeId;
    if (runtimeId !== undefined && runtimeId !== runtime.id && known.runtimes.has(runtimeId)) continue;
    const more = new Map(
      unrecorded.map(({ pid, mark: { resource, launch } }): [string, Found] => [
        launch,
        {
          launch: launchUnrecorded(host.layout, { deploymentId: id, resource, launch }),
          state: { kind: 'running', pid },
          members: [],
        },
      ]),
    );
    workloads.push(await workload(host, id, [...found, ...more.values()]));
  }
  await forgetFences(host, known);
  await emptyTrash(host.layout);
  return workloads;
}

async function workload(host: Host, id: string, found: readonly Found[]): Promise<DiscoveredWorkload> {
  const record = found.find(({ launch }) => launch.record)?.launch.record ?? null;
  const running = found.filter(({ state }) => state.kind === 'running');
  const names = [...new Set(running.map(({ launch }) => launch.resource))];
  const directories = await namesIn(below(host.layout.directories, id));
  const instances: InstanceReport[] = [
    ...names.map((name) => live(name, { status: 'READY' })),
    ...directories.map((name) => directoryReport(name, below(host.layout.directories, id, name), true)),
  ];
  const endpoint = running.findLast(({ launch }) => launch.record?.endpoint)?.launch.record?.endpoint ?? null;
  return {
    resourceId: id,
    name: record?.deployment ?? null,
    namespace: record?.namespace ?? null,
    app: record?.app ?? null,
    runtime: { id: host.name, name: record?.deployment ?? null, resourceId: id, endpoint },
    environmentInfo: host.facts,
    internal: { runtimeResourceId: id, runtimeNamespace: host.name },
    instances,
  };
}

async function forgetFences({ layout, clock }: Host, known: KnownIds): Promise<void> {
  for (const id of (await readdir(layout.fences).catch(absent)) ?? []) {
    if (known.deployments.has(id)) continue;
    const at = (await stat(below(layout.fences, id)).catch(absent))?.mtime;
    if (at === undefined || clock.now().getTime() - at.getTime() < FENCE_KEPT_MS) continue;
    await rm(below(layout.fences, id), { recursive: true, force: true });
  }
}
