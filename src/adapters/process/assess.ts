import { constants } from 'node:os';

import { z } from 'zod';

import { cutToBytes } from '../../kernel/text.js';
import type { JsonObject } from '../../kernel/json.js';
import { instanceReport } from '../answers.js';
import type { InstanceReport } from '../contract.js';
import type { Found } from './find.js';
import { checkHealth } from './health.js';
import type { Host } from './host.js';
import { resourceFolder } from './layout.js';
import type { Launch, LaunchRecord } from './launches.js';
import { lastLine } from './out.js';

/** How one resource's program goes. */
export interface Assessment {
  readonly kind: 'waiting' | 'starting' | 'ready' | 'degraded' | 'unhealthy' | 'failed';
  readonly report: InstanceReport;
  /** When to look again; null: as usual. */
  readonly delaySeconds: number | null;
}

/** A program without a health check counts as healthy once it lived so long. */
const ALIVE_SECONDS = 1;
const DELAY_MIN_SECONDS = 0.1;
const DETAIL_MAX_BYTES = 1024;

/** What the checks before this one found, by way of the instance's internal facts. */
const memorySchema = z
  .object({
    launch: z.string(),
    healthy: z.boolean(),
    failures: z.int().min(0),
    failedAt: z.iso.datetime().nullable(),
  })
  .nullable()
  .catch(null);

export interface ToAssess {
  readonly name: string;
  readonly found: Found | undefined;
  readonly remembered: JsonObject;
  readonly redact: (text: string) => string;
}

export async function assess(host: Host, one: ToAssess, signal: AbortSignal): Promise<Assessment> {
  const { name, found } = one;
  if (found === undefined || found.state.kind === 'neverBegan') {
    return failed(name, { code: 'NotRunning', message: `\`${name}\` is not running`, detail: null });
  }
  if (found.state.kind === 'ended') return ended(host, one, found.launch, found.state);
  if (found.state.kind === 'beginning') {
    const report = live(name, { status: 'PROVISIONING', statusMessage: `\`${name}\` has just started` });
    return { kind: 'starting', report, delaySeconds: DELAY_MIN_SECONDS };
  }
  const { record } = found.launch;
  if (record === null) {
    const message = `\`${name}\` runs, but its record is missing: nothing is known of its health`;
    return unhealthy(name, { code: 'RecordMissing', message, detail: null }, {});
  }
  return running(host, one, { launch: found.launch, record }, signal);
}

async function running(
  host: Host,
  { name, remembered }: ToAssess,
  { launch, record }: { readonly launch: Launch; readonly record: LaunchRecord },
  signal: AbortSignal,
): Promise<Assessment> {
  const { health } = record;
  const checked = health.http !== undefined || health.tcp !== undefined;
  const problem = checked ? await checkHealth(health, signal) : undefined;
  const now = host.clock.now();
  const ageSeconds = Math.max(0, (now.getTime() - Date.parse(record.startedAt)) / 1000);
  const read = memorySchema.parse(remembered);
  const memory = read?.launch === launch.launch ? read : null;
  if (problem === undefined && (checked || ageSeconds >= ALIVE_SECONDS)) {
    const internal = { launch: launch.launch, healthy: true, failures: 0, failedAt: null };
    const facts = { status: 'READY', health: 'HEALTHY', outputs: record.outputs, internal } as const;
    return { kind: 'ready', report: live(name, facts), delaySeconds: null };
  }
  const message = problem ?? `\`${name}\` has just started`;
  if (memory?.healthy === true) return failing(name, { message, memory, record, now });
  if (ageSeconds < (checked ? health.startSeconds : ALIVE_SECONDS)) {
    const delaySeconds = Math.min(health.intervalSeconds, Math.max(DELAY_MIN_SECONDS, ageSeconds / 4));
    const report = live(name, { status: 'PROVISIONING', statusMessage: message });
    return { kind: 'starting', report, delaySeconds };
  }
  return unhealthy(name, {
    code: 'StartTimeout',
    message: `\`${name}\` was not healthy within ${health.startSeconds} s of its start: ${message}`,
    detail: null,
  });
}

interface Failing {
  readonly message: string;
  readonly memory: NonNullable<z.output<typeof memorySchema>>;
  readonly record: LaunchRecord;
  readonly now: Date;
}

/** It was healthy once. However often we look, failures count once for each interval. */
function failing(name: string, { message, memory, record, now }: Failing): Assessment {
  const { intervalSeconds, failureThreshold } = record.health;
  const counted =
    memory.failedAt !== null && now.getTime() - Date.parse(memory.failedAt) < intervalSeconds * 1000;
  const internal = counted
    ? memory
    : { ...memory, failures: memory.failures + 1, failedAt: now.toISOString() };
  if (internal.failures >= failureThreshold) {
    const error = { code: 'HealthCheckFailed', message: `\`${name}\`: ${message}`, detail: null };
    return unhealthy(name, error, { internal, outputs: record.outputs });
  }
  const report = live(name, {
    status: 'READY',
    health: 'DEGRADED',
    statusMessage: message,
    outputs: record.outputs,
    internal,
  });
  return { kind: 'degraded', report, delaySeconds: intervalSeconds };
}

async function ended(
  host: Host,
  { name, redact }: ToAssess,
  launch: Launch,
  { code, at }: { readonly code: number | null; readonly at: Date | null },
): Promise<Assessment> {
  const line = await lastLine(resourceFolder(host.layout, launch.deploymentId, launch.resource));
  const detail = line === '' ? null : cutToBytes(redact(line).replaceAll('\0', '\ufffd'), DETAIL_MAX_BYTES);
  const how =
    code === null
      ? 'ended, and nothing that could tell how survived'
      : `ended with exit code ${code}${signalName(code)}`;
  const message = `\`${name}\` ${how}${at === null ? '' : ` at ${at.toISOString()}`}${detail === null ? '' : `; its last line: ${detail}`}`;
  return failed(name, { code: 'ProcessExited', message, detail });
}

/** A shell tells death by a signal as 128 and its number. */
function signalName(code: number): string {
  const name = Object.entries(constants.signals).find(([, number]) => number === code - 128)?.[0];
  return name === undefined ? '' : ` (${name})`;
}

export function live(
  name: string,
  facts: Partial<InstanceReport> & Pick<InstanceReport, 'status'>,
): InstanceReport {
  return instanceReport({ name, serviceType: 'process', lifecycle: 'LIVE', ...facts });
}

function unhealthy(
  name: string,
  error: NonNullable<InstanceReport['error']>,
  facts: Partial<InstanceReport> = {},
): Assessment {
  const { message: statusMessage } = error;
  const report = live(name, { status: 'UNHEALTHY', health: 'UNHEALTHY', statusMessage, error, ...facts });
  return { kind: 'unhealthy', report, delaySeconds: null };
}

function failed(name: string, error: NonNullable<InstanceReport['error']>): Assessment {
  const { message: statusMessage } = error;
  const report = live(name, { status: 'FAILED', health: 'UNHEALTHY', statusMessage, error });
  return { kind: 'failed', report, delaySeconds: null };
}
