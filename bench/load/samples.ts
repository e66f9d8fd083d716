/** What is known of each stretch of the load, and how the minutes compare. */
import { figure, ratio, type Table } from '../support/report.js';

/** From the server's own metrics, since the last time they were asked for. */
interface ProcessSample {
  readonly loopP50Ms: number;
  readonly loopP99Ms: number;
  readonly loopMaxMs: number;
  readonly residentMib: number;
  readonly heapMib: number;
}

/** Rates are a second. */
export interface Sample extends ProcessSample {
  readonly reads: number;
  readonly patches: number;
  readonly beats: number;
  readonly deliveries: number;
  /** Of a core, that the server took; null where the system does not tell. */
  readonly core: number | null;
  readonly patchP99Ms: number;
}

const MS = 1_000;
const MIB = 1 / 1_048_576;

/** The delay of the event loop starts anew each time. */
export async function scrape(url: string): Promise<ProcessSample> {
  const text = await (await fetch(url)).text();
  const value = (name: string) => {
    const found = new RegExp(`^${name} (\\S+)$`, 'm').exec(text);
    if (!found) throw new Error(`${url} has no ${name}`);
    return Number(found[1]);
  };
  return {
    loopP50Ms: value('nodejs_eventloop_lag_p50_seconds') * MS,
    loopP99Ms: value('nodejs_eventloop_lag_p99_seconds') * MS,
    loopMaxMs: value('nodejs_eventloop_lag_max_seconds') * MS,
    residentMib: value('process_resident_memory_bytes') * MIB,
    heapMib: value('nodejs_heap_size_used_bytes') * MIB,
  };
}

export interface Minute {
  readonly title: string;
  readonly samples: readonly Sample[];
}

/** The first, the middle and the last; fewer if there are fewer. */
export function minutesOf(samples: readonly Sample[], samplesAMinute: number): Minute[] {
  const last = Math.floor(samples.length / samplesAMinute) - 1;
  return [...new Set([0, Math.floor(last / 2), last])].map((minute) => ({
    title: `minute ${minute + 1}`,
    samples: samples.slice(minute * samplesAMinute, (minute + 1) * samplesAMinute),
  }));
}

const COLUMNS: readonly (readonly [head: string, of: (samples: readonly Sample[]) => number | null])[] = [
  ['reads a second', (samples) => mean(samples, ({ reads }) => reads)],
  ['patches a second', (samples) => mean(samples, ({ patches }) => patches)],
  ['deliveries a second', (samples) => mean(samples, ({ deliveries }) => deliveries)],
  ['beats a second', (samples) => mean(samples, ({ beats }) => beats)],
  ['patch p99 ms', (samples) => mean(samples, ({ patchP99Ms }) => patchP99Ms)],
  ['core', (samples) => mean(samples, ({ core }) => core ?? Number.NaN)],
  ['event loop p50 ms', (samples) => mean(samples, ({ loopP50Ms }) => loopP50Ms)],
  ['p99 ms', (samples) => mean(samples, ({ loopP99Ms }) => loopP99Ms)],
  ['max ms', (samples) => Math.max(...samples.map(({ loopMaxMs }) => loopMaxMs))],
  ['resident MiB', (samples) => mean(samples, ({ residentMib }) => residentMib)],
  // What is garbage comes and goes; the least of a minute is nearest to what is kept.
  ['heap MiB, least', leastHeap],
];

export function tableOf(minutes: readonly Minute[]): Table {
  return {
    title: `Means of a minute of samples of 10 s`,
    head: ['', ...COLUMNS.map(([head]) => head)],
    rows: minutes.map(({ title, samples }) => [title, ...COLUMNS.map(([, of]) => figure(of(samples)))]),
  };
}

/** The last minute to the middle one: the first warms up. */
export function trendOf(minutes: readonly Minute[]): string[] {
  const [middle, last] = minutes.slice(-2);
  if (minutes.length < 3 || !middle || !last) return [];
  const of = (value: (sample: Sample) => number) =>
    ratio(mean(last.samples, value) ?? 0, mean(middle.samples, value) ?? 0);
  return [
    `Last minute to the middle one: event loop p99 ${of(({ loopP99Ms }) => loopP99Ms)}, resident ` +
      `${of(({ residentMib }) => residentMib)}, least heap ${ratio(leastHeap(last.samples), leastHeap(middle.samples))}.`,
  ];
}

function leastHeap(samples: readonly Sample[]): number {
  return Math.min(...samples.map(({ heapMib }) => heapMib));
}

/** Null where the system does not tell. */
function mean(samples: readonly Sample[], value: (sample: Sample) => number): number | null {
  const sum = samples.reduce((total, sample) => total + value(sample), 0);
  return Number.isNaN(sum) ? null : sum / samples.length;
}
