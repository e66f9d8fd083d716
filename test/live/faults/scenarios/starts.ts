import { wait, withRun, type Run } from '../run.js';
import { scenario } from '../scenario.js';

const START_MS = 1_500;
const ATTEMPTS_MAX = 20;

/** SIGTERM at any moment of a start. */
export const starts = scenario({
  name: 'starts',
  shows: 'a server that is told to stop while it starts does so in order, and leaves no session behind',
  small: { starts: 3, servers: 2 },
  full: { starts: 60, servers: 2 },
  rounds: 'starts',
  run: (context, size) =>
    withRun(context, { servers: size.servers, objects: 4 }, async (run) => {
      run.write(1, { paceMs: 10 });
      const [, server] = run.fleet.servers;
      if (!server) throw new RangeError('a second server is needed');
      await server.signal('SIGTERM');
      let orderly = 0;
      let made = 0;
      // One that came too early for any line of ours to have run shows nothing.
      for (; made < size.starts || (orderly === 0 && made < ATTEMPTS_MAX); made += 1) {
        run.fault('SIGTERM in a start', server.name);
        const starting = server.start().catch(() => undefined); // it is ended below
        await wait(run.random.next() * START_MS);
        await server.signal('SIGTERM');
        await starting;
        // Before its first line has run, nothing can answer the signal but Node itself.
        if (server.lastExit === '0') orderly += 1;
        else if (server.lastExit !== 'SIGTERM') {
          run.problem(`a start that was stopped ended with ${server.lastExit}`);
        }
        await run.until(async () => (await sessions(run)) <= sessionsOfOne, 'its sessions are gone');
      }
      await run.progress(5);
      run.atLeast('endedInOrder', Math.ceil(size.starts / 6), orderly);
      run.atLeast('faults', size.starts, run.recorder.count('fault'));
    }),
});

/** The two pools of the other server, its feed, and what listens and notifies. */
const sessionsOfOne = 2 * 10 + 3;

async function sessions(run: Run): Promise<number> {
  const [row] = await run.fleet.sql<{ count: number }>(
    `select count(*)::int as count from pg_stat_activity where datname = current_database() and application_name like 'slipway%'`,
  );
  return row?.count ?? 0;
}
