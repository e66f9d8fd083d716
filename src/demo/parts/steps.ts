import { hostname } from 'node:os';
import { waitForDeployment, type DeploymentPartsFragment } from '../../client/index.js';
import { startProgram } from './child-program.js';
import {
  applyDeployment,
  createRuntimeAndRelease,
  DemoFailure,
  report,
  reportAnyway,
  requestDeletion,
  type Conflict,
} from './controller.js';
import { registerAgent } from './demo-agent.js';
import type { Observer } from './observer.js';
import { takeDown, type Run } from './run.js';

/** How long a change may take to come by the stream. */
const TOLD_MS = 10_000;
/** The server judges heartbeats at intervals: its timeout, one interval, and some reserve. */
const SWEEP_RESERVE_MS = 20_000;

export async function meetAgent(run: Run, observer: Observer): Promise<void> {
  const { client, say, names } = run;
  say.step(`Registering the agent ${names.agent}`);
  run.agent = await registerAgent(client, names.agent);
  await observer.health('READY', TOLD_MS);
  say.step('It says that 150 commands wait, then that none does');
  await run.agent.beat(150);
  await observer.health('CONGESTED', TOLD_MS);
  await run.agent.beat(0);
  await observer.health('READY', TOLD_MS, 2);
  run.agent.beatRegularly((error) =>
    say.note(`a heartbeat failed: ${error instanceof Error ? error.message : String(error)}`),
  );
}

/** An external controller at work: it observes, and reports each phase on condition of the version it saw. */
export async function deploy(
  run: Run,
  observer: Observer,
  programFile: string,
): Promise<DeploymentPartsFragment> {
  const { client, say, names } = run;
  say.step(
    `Creating the runtime ${names.runtime} (type external), the release ${names.app} ${names.release} and the deployment ${names.deployment}`,
  );
  await createRuntimeAndRelease(client, names);
  let deployment = await applyDeployment(client, names);
  run.deployment = deployment;
  await observer.phase('PENDING', TOLD_MS);
  // As a pipeline would: in parallel with the controller, and over its own requests.
  const waited = waitForDeployment(client, { id: deployment.id }, { goal: 'RUNNING', timeoutMs: 60_000 });
  waited.catch(() => undefined);

  say.step('Now as its controller: setting up, then starting the program as a process');
  deployment = await reportAnyway(client, deployment, { phase: 'INITIAL_SETUP', reason: 'SetupBegins' });
  deployment = await reportAnyway(client, deployment, { phase: 'PROVISIONING', reason: 'ProcessStarts' });
  run.program = await startProgram(programFile, names.release);
  say.note(`process ${run.program.pid} listens on ${run.program.url}`);
  const { checks } = await run.program.healthy();
  say.note(`healthy after ${checks} health check${checks === 1 ? '' : 's'} over HTTP`);
  deployment = await reportAnyway(client, deployment, {
    phase: 'RUNNING',
    reason: 'HealthCheckPassed',
    runtime: {
      id: hostname(),
      name: names.runtime,
      resourceId: String(run.program.pid),
      endpoint: run.program.url,
    },
    environmentInfo: { hostname: hostname(), os: process.platform, arch: process.arch },
    conditions: [
      { type: 'Ready', status: 'TRUE', reason: 'HealthCheckPassed', message: 'GET /health answers 200' },
    ],
  });
  run.deployment = deployment;
  await observer.phase('RUNNING', TOLD_MS);
  const seen = await waited;
  say.note(`a pipeline that waited for it goes on: ${seen?.status.summary ?? ''}`);
  return deployment;
}

export async function lookAtPage({ say, program }: Run): Promise<void> {
  if (!program) throw new DemoFailure('There is no program to look at.');
  say.step(`Fetching ${program.url}/`);
  const text = await (await fetch(program.url)).text();
  const [, title] = /<h1>(.*?)<\/h1>/.exec(text) ?? [];
  if (title !== 'Hello from Slipway') {
    throw new DemoFailure(`The page is not the program's: ${text.slice(0, 200)}`);
  }
  say.note(`“${title}”`);
}

/** Two controllers report on the same version at the same moment. */
export async function race(run: Run, running: DeploymentPartsFragment): Promise<void> {
  const { client, say } = run;
  say.step(`Two patches race for version ${running.version}`);
  const rivals = ['first', 'second'].map((who) =>
    report(client, running, {
      conditions: [{ type: 'Raced', status: 'TRUE', reason: 'Demo', message: `the ${who} one won` }],
    }),
  );
  const results = await Promise.all(rivals);
  const conflicts = results.filter((result): result is Conflict => 'currentVersion' in result);
  const winners = results.filter(
    (result): result is DeploymentPartsFragment => !('currentVersion' in result),
  );
  const [conflict] = conflicts;
  const [winner] = winners;
  if (!conflict || !winner || conflicts.length !== 1) {
    throw new DemoFailure(`Of two racing patches ${winners.length} won.`);
  }
  if (conflict.currentVersion !== winner.version) {
    throw new DemoFailure('The conflict does not show the winner’s version.');
  }
  const raced = conflict.current.status.conditions.find(({ type }) => type === 'Raced');
  say.note(
    `one made version ${winner.version}; the other got VersionConflict with currentVersion ${conflict.currentVersion} and the fresh object (${raced?.message ?? ''})`,
  );
  run.deployment = winner;
}

export async function loseAgent(
  { say, agent }: Run,
  observer: Observer,
  timeoutSeconds: number,
): Promise<void> {
  say.step(
    `The agent falls silent. The server calls it UNAVAILABLE ${timeoutSeconds} s after its last heartbeat, by its own clock; waiting for that`,
  );
  agent?.silence();
  const reminder = setInterval(() => say.note('still waiting for the heartbeat timeout …'), 15_000);
  try {
    await observer.health('UNAVAILABLE', timeoutSeconds * 1_000 + SWEEP_RESERVE_MS);
  } finally {
    clearInterval(reminder);
  }
}

export async function remove(run: Run, observer: Observer): Promise<void> {
  const { client, say, deployment } = run;
  if (!deployment) throw new DemoFailure('There is no deployment to delete.');
  say.step('Asking to delete the deployment; its controller ends the process, then reports that');
  const deletable = await requestDeletion(client, deployment.id);
  const waited = waitForDeployment(client, { id: deployment.id }, { goal: 'DELETED', timeoutMs: 30_000 });
  waited.catch(() => undefined);
  await takeDown(run, deletable);
  run.deployment = undefined;
  await observer.phase('DELETED', TOLD_MS);
  await waited;
  await run.agent?.deregister();
  run.agent = undefined;
}

/** Everything came by the streams, in this order, and nothing besides. */
export function checkOrder({ phases, healths }: Observer): void {
  const expected = [
    [
      phases,
      ['PENDING', 'INITIAL_SETUP', 'PROVISIONING', 'RUNNING', 'DELETE_PENDING', 'DELETING', 'DELETED'],
    ],
    [healths.slice(0, 4), ['READY', 'CONGESTED', 'READY', 'UNAVAILABLE']],
  ] as const;
  for (const [told, wanted] of expected) {
    if (told.join() !== wanted.join()) {
      throw new DemoFailure(`The stream told ${told.join(', ')} instead of ${wanted.join(', ')}.`);
    }
  }
}
