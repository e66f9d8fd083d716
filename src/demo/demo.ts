/**
 * `npm run demo`: deploys a real program through a running server, with nothing but the public API and the generated
 * client. Exits 0 only if everything it announces was seen to happen. Leaves a runtime and a release behind, which the
 * next run uses again; ends its child process in every case.
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { fileURLToPath } from 'node:url';
import {
  createSlipwayClient,
  SlipwayRequestError,
  waitForDeployment,
  type DeploymentPartsFragment,
  type SlipwayClient,
} from '../client/index.js';
import { nodeWebSocket } from '../client/node.js';
import { ServerInfoDocument } from '../client/index.js';
import { loadConfig, type Config } from '../config/config.js';
import { systemClock } from '../kernel/clock.js';
import { startProgram, type ChildProgram } from './child-program.js';
import {
  applyDeployment,
  createRuntimeAndRelease,
  DemoFailure,
  report,
  reportAnyway,
  requestDeletion,
  type Conflict,
  type DemoNames,
} from './controller.js';
import { registerAgent, type DemoAgent } from './demo-agent.js';
import { observe, type Observer } from './observer.js';
import { saying, type Say } from './say.js';

/** Beside this file in dist/, where both are bundled. */
const PROGRAM = fileURLToPath(new URL('./hello.js', import.meta.url));
/** How long a change may take to come by the stream. */
const TOLD_MS = 10_000;
/** The server judges heartbeats at intervals: its timeout, one interval, and some reserve. */
const SWEEP_RESERVE_MS = 20_000;
const CLEANUP_MS = 5_000;

/** All that has to be undone, whatever happens. */
interface Run {
  readonly client: SlipwayClient;
  readonly say: Say;
  readonly names: DemoNames & { readonly agent: string };
  observer: Observer | undefined;
  agent: DemoAgent | undefined;
  program: ChildProgram | undefined;
  deployment: DeploymentPartsFragment | undefined;
}

export async function main(): Promise<void> {
  const { url, token } = serverOf(loadConfig());
  const say = saying(
    (line) => process.stdout.write(line),
    () => systemClock.monotonicMs(),
  );
  const client = createSlipwayClient({
    url,
    token,
    webSocketImpl: nodeWebSocket,
    onStatus: ({ condition, worst }) => {
      if (condition === 'reconnecting')
        say.live(`the connection is away, coming back by itself: ${worst?.reason ?? ''}`);
    },
  });
  const suffix = randomBytes(3).toString('hex');
  const names = {
    runtime: 'demo',
    app: 'hello',
    release: '1.0.0',
    deployment: `hello-${suffix}`,
    agent: `demo-agent-${suffix}`,
  };
  const run: Run = {
    client,
    say,
    names,
    observer: undefined,
    agent: undefined,
    program: undefined,
    deployment: undefined,
  };
  const interrupted = new Promise<never>((_resolve, reject) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => reject(new DemoFailure(`Stopped by ${signal}.`)));
  });
  try {
    await Promise.race([wholeDemo(run, url), interrupted]);
    say.step('All of it happened. Run it again as often as you like.');
  } catch (error) {
    process.exitCode = 1;
    process.stderr.write(`\n${explain(error, url)}\n`);
    await cleanUp(run);
  } finally {
    await run.program?.stop();
    run.agent?.silence();
    run.observer?.close();
    client.close();
  }
}

/** SLIPWAY_URL may name the server or its endpoint; without it, the server that `npm start` starts here. */
function serverOf({ client, server }: Config): { url: string; token: string | undefined } {
  const host = server.loopback ? server.host : '127.0.0.1';
  const url = new URL(client.url ?? `http://${host.includes(':') ? `[${host}]` : host}:${server.port}`);
  if (url.pathname === '/') url.pathname = '/graphql';
  return { url: url.href, token: client.token };
}

async function wholeDemo(run: Run, url: string): Promise<void> {
  const { client, say, names } = run;
  say.step(`Asking ${url} who it is`);
  const { serverInfo, viewer } = await client.query(ServerInfoDocument);
  say.note(`Slipway ${serverInfo.version}; here you are ${viewer.name} (${viewer.roles.join(', ')})`);

  say.step('Subscribing to the phases of the deployment and the health of the agent, before either exists');
  run.observer = observe(client, names, say);
  await Promise.race([run.observer.opened, run.observer.failed]);

  await meetAgent(run, run.observer);
  const running = await deploy(run, run.observer);
  await lookAtPage(run);
  await race(run, running);
  await loseAgent(run, run.observer, serverInfo.heartbeatTimeoutSeconds);
  await remove(run, run.observer);
  await Promise.race([checkOrder(run.observer), run.observer.failed]);
}

