import { sameJson } from '../../kernel/json.js';
import { answer, blocked, DONE, inProgress, instanceReport, rejected, rememberedOf } from '../answers.js';
import type { AdapterAnswer, AdapterOutcome, AdapterTarget, InstanceReport } from '../contract.js';
import { assess, live, type Assessment } from './assess.js';
import { directoryPath, directoryThere, makeDirectory } from './directory.js';
import { raiseFence, type Fence } from './fence.js';
import { currentOf, findLaunches, type Found } from './find.js';
import type { Host } from './host.js';
import { launchProgram, type ToLaunch } from './launch.js';
import { launchWrite, namesIn, type LaunchRecord } from './launches.js';
import { below, resourceFolder } from './layout.js';
import { outRotate } from './out.js';
import { directoryOutputs, planOf, type Plan, type Planned } from './plan.js';
import { redactor } from './redact.js';
import {
  directoryReport,
  identity,
  identityOf,
  inventoryOf,
  liveConditions,
  runtimeFacts,
  whenAgain,
} from './reports.js';
import { directorySpecSchema } from './spec.js';
import { stopLaunch } from './stop.js';
import { discard } from './trash.js';

const STOPPING_DELAY_SECONDS = 0.1;

/** Makes the FROZEN directories. They never go here: what a release leaves out stays until `remove`. */
export async function applyFrozen(
  host: Host,
  target: AdapterTarget,
  signal: AbortSignal,
): Promise<AdapterAnswer> {
  const deploymentId = identityOf(target);
  const fence = await raiseFence(host.layout, deploymentId, target.fence);
  const plan = planOf(host, target);
  if ('refusal' in plan) return answer(rejected(plan.refusal.reason, plan.refusal.message));
  const instances: InstanceReport[] = [];
  for (const resource of plan.frozen) {
    signal.throwIfAborted();
    fence.check();
    const { name = resource.name, mode } = directorySpecSchema.parse(resource.spec);
    const wanted = { resource: resource.name, name, mode };
    const problem = await makeDirectory(host.layout, deploymentId, wanted, fence);
    if (problem !== undefined) {
      return answer(rejected('NoFolder', `\`${resource.name}\`: ${problem}`), { instances });
    }
    instances.push(directoryReport(resource.name, directoryPath(host.layout, deploymentId, wanted), true));
  }
  return answer(DONE, { internal: identity(host, target), environmentInfo: host.facts, instances });
}

interface Run {
  readonly host: Host;
  readonly target: AdapterTarget;
  readonly fence: Fence;
  readonly found: readonly Found[];
  readonly redact: (text: string) => string;
  readonly signal: AbortSignal;
}

/**
 * Programs start level by level; a level that is not ready holds the next ones where they are. What runs with the same
 * command, folder and environment is left running.
 */
export async function applyLive(
  host: Host,
  target: AdapterTarget,
  signal: AbortSignal,
): Promise<AdapterAnswer> {
  const fence = await raiseFence(host.layout, identityOf(target), target.fence);
  const plan = planOf(host, target);
  if ('refusal' in plan) return answer(rejected(plan.refusal.reason, plan.refusal.message));
  const missing = await missingFolder(host, target, plan);
  if (missing !== undefined) return answer(missing);
  const found = await findLaunches(host, identityOf(target));
  const run: Run = { host, target, fence, found, redact: redactor(target.env), signal };
  const left = await stopLeftOver(run, plan);
  const assessments: Assessment[] = [];
  let held = false;
  for (const level of plan.levels) {
    signal.throwIfAborted();
    const these = await together(level.map((planned) => (held ? hold(run, planned) : bringUp(run, planned))));
    assessments.push(...these);
    held ||= these.some(({ kind }) => kind !== 'ready');
  }
  for (const { name } of plan.levels.flat()) {
    await outRotate(resourceFolder(host.layout, identityOf(target), name), host.logMaxBytes);
  }
  return liveAnswer(run, plan, { assessments, left });
}

/** Throws only when all have ended: one that went on behind our back could start a program beside the next call's. */
async function together<T>(calls: readonly Promise<T>[]): Promise<T[]> {
  const results = await Promise.allSettled(calls);
  const failure = results.find((result) => result.status === 'rejected');
  if (failure) throw failure.reason;
  return results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
}

interface Applied {
  readonly assessments: readonly Assessment[];
  /** Of resources that the release no longer has. */
  readonly left: readonly InstanceReport[];
}

function liveAnswer({ host, target, found }: Run, plan: Plan, { assessments, left }: Applied): AdapterAnswer {
  const failed = assessments.find(({ kind }) => kind === 'failed' || kind === 'unhealthy')?.report.error;
  const stopping = left.some(({ status }) => status === 'DELETING');
  const again = whenAgain(assessments);
  const outcome: AdapterOutcome = failed
    ? rejected(failed.code, failed.message)
    : stopping
      ? inProgress(STOPPING_DELAY_SECONDS)
      : again;
  const endpoint = plan.levels.flat().findLast((planned) => planned.endpoint !== null)?.endpoint ?? null;
  return answer(outcome, {
    conditions: liveConditions(assessments),
    runtime: runtimeFacts(host, target, endpoint),
    environmentInfo: host.facts,
    internal: identity(host, target),
    instances: [...assessments.map(({ report }) => report), ...left],
    // As it was found: what was started or stopped since is seen by the next look.
    inventory: inventoryOf(host, target, found),
  });
}

