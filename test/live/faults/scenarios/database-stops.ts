import { withClient } from '../../../support/test-server.js';
import { wait, withRun, type Run } from '../run.js';
import { scenario } from '../scenario.js';

/** By then every feed has looked once more. */
const POLLED_MS = 1_000;

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
      writeOn(run);
      for (let stop = 0; stop < size.stops; stop += 1) {
        await run.progress(size.between);
        if (stop % 2 === 0) {
          // Nothing that commits may carry the ids of these to the disk: then they are given out again.
          await Promise.all(run.writers.splice(0).map((writer) => writer.stop()));
          await rollBack(run, 20);
          await wait(POLLED_MS);
        }
        const signal = stop % 2 === 0 ? 'SIGKILL' : 'SIGQUIT';
        run.fault(`database ${signal}`);
        await run.fleet.postgres.crash(signal);
        if (run.writers.length === 0) writeOn(run);
      }
      await run.progress(size.between);
      run.atLeast('acknowledged', size.stops * size.between, run.acknowledged);
      run.atLeast('unknownOutcomes', size.stops, run.recorder.count('unknown'));
      run.atLeast('faults', size.stops, run.recorder.count('fault'));
    }),
});

function writeOn(run: Run): void {
  run.write(6);
  run.writeBeside({ paceMs: 10 });
}

function rollBack({ fleet }: Run, times: number): Promise<void> {
  return withClient(fleet.database.connection, async (client) => {
    for (let time = 0; time < times; time += 1) {
      await client.query('begin');
      await client.query('select pg_current_xact_id()');
      await client.query('rollback');
    }
  });
}
