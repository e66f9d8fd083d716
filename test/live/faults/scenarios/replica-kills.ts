import { startAgents } from '../agents.js';
import { wait, withRun, type Run } from '../run.js';
import { scenario } from '../scenario.js';
import type { Server } from '../server-process.js';

/** One replica after the other dies, or sleeps and wakes up in a world that went on without it. */
export const replicaKills = scenario({
  name: 'replica-kills',
  shows:
    'the others carry on when a replica is killed or stands still, and one that wakes up writes nothing of yesterday',
  small: { servers: 3, clients: 9, kills: 1, sleeps: 1, silenceSeconds: 4, sleepSeconds: 5, judgeTime: 0 },
  full: { servers: 3, clients: 60, kills: 50, sleeps: 3, silenceSeconds: 5, sleepSeconds: 30, judgeTime: 1 },
  rounds: 'kills',
  run: (context, size) =>
    withRun(
      context,
      {
        servers: size.servers,
        objects: CONTESTED + size.servers,
        env: sweepsAfter(size.silenceSeconds),
      },
      async (run) => {
        await run.openMany(size.clients);
        // A client gives up a server that does not answer; the others must not wait for it.
        const objects = run.fleet.objects.slice(0, CONTESTED);
        run.write(6, { paceMs: 10, objects });
        run.writeBeside({ paceMs: 50, objects });
        askEach(run);
        const agents = await startAgents(run, 3);
        const standstills: number[] = [];
        for (let kill = 0; kill < size.kills; kill += 1) {
          const server = run.random.pick(run.fleet.servers);
          run.fault('server killed', server.name);
          standstills.push(await killOne(run, server));
          await server.start();
          await run.progress(10);
          if (kill % 10 === 9) context.say?.(`${kill + 1} kills`);
        }
        for (let sleep = 0; sleep < size.sleeps; sleep += 1) await sleepOne(run, size.sleepSeconds);
        await agents.stop();
        const p95 = standstills.sort((a, b) => a - b)[Math.floor(standstills.length * 0.95)] ?? 0;
        run.count('msUntilOthersCarriedOnP95', p95);
        if (size.judgeTime === 1 && p95 > 2_000) {
          run.problem(`the others took ${Math.round(p95)} ms at p95 to carry on`);
        }
        const { wrong, real } = await agents.silences(size.silenceSeconds);
        for (const text of wrong.slice(0, 5)) run.problem(text);
        run.atMost('agentsCalledUnavailable', 0, wrong.length);
        run.count('realSilences', real);
        run.atLeast('beats', 10 * (size.kills + size.sleeps), agents.beats);
        run.atLeast('acknowledged', 20 * size.kills, run.acknowledged);
        run.atLeast('faults', size.kills + size.sleeps, run.recorder.count('fault'));
      },
    ),
});

/** Deployments over which writers race; behind them lies one for each server. */
const CONTESTED = 12;

/** One writer for each server, on an object of its own: what it waits for is that server, and no version that it lost. */
function askEach(run: Run): void {
  for (const [at, server] of run.fleet.servers.entries()) {
    const objects = run.fleet.objects.slice(CONTESTED + at, CONTESTED + at + 1);
    run.write(1, { paceMs: 20, objects, door: () => server });
  }
}

/** Milliseconds until all others have acknowledged what was sent after the kill. */
async function killOne(run: Run, server: Server): Promise<number> {
  const from = run.recorder.entries.length;
  const startedMs = performance.now();
  await server.signal('SIGKILL');
  const others = run.fleet.servers.filter((other) => other !== server);
  await run.until(() => others.every(({ name }) => acknowledgedBy(run, name, from)), 'the others carry on');
  return performance.now() - startedMs;
}

/** Below the time that a replica sleeps: its sweep wakes up believing that nobody has beaten since. */
const sweepsAfter = (silenceSeconds: number): Readonly<Record<string, string>> => ({
  SLIPWAY_HEARTBEAT_TIMEOUT_SECONDS: String(silenceSeconds),
  SLIPWAY_HEARTBEAT_INTERVAL_SECONDS: '0.2',
  SLIPWAY_AGENT_SWEEP_SECONDS: '0.1',
});

async function sleepOne(run: Run, seconds: number): Promise<void> {
  const server = run.random.pick(run.fleet.servers);
  run.fault('server stopped and woken', server.name);
  await server.signal('SIGSTOP');
  try {
    await wait(seconds * 500);
    await run.progress(5);
    await wait(seconds * 500);
  } finally {
    await server.signal('SIGCONT');
  }
  await run.until(() => server.ready(), `${server.name} is awake`);
  await run.progress(20);
}

function acknowledgedBy({ recorder }: Run, server: string, from: number): boolean {
  const sent = new Set<string>();
  for (const entry of recorder.entries.slice(from)) {
    if (entry.server !== server) continue;
    if (entry.type === 'sent') sent.add(entry.op);
    if (entry.type === 'acknowledged' && sent.has(entry.op)) return true;
  }
  return false;
}