/** Directories are made by the FROZEN scope, which came before. */
async function missingFolder(
  host: Host,
  target: AdapterTarget,
  plan: Plan,
): Promise<AdapterOutcome | undefined> {
  for (const resource of plan.frozen) {
    const { path = '' } = directoryOutputs(host, identityOf(target), resource);
    if (await directoryThere(path)) continue;
    return blocked(
      'DirectoryMissing',
      `\`${resource.name}\`: ${path} is not there; FROZEN resources come first`,
    );
  }
  return undefined;
}

/** Their logs go with them. */
async function stopLeftOver(run: Run, plan: Plan): Promise<InstanceReport[]> {
  const { host, target, fence, found, signal } = run;
  const wanted = new Set(plan.levels.flat().map(({ name }) => name));
  const there = [
    ...(await namesIn(below(host.layout.runs, identityOf(target)))),
    ...found.map(({ launch }) => launch.resource),
  ];
  const reports: InstanceReport[] = [];
  for (const name of new Set(there.filter((one) => !wanted.has(one)))) {
    signal.throwIfAborted();
    const programs = found.filter(({ launch }) => launch.resource === name);
    const gone = await stopAll(run, programs);
    if (gone) await discard(host.layout, resourceFolder(host.layout, identityOf(target), name), fence);
    reports.push(live(name, { status: gone ? 'DELETED' : 'DELETING' }));
  }
  return reports;
}

/** True once nothing of any of them lives. */
async function stopAll({ host, fence }: Run, found: readonly Found[]): Promise<boolean> {
  let gone = true;
  for (const one of found) gone = (await stopLaunch(host, one, fence)) && gone;
  return gone;
}

/** Below a level that is not ready: what runs stays and is looked at, nothing is started or stopped. */
async function hold(run: Run, planned: Planned): Promise<Assessment> {
  const current = currentOf(run.found, planned.name);
  if (current && current.state.kind !== 'ended') return look(run, planned, current);
  const report = instanceReport({
    name: planned.name,
    serviceType: 'process',
    lifecycle: 'LIVE',
    status: 'PENDING',
    statusMessage: `\`${planned.name}\` waits for what it requires`,
  });
  return { kind: 'waiting', report, delaySeconds: null };
}

function look({ host, target, redact, signal }: Run, { name }: Planned, found: Found): Promise<Assessment> {
  return assess(host, { name, found, remembered: rememberedOf(target, name), redact }, signal);
}

async function bringUp(run: Run, planned: Planned): Promise<Assessment> {
  const all = run.found.filter(({ launch }) => launch.resource === planned.name);
  const current = currentOf(all, planned.name);
  const others = all.filter((one) => one !== current);
  const record = current?.launch.record;
  const now = current && record?.hash === planned.hash ? await keep(run, planned, current) : undefined;
  run.signal.throwIfAborted();
  if (now) {
    const gone = await stopAll(run, others);
    return gone ? now : { ...now, delaySeconds: Math.min(STOPPING_DELAY_SECONDS, now.delaySeconds ?? 1) };
  }
  if (!(await stopAll(run, all))) {
    const statusMessage = `\`${planned.name}\` starts when the program before it has ended`;
    return starting(planned, statusMessage);
  }
  return start(run, planned);
}

function starting({ name }: Planned, statusMessage: string): Assessment {
  const report = live(name, { status: 'PROVISIONING', statusMessage });
  return { kind: 'starting', report, delaySeconds: STOPPING_DELAY_SECONDS };
}

/** How the running program goes; undefined if it, or its successor, must be started: this try began after it failed. */
async function keep(run: Run, planned: Planned, current: Found): Promise<Assessment | undefined> {
  const { record } = current.launch;
  if (record === null) return undefined;
  const wanted: LaunchRecord = { ...record, ...recordOf(run.target, planned), attempt: record.attempt };
  const { launch } = current;
  if (current.state.kind === 'running' && !sameJson(wanted, record)) {
    run.fence.check();
    await launchWrite(launch.folder, wanted);
  }
  const now = await look(run, planned, { ...current, launch: { ...launch, record: wanted } });
  const failed = now.kind === 'failed' || now.kind === 'unhealthy';
  return failed && record.attempt !== run.target.attempt ? undefined : now;
}

async function start(run: Run, planned: Planned): Promise<Assessment> {
  const { name, argv, cwd, env } = planned;
  const wanted: ToLaunch = {
    deploymentId: identityOf(run.target),
    resource: name,
    argv,
    cwd,
    env,
    record: recordOf(run.target, planned),
  };
  const result = await launchProgram(run.host, wanted, run.fence);
  if (result.ok) return starting(planned, `\`${name}\` has just started`);
  const message = `\`${name}\`: ${result.message}`;
  const error = { code: result.reason, message, detail: null };
  const report = live(name, { status: 'FAILED', health: 'UNHEALTHY', statusMessage: message, error });
  return { kind: 'failed', report, delaySeconds: null };
}

function recordOf(target: AdapterTarget, planned: Planned): Omit<LaunchRecord, 'fence' | 'startedAt'> {
  return {
    namespace: target.namespace,
    deployment: target.name,
    app: target.app,
    runtimeId: target.runtime.id,
    attempt: target.attempt,
    hash: planned.hash,
    level: planned.level,
    stopSeconds: planned.spec.stopSeconds,
    health: planned.spec.health,
    outputs: planned.outputs,
    endpoint: planned.endpoint,
  };
}
