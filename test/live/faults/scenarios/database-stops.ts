import { withRun } from '../run.js';
import { scenario } from '../scenario.js';

/** PostgreSQL is stopped hard while transactions run, and what was rolled back before gives its ids to others after it. */
export const databaseStops = scenario({
  name: 'database-stops',
  shows: 'every acknowledged mutation is there with exactly one change after hard stops of PostgreSQL',
  small: { servers: 2, clients: 6, stops: 2, between: 25 },
  full: { servers: 2, clients: 40, stops: 20, between: 300 },
  rounds: 'stops',
  run: (context, size) =>
    withRun(context, { servers: size.servers, objects: 12 }, async (run) => {
      await run.openMany(size.clients);
      run.write(6);
      run.writeBeside({ paceMs: 10 });
      for (let stop = 0; stop < size.stops; stop += 1) {
        await run.progress(size.between);
        const signal = stop % 2 === 0 ? 'SIGKILL' : 'SIGQUIT';
        run.fault(`database ${signal}`);
        await run.fleet.postgres.crash(signal);
      }
      await run.progress(size.between);
      run.atLeast('acknowledged', size.stops * size.between, run.acknowledged);
      run.atLeast('unknownOutcomes', size.stops, run.recorder.count('unknown'));
      run.atLeast('faults', size.stops, run.recorder.count('fault'));
    }),
});
