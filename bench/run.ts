/** `npm run bench -- <name> [options]`: measures and writes `bench/results/<name>.md` and `.json`. See README.md. */
import { benchDelay, benchFanOut } from './fanout/bench.js';
import { benchGrowth } from './growth/bench.js';
import { benchHeartbeats } from './heartbeats/bench.js';
import { benchLoad } from './load/bench.js';
import { benchPatches } from './patches/bench.js';
import { benchReads } from './reads/bench.js';
import { benchReplicas } from './replicas/bench.js';
import { benchStart } from './start/bench.js';
import { Closing } from './support/closing.js';
import { parseOptions, type Options } from './support/options.js';
import { publish } from './support/readme.js';
import { writeReport, type Report } from './support/report.js';

const BENCHMARKS: Readonly<Record<string, (options: Options, closing: Closing) => Promise<Report>>> = {
  patches: benchPatches,
  fanout: benchFanOut,
  reads: benchReads,
  delay: benchDelay,
  heartbeats: benchHeartbeats,
  growth: benchGrowth,
  replicas: benchReplicas,
  start: benchStart,
  load: benchLoad,
};

async function main(): Promise<void> {
  const { names, options } = parseOptions(process.argv.slice(2));
  const known = Object.keys(BENCHMARKS);
  const unknown = names.find((name) => !known.includes(name));
  if (names.length === 0 || unknown !== undefined) {
    throw new Error(
      `Name one or more of ${known.join(', ')}${unknown === undefined ? '' : `; not ${unknown}`}.`,
    );
  }
  for (const name of names) {
    const closing = new Closing();
    const interrupt = () => void closing.end().then(() => process.exit(130));
    // Not `once`: the shell, npm and tsx may each pass the signal on, and PostgreSQL must not be left behind.
    process.on('SIGINT', interrupt);
    process.on('SIGTERM', interrupt);
    try {
      const report = await BENCHMARKS[name]?.(options, closing);
      if (report) writeReport(report);
      if (report && options.publish) publish(report);
    } finally {
      process.off('SIGINT', interrupt);
      process.off('SIGTERM', interrupt);
      await closing.end();
    }
  }
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exitCode = 1;
});
