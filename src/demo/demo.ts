/**
 * `npm run demo`: deploys a real program through a running server, with nothing but the public API and the generated
 * client. Exits 0 only if everything it announces was seen to happen. Leaves a runtime and a release behind, which the
 * next run uses again; ends its child process in every case.
 */
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { createSlipwayClient, ServerInfoDocument } from '../client/index.js';
import { nodeWebSocket } from '../client/node.js';
import { loadConfig, type Config } from '../config/config.js';
import { systemClock } from '../kernel/clock.js';
import { DemoFailure } from './parts/controller.js';
import { explain } from './parts/explain.js';
import { observe } from './parts/observer.js';
import { cleanUp, type Run } from './parts/run.js';
import { saying } from './parts/say.js';
import { checkOrder, deploy, lookAtPage, loseAgent, meetAgent, race, remove } from './parts/steps.js';

/** Beside this file in dist/, where both are bundled. */
const PROGRAM = fileURLToPath(new URL('./hello.js', import.meta.url));
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
      if (condition === 'reconnecting') {
        say.live(`the connection is away, coming back by itself: ${worst?.reason ?? ''}`);
      }
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
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => reject(new DemoFailure(`Stopped by ${signal}.`)));
    }
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
  // After a signal, steps that nobody waits for any more still hold timers and streams: what is to be undone is undone.
  process.exit();
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
  const running = await deploy(run, run.observer, PROGRAM);
  await lookAtPage(run);
  await race(run, running);
  await loseAgent(run, run.observer, serverInfo.heartbeatTimeoutSeconds);
  await remove(run, run.observer);
  checkOrder(run.observer);
}
