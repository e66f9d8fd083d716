import { mkdir, readdir, readFile, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { z } from 'zod';

import { parseMoment } from '../../kernel/clock.js';
import { absent, systemCode } from './absent.js';
import type { Host } from './host.js';
import { below, launchFolder, OUT, resourceFolder, type LaunchName, type Layout } from './layout.js';
import type { HostProcess } from './process-table.js';
import { healthSchema } from './spec.js';

/** No shell needs so long; one that does is taken for a program that runs. */
const BEGINNING_MS = 5_000;

/** What is written down of a start before it happens. Holds no value of the environment. */
const recordSchema = z.object({
  namespace: z.string(),
  deployment: z.string(),
  app: z.string(),
  runtimeId: z.string(),
  attempt: z.string(),
  fence: z.string().regex(/^\d{1,19}$/),
  /** Of command, working folder and environment: the same means "leave it running". */
  hash: z.string(),
  startedAt: z.iso.datetime(),
  /** How many levels of resources start before it; they stop in the opposite order. */
  level: z.int(),
  stopSeconds: z.number(),
  health: healthSchema,
  outputs: z.record(z.string(), z.string()),
  endpoint: z.string().nullable(),
});
export type LaunchRecord = z.output<typeof recordSchema>;

/** One start of a resource's program. */
export interface Launch extends LaunchName {
  readonly folder: string;
  /** Null: the record is missing or unreadable, but the program is there. */
  readonly record: LaunchRecord | null;
  /** When it was told to stop; one that was is never taken for what should run. */
  readonly stoppingSince: Date | null;
}

export type LaunchState =
  | { readonly kind: 'running'; readonly pid: number }
  /** Its shell has not decided yet: the program runs in a moment, or never will. */
  | { readonly kind: 'beginning'; readonly pid: number }
  /** `code` is null when nobody lived to write it down: the whole group was killed, or the host went down. */
  | { readonly kind: 'ended'; readonly code: number | null; readonly at: Date | null }
  /** The server died, or was too late, between the record and the start. */
  | { readonly kind: 'neverBegan' };

/** All starts of a deployment that left a record, in no order. */
export async function launchesOf(layout: Layout, deploymentId: string): Promise<Launch[]> {
  const launches: Launch[] = [];
  for (const resource of await namesIn(below(layout.runs, deploymentId))) {
    for (const launch of await namesIn(join(resourceFolder(layout, deploymentId, resource), 'launches'))) {
      launches.push(await launchRead(layout, { deploymentId, resource, launch }));
    }
  }
  return launches;
}

export async function namesIn(folder: string): Promise<string[]> {
  return (await readdir(folder).catch(absent)) ?? [];
}

export async function launchRead(layout: Layout, name: LaunchName): Promise<Launch> {
  const folder = launchFolder(layout, name);
  const text = await readFile(join(folder, 'launch.json'), 'utf8').catch(absent);
  const told = await readFile(join(folder, 'stopping'), 'utf8').catch(absent);
  return { ...name, folder, record: parsedRecord(text), stoppingSince: parseMoment(told ?? '') ?? null };
}

/** A start of which only the processes are left, or that another server of this host keeps the record of. */
export function launchUnrecorded(layout: Layout, name: LaunchName): Launch {
  return { ...name, folder: launchFolder(layout, name), record: null, stoppingSince: null };
}

export async function launchStopping(launch: Launch, at: Date): Promise<void> {
  await writeFile(join(launch.folder, 'stopping'), at.toISOString(), { mode: 0o600 });
}

function parsedRecord(text: string | undefined): LaunchRecord | null {
  if (text === undefined) return null;
  try {
    return recordSchema.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    return null; // half written when the host went down: the program is found by its mark
  }
}

export async function launchWrite(folder: string, record: LaunchRecord): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, 'launch.json');
  await writeFile(`${file}.new`, JSON.stringify(record), { mode: 0o600 });
  await rename(`${file}.new`, file);
}

/** Whether it runs, from its own files and one look at the system; `list` is called only when those do not tell. */
export async function launchState(
  { table, clock }: Pick<Host, 'table' | 'clock'>,
  launch: Launch,
  list: () => Promise<readonly HostProcess[]>,
): Promise<LaunchState> {
  const exit = await exitOf(launch.folder);
  if (exit) return exit;
  const pid = await pidOf(launch.folder);
  if (pid > 0 && table.look(pid)?.mark.launch === launch.launch) return { kind: 'running', pid };
  // Its shell was killed and the program was not, or it has not come to writing its pid.
  const member = (await list()).find(({ mark }) => mark.launch === launch.launch);
  if (member) {
    const ageMs = clock.now().getTime() - Date.parse(launch.record?.startedAt ?? '');
    // Without a record there is nothing to wait for.
    const beginning = ageMs < BEGINNING_MS && (await pidOf(launch.folder)) === 0;
    return { kind: beginning ? 'beginning' : 'running', pid: member.pid };
  }
  // It may have ended while we looked.
  const ended = await exitOf(launch.folder);
  if (ended) return ended;
  return (await pidOf(launch.folder)) > 0 ? { kind: 'ended', code: null, at: null } : { kind: 'neverBegan' };
}

/** 0 before it is written. */
async function pidOf(folder: string): Promise<number> {
  return Number(await readFile(join(folder, 'pid'), 'utf8').catch(absent)) || 0;
}

async function exitOf(folder: string): Promise<(LaunchState & { kind: 'ended' }) | undefined> {
  const file = join(folder, 'exit');
  const text = await readFile(file, 'utf8').catch(absent);
  if (text === undefined) return undefined;
  const at = (await stat(file).catch(absent))?.mtime ?? null;
  return { kind: 'ended', code: /^\d{1,3}$/.test(text) ? Number(text) : null, at };
}

/** The record of a start goes; the resource's log stays. */
export async function launchForget(launch: Launch): Promise<void> {
  await rm(launch.folder, { recursive: true, force: true });
}

/** What a late start made, and nothing else: a folder in which anything stands stays. */
export async function launchUndo(layout: Layout, launch: LaunchName): Promise<void> {
  const folder = launchFolder(layout, launch);
  await rm(folder, { recursive: true, force: true });
  const resource = resourceFolder(layout, launch.deploymentId, launch.resource);
  // In this order: where another start has its record, the first step already fails, and the rest stays.
  if (!(await removedIfEmpty(join(resource, 'launches')))) return;
  if ((await stat(join(resource, OUT)).catch(absent))?.size === 0) {
    await rm(join(resource, OUT), { force: true });
  }
  await removedIfEmpty(join(resource, 'work'));
  if (await removedIfEmpty(resource)) await removedIfEmpty(below(layout.runs, launch.deploymentId));
}

async function removedIfEmpty(folder: string): Promise<boolean> {
  try {
    await rmdir(folder);
    return true;
  } catch (error) {
    const code = systemCode(error);
    if (code === 'ENOENT') return true;
    if (code === 'ENOTEMPTY' || code === 'EEXIST') return false;
    throw error;
  }
}

/** The later start first: by lease, then by time. */
export function newestFirst(a: Launch, b: Launch): number {
  const fences = BigInt(b.record?.fence ?? -1) - BigInt(a.record?.fence ?? -1);
  if (fences !== 0n) return fences > 0n ? 1 : -1;
  return (b.record?.startedAt ?? '') > (a.record?.startedAt ?? '') ? 1 : -1;
}
