import type { StreamClient } from '../stream-client.js';
import { wait, withRun, type Run } from '../run.js';
import { scenario } from '../scenario.js';

/** Watches that begin with a snapshot while everything changes: each must hold, at every moment, what its place covers. */
export const opens = scenario({
  name: 'opens',
  shows: 'a snapshot and what follows it fit together, under constant writes',
  small: { opens: 120, at: 6, servers: 2 },
  full: { opens: 10_000, at: 10, servers: 2 },
  rounds: 'opens',
  run: (context, size) =>
    withRun(context, { servers: size.servers, objects: 40 }, async (run) => {
      run.write(2, { paceMs: 5 });
      run.writeBeside({ paceMs: 2, most: 8 });
      let opened = 0;
      const openOn = async () => {
        while (opened < size.opens) {
          opened += 1;
          const client = run.open('LATEST');
          await followed(run, client);
          run.leave(client);
          if (opened % 1_000 === 0) context.say?.(`${opened} opens`);
        }
      };
      await Promise.all(Array.from({ length: size.at }, openOn));
      run.atLeast('snapshots', size.opens, run.recorder.count('snapshot'));
      run.atLeast('changesAfterSnapshots', size.opens, run.recorder.count('event'));
      run.atLeast('acknowledged', size.opens / 10, run.acknowledged);
    }),
});

/** Some changes behind the snapshot, or many. */
async function followed(run: Run, client: StreamClient): Promise<void> {
  const wanted = 1 + run.random.below(10);
  await run.until(() => client.told >= wanted, `${client.who} is told of ${wanted} changes`);
  await wait(0);
}
