/** What is compared with what, and how: rounds of all contenders take turns, so that a busy moment of the machine meets each. */
export interface Contender {
  readonly name: string;
  /** One stretch of about `seconds`. */
  round(seconds: number): Promise<Measurement>;
  stop(): Promise<void>;
}

export interface Measurement {
  /** Units of work a second: patches, requests, beats, deliveries. */
  readonly perSecond: number;
  /** CPU milliseconds a unit of the process under test; null where the system does not tell. PostgreSQL is not in it. */
  readonly cpuMs: number | null;
  /** Milliseconds for one unit, as its client saw it; null where units have no time of their own. */
  readonly latency: { readonly p50: number; readonly p99: number } | null;
  /** Of a core, that the load generator took; null where it is the process under test. Near 1 it is what is measured. */
  readonly generatorShare: number | null;
}

export interface Summary {
  readonly contender: string;
  readonly rounds: readonly Measurement[];
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly cpuMs: number | null;
  readonly p50: number | null;
  readonly p99: number | null;
  readonly generatorShare: number | null;
}

export interface Pace {
  readonly rounds: number;
  readonly seconds: number;
}

const WARM_UP_SECONDS = 2;

/** The first contender is the limit. Each warms up alone before the first round; what that gives is dropped. */
export async function compare(contenders: readonly Contender[], pace: Pace): Promise<Summary[]> {
  for (const contender of contenders) await contender.round(Math.min(WARM_UP_SECONDS, pace.seconds));
  const measured = new Map<Contender, Measurement[]>(contenders.map((contender) => [contender, []]));
  for (let round = 0; round < pace.rounds; round += 1) {
    // Forwards, then backwards: nobody always comes after the same neighbor.
    const order = round % 2 === 0 ? contenders : [...contenders].reverse();
    for (const contender of order) {
      const measurement = await contender.round(pace.seconds);
      measured.get(contender)?.push(measurement);
      process.stderr.write(`${contender.name}: ${Math.round(measurement.perSecond)} a second\n`);
    }
  }
  return [...measured].map(([contender, rounds]) => summarise(contender.name, rounds));
}

function summarise(contender: string, rounds: readonly Measurement[]): Summary {
  const rates = rounds.map(({ perSecond }) => perSecond);
  return {
    contender,
    rounds,
    median: median(rates) ?? 0,
    min: Math.min(...rates),
    max: Math.max(...rates),
    cpuMs: median(present(rounds.map(({ cpuMs }) => cpuMs))),
    p50: median(present(rounds.map(({ latency }) => latency?.p50 ?? null))),
    p99: median(present(rounds.map(({ latency }) => latency?.p99 ?? null))),
    generatorShare: median(present(rounds.map(({ generatorShare }) => generatorShare))),
  };
}

function present(values: readonly (number | null)[]): number[] {
  return values.filter((value) => value !== null);
}

/** Null of nothing. */
function median(values: readonly number[]): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle];
  if (upper === undefined) return null;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
}
