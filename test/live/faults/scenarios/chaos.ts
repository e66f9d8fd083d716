import { FAILPOINTS, type Failpoint } from '../../../../src/kernel/failpoints.js';
import { FAULT_NAMES, strike } from '../faults.js';
import { withRun, type Run, type RunContext, type Verdict } from '../run.js';
import { scenario } from '../scenario.js';

/** Of a hundred events one makes its reader go away and come back. */
const LEAVES = 0.01;

/** Every kind of fault in an order that the seed decides, with readers and writers that go from server to server. */
export const chaos = scenario({
  name: 'chaos',
  shows: 'all guarantees hold over every kind of fault, in random order',
  small: { runs: 1, servers: 2, clients: 8, writers: 4, faults: FAULT_NAMES.length, between: 5 },
  full: { runs: 200, servers: 3, clients: 24, writers: 6, faults: FAULT_NAMES.length, between: 30 },
  rounds: 'runs',
  faults: FAULT_NAMES,
  async run(context, size) {
    const verdicts: Verdict[] = [];
    for (let round = 0; round < size.runs; round += 1) {
      const one = await once({ ...context, seed: context.seed + round }, size);
      verdicts.push(one);
      context.say?.(
        `run ${round + 1} of ${size.runs}: ${one.problems.length} problems, ${one.seconds.toFixed(1)} s`,
      );
      if (one.problems.length > 0) break;
    }
    return total(verdicts, context);
  },
});

type ChaosSize = { servers: number; clients: number; writers: number; faults: number; between: number };

function once(context: RunContext, size: ChaosSize): Promise<Verdict> {
  return withRun(context, { servers: size.servers, objects: 12 }, async (run) => {
    await run.openMany(size.clients, { leaves: LEAVES });
    run.write(size.writers, { paceMs: 2 });
    run.writeBeside({ paceMs: 15 });
    await run.progress(size.between);
    const names = shuffled(run);
    for (let at = 0; at < size.faults; at += 1) {
      const name = names[at % names.length];
      if (name === undefined) break;
      await strike(run, name);
      await run.progress(size.between);
    }
    run.atLeast('acknowledged', size.faults * size.between, run.acknowledged);
    run.atLeast('resumes', size.clients, run.resumes);
    run.atLeast('faults', size.faults, run.recorder.count('fault'));
    if (size.faults >= names.length) {
      for (const point of untouched(run)) run.problem(`no server came to ${point}`);
    }
  });
}

function untouched({ fleet }: Run): readonly Failpoint[] {
  const points = Object.keys(FAILPOINTS) as Failpoint[]; // the keys of that object
  return points.filter((point) => fleet.servers.every(({ hits }) => (hits.get(point) ?? 0) === 0));
}

function shuffled(run: Run): typeof FAULT_NAMES {
  const names = [...FAULT_NAMES];
  for (let at = names.length - 1; at > 0; at -= 1) {
    const other = run.random.below(at + 1);
    const [a, b] = [names[at], names[other]];
    if (a !== undefined && b !== undefined) [names[at], names[other]] = [b, a];
  }
  return names;
}

/** Several runs as one verdict. */
export function total(
  verdicts: readonly Verdict[],
  { scenario: name, seed }: { scenario: string; seed: number },
): Verdict {
  const counts: Record<string, number> = { runs: verdicts.length };
  for (const verdict of verdicts) {
    for (const [key, value] of Object.entries(verdict.counts)) {
      const before = counts[key] ?? 0;
      counts[key] = key.endsWith('Ms') ? Math.max(before, value) : before + value;
    }
  }
  return {
    scenario: name,
    seed: verdicts.find(({ problems }) => problems.length > 0)?.seed ?? seed,
    problems: verdicts.flatMap(({ problems }) => problems),
    counts,
    seconds: verdicts.reduce((sum, { seconds }) => sum + seconds, 0),
  };
}