async function meetAgent(run: Run, observer: Observer): Promise<void> {
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
async function deploy(run: Run, observer: Observer): Promise<DeploymentPartsFragment> {
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
  run.program = await startProgram(PROGRAM, names.release);
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

async function lookAtPage({ say, program }: Run): Promise<void> {
  if (!program) throw new DemoFailure('There is no program to look at.');
  say.step(`Fetching ${program.url}/`);
  const text = await (await fetch(program.url)).text();
  const [, title] = /<h1>(.*?)<\/h1>/.exec(text) ?? [];
  if (title !== 'Hello from Slipway')
    throw new DemoFailure(`The page is not the program's: ${text.slice(0, 200)}`);
  say.note(`“${title}”`);
}

/** Two controllers report on the same version at the same moment. */
async function race(run: Run, running: DeploymentPartsFragment): Promise<void> {
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
  if (!conflict || !winner || conflicts.length !== 1)
    throw new DemoFailure(`Of two racing patches ${winners.length} won.`);
  if (conflict.currentVersion !== winner.version)
    throw new DemoFailure('The conflict does not show the winner’s version.');
  const raced = conflict.current.status.conditions.find(({ type }) => type === 'Raced');
  say.note(
    `one made version ${winner.version}; the other got VersionConflict with currentVersion ${conflict.currentVersion} and the fresh object (${raced?.message ?? ''})`,
  );
  run.deployment = winner;
}

async function loseAgent({ say, agent }: Run, observer: Observer, timeoutSeconds: number): Promise<void> {
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

async function remove(run: Run, observer: Observer): Promise<void> {
  const { client, say, deployment } = run;
  if (!deployment) throw new DemoFailure('There is no deployment to delete.');
  say.step('Asking to delete the deployment; its controller ends the process, then reports that');
  const waited = waitForDeployment(client, { id: deployment.id }, { goal: 'DELETED', timeoutMs: 30_000 });
  waited.catch(() => undefined);
  await takeDown(run, await requestDeletion(client, deployment.id));
  run.deployment = undefined;
  await observer.phase('DELETED', TOLD_MS);
  await waited;
  await run.agent?.deregister();
  run.agent = undefined;
}

async function takeDown(run: Run, deletable: DeploymentPartsFragment): Promise<void> {
  const deleting = await reportAnyway(run.client, deletable, { phase: 'DELETING', reason: 'ProcessStops' });
  await run.program?.stop();
  run.program = undefined;
  await reportAnyway(run.client, deleting, { phase: 'DELETED', reason: 'ProcessStopped', runtime: null });
}

/** Everything came by the streams, in this order, and nothing besides. */
async function checkOrder({ phases, healths }: Observer): Promise<void> {
  const expected = [
    [
      phases,
      ['PENDING', 'INITIAL_SETUP', 'PROVISIONING', 'RUNNING', 'DELETE_PENDING', 'DELETING', 'DELETED'],
    ],
    [healths.slice(0, 4), ['READY', 'CONGESTED', 'READY', 'UNAVAILABLE']],
  ] as const;
  for (const [told, wanted] of expected) {
    if (told.join() !== wanted.join())
      throw new DemoFailure(`The stream told ${told.join(', ')} instead of ${wanted.join(', ')}.`);
  }
}

function explain(error: unknown, url: string): string {
  if (error instanceof SlipwayRequestError && error.code === 'NETWORK') {
    return `No server answers at ${url}. Start one with \`npm start\` in another terminal, then run \`npm run demo\` again. Elsewhere: set SLIPWAY_URL.`;
  }
  if (
    error instanceof SlipwayRequestError &&
    (error.code === 'UNAUTHENTICATED' || error.code === 'FORBIDDEN')
  ) {
    return `${url} does not let the demo in: ${error.message} Set SLIPWAY_TOKEN to a token with the role ADMIN.`;
  }
  return `The demo failed: ${error instanceof Error ? error.message : String(error)}`;
}

/** As much as can be had in a few seconds; what is left is named. */
async function cleanUp(run: Run): Promise<void> {
  await run.program?.stop();
  const { client, deployment, agent } = run;
  const work = async (): Promise<void> => {
    if (deployment) await takeDown(run, await requestDeletion(client, deployment.id));
    await agent?.deregister();
  };
  if (!deployment && !agent) return;
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('no answer in time')), CLEANUP_MS);
  });
  try {
    await Promise.race([work(), timeout]);
    process.stderr.write('Its deployment and its agent are deleted again.\n');
  } catch (error) {
    const left = [deployment && `deployment ${deployment.name}`, agent && `agent ${run.names.agent}`]
      .filter(Boolean)
      .join(' and ');
    process.stderr.write(
      `Left behind: ${left} (${error instanceof Error ? error.message : String(error)}).\n`,
    );
  } finally {
    clearTimeout(timer);
  }
}
