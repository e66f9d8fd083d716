import { createRecorder, type Deed, type Recorder } from '../history.js';
import { FAULTS } from '../../../support/fault-proxy.js';
import { wait, withRun, type Run } from '../run.js';
import { scenario } from '../scenario.js';
import type { StreamClient } from '../stream-client.js';

/** Writers wait for readers that are so far behind: further back than the log resumes from is no test of order. */
const LAG_MAX = 50_000;
const LATE_MS = 600_000;

/**
 * More changes than a history can hold: each reader judges what it is told as it comes. Every change of these objects is a
 * transition, so one that takes every transition must see each version exactly one above the last.
 */
export const chains = scenario({
  name: 'chains',
  shows: 'the versions of every object form a chain on every reader, over resumes',
  small: { changes: 6_000, objects: 60, readers: 6, servers: 2, cutEvery: 1_500, writers: 3 },
  full: { changes: 1_000_000, objects: 1_000, readers: 6, servers: 2, cutEvery: 20_000, writers: 4 },
  rounds: 'changes',
  run: (context, size) =>
    withRun(context, { servers: size.servers, objects: size.objects }, async (run) => {
      const after = await run.fleet.head();
      const readers = Array.from({ length: size.readers }, (_, at) => chainReader(run, at, after));
      await run.until(() => readers.every(({ client }) => client.open), 'all readers are there');
      const slowest = () =>
        Math.min(...readers.filter(({ client }) => client.mode === 'EVERY').map(({ client }) => client.told));
      const stopped = { done: 0, times: 0 };
      const written = () => stopped.done + run.writers.reduce((sum, writer) => sum + writer.done, 0);
      writeOn(run, size);
      let cut = 0;
      while (written() < size.changes) {
        await wait(20);
        if (written() - slowest() > LAG_MAX) {
          const all = run.writers.splice(0);
          await Promise.all(all.map((writer) => writer.stop()));
          stopped.done += all.reduce((sum, { done }) => sum + done, 0);
          stopped.times += 1;
          await run.until(() => stopped.done - slowest() < LAG_MAX / 2, 'the readers come nearer', LATE_MS);
          writeOn(run, size);
        }
        if (written() < (cut + 1) * size.cutEvery) continue;
        cut += 1;
        const fault = run.random.pick(FAULTS);
        const server = run.fleet.any(run.random);
        run.fault(fault, server.name);
        server.api.cut(fault, () => run.random.next() < 0.5);
        if (cut % 5 === 0) context.say?.(`${written()} changes, ${run.resumes} resumes`);
      }
      await Promise.all(run.writers.map((writer) => writer.stop()));
      const stored = await run.fleet.readStored();
      await run.until(
        () =>
          readers.every(({ newest }) =>
            [...stored].every(([object, version]) => newest.get(object) === version),
          ),
        'all readers have come to the end',
        LATE_MS,
      );
      run.count('waitsForReaders', stopped.times);
      run.atMost(
        'violations',
        0,
        readers.reduce((sum, { violations }) => sum + violations, 0),
      );
      run.atLeast('written', size.changes, written());
      run.atLeast(
        'checked',
        size.changes * (size.readers / 2),
        readers.reduce((sum, { checked }) => sum + checked, 0),
      );
      run.atLeast('faults', Math.floor(size.changes / size.cutEvery) - 1, run.recorder.count('fault'));
    }),
});

/** Each has objects of its own, so that none ever waits for another. */
function writeOn(run: Run, { objects, writers }: { objects: number; writers: number }): void {
  const share = Math.ceil(objects / writers);
  for (let from = 0; from < objects; from += share) {
    run.writeBeside({
      objects: run.fleet.objects.slice(from, from + share),
      paceMs: 0,
      most: Math.min(40, share),
      holding: 0,
      atOnce: true,
    });
  }
}

interface ChainReader {
  readonly client: StreamClient;
  readonly newest: ReadonlyMap<string, number>;
  readonly checked: number;
  readonly violations: number;
}

function chainReader(run: Run, at: number, after: string): ChainReader {
  const newest = new Map<string, number>(run.fleet.objects.map((object) => [object, 1]));
  const mode = at % 3 === 2 ? 'LATEST' : 'EVERY';
  let checked = 0;
  let violations = 0;
  const judge = (deed: Deed, who: string): void => {
    if (deed.type === 'snapshot') for (const [object, version] of deed.objects) newest.set(object, version);
    if (deed.type !== 'event') return;
    checked += 1;
    const before = newest.get(deed.object) ?? 0;
    if (mode === 'EVERY' ? deed.version !== before + 1 : deed.version <= before) {
      violations += 1;
      if (violations <= 5) run.problem(`${who}: ${deed.object}@${deed.version} after @${before}`);
    }
    newest.set(deed.object, deed.version);
  };
  const nothing = createRecorder();
  const recorder: Recorder = { ...nothing, count: () => 0, add: (who, _server, deed) => judge(deed, who) };
  const client = run.open(mode, { recorder, ...(mode === 'EVERY' ? { after } : {}) });
  return {
    client,
    newest,
    get checked() {
      return checked;
    },
    get violations() {
      return violations;
    },
  };
}
