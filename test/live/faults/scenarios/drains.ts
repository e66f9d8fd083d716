import { connect } from 'node:net';

import { withRun, type Run } from '../run.js';
import { scenario } from '../scenario.js';
import type { Server } from '../server-process.js';

const LOOK_MS = 30;

/** SIGTERM under load with a peer up, behind something that asks for readiness as a load balancer does. */
export const drains = scenario({
  name: 'drains',
  shows:
    'a drain fails no mutation, spreads its closes, waits for no body that never comes, and loses nothing',
  small: { servers: 2, clients: 20, drains: 1, noticeSeconds: 1, spreadSeconds: 1, judgeTime: 0, paceMs: 0 },
  full: {
    servers: 2,
    clients: 100,
    drains: 20,
    noticeSeconds: 2,
    spreadSeconds: 5,
    judgeTime: 1,
    paceMs: 100,
  },
  rounds: 'drains',
  async run(context, size) {
    const env = {
      SLIPWAY_DRAIN_NOTICE_SECONDS: String(size.noticeSeconds),
      SLIPWAY_DRAIN_SPREAD_SECONDS: String(size.spreadSeconds),
    };
    return withRun(context, { servers: size.servers, objects: 40, env }, async (run) => {
      const balancer = balance(run);
      try {
        await run.openMany(size.clients);
        run.write(8, { paceMs: size.paceMs, door: () => run.random.pick(balancer.ready), answerMs: 30_000 });
        run.writeBeside({ paceMs: 50 });
        const crowds: number[] = [];
        for (let drain = 0; drain < size.drains; drain += 1) {
          const server = run.fleet.servers[drain % size.servers];
          if (!server) break;
          await run.progress(50);
          neverEnding(server);
          run.fault('drained', server.name);
          const startedMs = performance.now();
          await server.signal('SIGTERM');
          const goneMs = performance.now();
          crowds.push(crowd(run, server, startedMs, size.spreadSeconds));
          await run.progress(50);
          const wentOnMs = performance.now();
          await server.start();
          await run.until(() => balancer.ready.includes(server), `${server.name} is back`);
          const seconds = [goneMs - startedMs, wentOnMs - goneMs, performance.now() - wentOnMs];
          const [gone, wentOn, back] = seconds.map((ms) => (ms / 1_000).toFixed(1));
          context.say?.(
            `drain ${drain + 1}: ${gone} s, ${wentOn} s for 50 mutations, ${back} s to come back`,
          );
        }
        for (const { name, said } of run.fleet.servers) {
          if (said.includes('drain cut operations')) run.problem(`${name} waited for what never ended`);
        }
        run.atMost('failedMutations', 0, run.recorder.count('unknown'));
        run.atLeast('closedForRestart', size.drains, endings(run, '1012').length);
        run.count('percentInBusiestFifth', Math.max(...crowds));
        if (size.judgeTime === 1 && Math.max(...crowds) > 60) run.problem('the closes were not spread');
        run.atLeast('acknowledged', size.drains * 100, run.acknowledged);
      } finally {
        balancer.stop();
      }
    });
  },
});

/** The servers that say they are ready, asked again and again. */
function balance(run: Run): { readonly ready: readonly Server[]; stop(): void } {
  let ready: readonly Server[] = run.fleet.servers;
  const timer = setInterval(() => {
    void Promise.all(run.fleet.servers.map(async (server) => ((await server.ready()) ? [server] : []))).then(
      (found) => {
        const now = found.flat();
        if (now.length > 0) ready = now;
      },
    );
  }, LOOK_MS);
  return {
    get ready() {
      return ready;
    },
    stop: () => clearInterval(timer),
  };
}

/** A request that says how long its body is, and never sends it. */
function neverEnding(server: Server): void {
  const { port } = new URL(server.url);
  const socket = connect(Number(port), '127.0.0.1');
  socket.on('error', () => undefined); // it is cut at the end of the drain
  socket.write(
    `POST /graphql HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{`,
  );
}

function endings({ clients }: Run, code: string): readonly { server: string; atMs: number }[] {
  return clients.flatMap((client) => client.endings.filter((ending) => ending.code === code));
}

/** How many percent of the closes came in the busiest fifth of the time over which they are to be spread. */
function crowd(run: Run, server: Server, sinceMs: number, spreadSeconds: number): number {
  const closes = endings(run, '1012').filter(
    (ending) => ending.server === server.name && ending.atMs >= sinceMs,
  );
  const times = closes.map(({ atMs }) => atMs).sort((a, b) => a - b);
  const fifth = (spreadSeconds * 1_000) / 5;
  const most = Math.max(
    0,
    ...times.map((from, at) => times.filter((one, other) => other >= at && one < from + fifth).length),
  );
  return times.length === 0 ? 0 : (100 * most) / times.length;
}
