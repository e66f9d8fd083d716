import { withRun, type Run } from '../run.js';
import { scenario } from '../scenario.js';

const LATE_MS = 10_000;

/** Everybody is cut at one moment, and comes back at one moment. */
export const herd = scenario({
  name: 'herd',
  shows: 'sockets that are all cut at once resume from memory, 95 % in 10 s, without a snapshot read',
  small: { sockets: 150, servers: 2, judgeTime: 0 },
  full: { sockets: 2_000, servers: 2, judgeTime: 1 },
  run: (context, size) =>
    withRun(context, { servers: size.servers, objects: 20 }, async (run) => {
      const after = await run.fleet.head();
      run.write(2, { paceMs: 100 });
      // In groups, so that their coming is not what is looked at.
      for (let made = 0; made < size.sockets; made += 1) {
        const transport = 'websocket';
        if (made % 2 === 0) run.open('EVERY', { after, transport, idleMs: 30_000 });
        else run.open('LATEST', { transport, idleMs: 30_000 });
        if (made % 100 === 99) {
          await run.until(() => run.clients.every((client) => client.open), 'a group is open');
        }
      }
      await run.until(
        () => run.clients.every(({ cursor, told }) => cursor !== null && told > 0),
        'everybody was told something',
      );
      const readsBefore = await snapshotReads(run);
      const resumed = run.resumes;
      const startedMs = performance.now();
      run.fault('everybody cut');
      let cut = 0;
      for (const server of run.fleet.servers) cut += server.api.cut('RST');
      let inTime = 0;
      await run.until(() => {
        if (performance.now() - startedMs <= LATE_MS) inTime = run.resumes - resumed;
        return run.resumes - resumed >= size.sockets && run.clients.every((client) => client.open);
      }, 'everybody is back');
      run.count('secondsUntilAll', (performance.now() - startedMs) / 1_000);
      run.count('percentIn10s', (100 * inTime) / size.sockets);
      if (size.judgeTime === 1 && inTime < 0.95 * size.sockets) {
        run.problem(`only ${inTime} of ${size.sockets} came back in time`);
      }
      await run.progress(20);
      run.atMost('snapshotReads', 0, (await snapshotReads(run)) - readsBefore);
      run.atLeast('cut', size.sockets, cut);
    }),
});

async function snapshotReads({ fleet }: Run): Promise<number> {
  const reads = await Promise.all(
    fleet.servers.map((server) => server.metric('slipway_feed_snapshot_reads')),
  );
  return reads.reduce((sum, count) => sum + count, 0);
}
