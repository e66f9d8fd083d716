import { FAULTS } from '../../../support/fault-proxy.js';
import { withRun } from '../run.js';
import { scenario } from '../scenario.js';

/** All connections are cut in every round, each in a way of its own; now and then a server dies with them. */
export const resumes = scenario({
  name: 'resumes',
  shows: 'clients that are cut at random resume on any server with 0 lost and 0 repeated',
  small: {
    clients: 24,
    rounds: 4,
    servers: 2,
    killEvery: 2,
    settle: 20,
    leavesPerMille: 10,
    idleMs: 3_000,
    besideMs: 100,
    paceMs: 60,
  },
  full: {
    clients: 500,
    rounds: 50,
    servers: 2,
    killEvery: 10,
    settle: 10,
    leavesPerMille: 1,
    idleMs: 6_000,
    besideMs: 1_000,
    paceMs: 150,
  },
  rounds: 'rounds',
  run: (context, size) =>
    withRun(context, { servers: size.servers, objects: 20 }, async (run) => {
      await run.openMany(size.clients, {
        leaves: size.leavesPerMille / 1_000,
        idleMs: size.idleMs,
        connectMs: 2 * size.idleMs,
      });
      run.write(2, { paceMs: size.paceMs });
      run.writeBeside({ paceMs: size.besideMs });
      for (let round = 1; round <= size.rounds; round += 1) {
        const before = new Map(run.clients.map((client) => [client, client.resumes]));
        for (const server of run.fleet.servers) {
          let fault = run.random.pick(FAULTS);
          run.fault(fault, server.name);
          server.api.cut(fault, () => run.random.next() < 0.5);
          fault = run.random.pick(FAULTS);
          run.fault(fault, server.name);
          server.api.cut(fault);
        }
        if (round % size.killEvery === 0) {
          const server = run.random.pick(run.fleet.servers);
          run.fault('server killed', server.name);
          await server.signal('SIGKILL');
          await server.start();
        }
        // Reads of the writers are cut as well: only streams count.
        await run.until(
          () => run.clients.every((client) => client.resumes > (before.get(client) ?? 0)),
          'everybody has resumed',
        );
        await run.progress(size.settle);
        if (round % 10 === 0) context.say?.(`round ${round}: ${run.resumes} resumes`);
      }
      run.atLeast('resumes', size.clients * size.rounds, run.resumes);
      run.atLeast('acknowledged', size.settle * size.rounds, run.acknowledged);
      run.atLeast('faults', size.rounds * 4, run.recorder.count('fault'));
    }),
});
