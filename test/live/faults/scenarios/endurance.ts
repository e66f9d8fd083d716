import { FAULT_NAMES, strike, type FaultName } from '../faults.js';
import { wait, withRun, type Run } from '../run.js';
import { scenario } from '../scenario.js';

/** Of a hundred events one makes its reader go away and come back. */
const LEAVES = 0.01;

/** The last server is spared what ends a process: its memory is what is looked at. */
const ENDS_A_PROCESS: readonly FaultName[] = [
  'killed before a commit',
  'killed after a commit',
  'killed before a write',
  'killed after a write',
  'replays delayed',
  'server killed',
  'drained',
];
const HEAP = 'nodejs_heap_size_used_bytes';
const HEAP_GROWTH_MAX = 40e6;

/** Work for a long time, with a random fault now and then. */
export const endurance = scenario({
  name: 'endurance',
  shows: 'hours with a fault each 30 s: nothing uncaught, no close 4500, nothing lost, a flat heap',
  small: { minutes: 0.1, everySeconds: 1, servers: 2, clients: 8, paceMs: 10 },
  full: { minutes: 60, everySeconds: 30, servers: 3, clients: 24, paceMs: 200 },
  minutes: 'minutes',
  run: (context, size) =>
    withRun(context, { servers: size.servers, objects: 30 }, async (run) => {
      await run.openMany(size.clients, { leaves: LEAVES });
      run.write(4, { paceMs: size.paceMs });
      run.writeBeside({ paceMs: size.paceMs });
      const endMs = performance.now() + size.minutes * 60_000;
      const heaps: number[] = [];
      while (performance.now() < endMs) {
        await wait(size.everySeconds * 1_000);
        const name = run.random.pick(FAULT_NAMES);
        await strike(run, name, victim(run, name));
        await run.progress(5);
        heaps.push(await heap(run));
        context.say?.(`${name}; ${run.acknowledged} acknowledged, heap ${(heaps.at(-1) ?? 0).toFixed(1)} MB`);
      }
      // The least of several: a heap is as large as its last collection left it.
      const third = Math.ceil(heaps.length / 3);
      const early = Math.min(...heaps.slice(0, third));
      const late = Math.min(...heaps.slice(-third));
      run.count('heapEarlyMB', early);
      run.count('heapLateMB', late);
      if (late - early > HEAP_GROWTH_MAX / 1e6) run.problem(`the heap grew from ${early} MB to ${late} MB`);
      run.atLeast(
        'faults',
        Math.floor((size.minutes * 60) / size.everySeconds / 4),
        run.recorder.count('fault'),
      );
      run.atLeast('acknowledged', heaps.length * 5, run.acknowledged);
    }),
});

function victim(run: Run, name: FaultName): Run['fleet']['servers'][number] {
  const { servers } = run.fleet;
  return run.random.pick(
    ENDS_A_PROCESS.includes(name) && servers.length > 1 ? servers.slice(0, -1) : servers,
  );
}

async function heap({ fleet }: Run): Promise<number> {
  return ((await fleet.servers.at(-1)?.metric(HEAP)) ?? 0) / 1e6;
}
