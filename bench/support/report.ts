/** Results as a Markdown table and as JSON, both under `bench/results/`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';

import type { Summary } from './contender.js';
import type { Options } from './options.js';

const RESULTS = fileURLToPath(new URL('../results/', import.meta.url));

export interface Group {
  /** What was the same for all: `embedded, 16 clients`. */
  readonly title: string;
  /** The unit of the rates: `patches`. */
  readonly unit: string;
  /** The limit first. */
  readonly summaries: readonly Summary[];
}

/** What is no comparison of contenders. */
export interface Table {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export interface Report {
  readonly name: string;
  readonly options: Options;
  readonly groups: readonly Group[];
  readonly tables?: readonly Table[];
  /** Only into the JSON. */
  readonly samples?: readonly object[];
  /** Further facts, one sentence each. */
  readonly notes: readonly string[];
}

const HEAD = [
  'case',
  'contender',
  'a second, median',
  'min–max',
  'to the limit',
  'best to best',
  'CPU ms a unit',
  'p50 ms',
  'p99 ms',
  'generator',
];
/** Of a core: above it, the load generator is what is measured. */
const GENERATOR_BUSY = 0.9;

export function machine(): string {
  return `${cpus().length} cores, Node ${process.versions.node}, ${process.platform} ${process.arch}`;
}

export function writeReport(report: Report): void {
  const markdown = [
    `# ${report.name}`,
    '',
    `${machine()}. Options: ${JSON.stringify(report.options)}.`,
    '',
    ...(report.groups.length === 0 ? [] : [comparison(report.groups), '']),
    ...(report.tables ?? []).flatMap(({ title, head, rows }) => [`${title}:`, '', table(head, rows), '']),
    ...[...report.notes, ...busyGenerators(report.groups)].map((note) => `- ${note}`),
    '',
  ].join('\n');
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(`${RESULTS}${report.name}.md`, markdown);
  writeFileSync(
    `${RESULTS}${report.name}.json`,
    `${JSON.stringify({ ...report, machine: machine() }, null, 2)}\n`,
  );
  process.stdout.write(`${markdown}\nWritten to bench/results/${report.name}.md and .json\n`);
}

function comparison(groups: readonly Group[]): string {
  const rows = groups.flatMap(({ title, unit, summaries }) => {
    const [limit] = summaries;
    return summaries.map((summary, index) => [
      index === 0 ? `${title}, ${unit}` : '',
      summary.contender,
      figure(summary.median),
      `${figure(summary.min)}–${figure(summary.max)}`,
      ratio(summary.median, limit?.median ?? 0),
      ratio(summary.max, limit?.max ?? 0),
      figure(summary.cpuMs),
      figure(summary.p50),
      figure(summary.p99),
      percent(summary.generatorShare),
    ]);
  });
  return table(HEAD, rows);
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function busyGenerators(groups: readonly Group[]): string[] {
  const busy = groups.flatMap(({ title, summaries }) =>
    summaries
      .filter(({ generatorShare }) => (generatorShare ?? 0) > GENERATOR_BUSY)
      .map(({ contender }) => `${contender} (${title})`),
  );
  return busy.length === 0
    ? []
    : [`The load generator, not the contender, set the rate of: ${busy.join(', ')}.`];
}

function percent(share: number | null): string {
  return share === null ? '–' : `${Math.round(share * 100)} %`;
}

export function ratio(value: number, limit: number): string {
  return limit === 0 ? '–' : (value / limit).toFixed(2);
}

/** Three digits that count. */
export function figure(value: number | null): string {
  if (value === null) return '–';
  if (value >= 100) return String(Math.round(value));
  return value === 0 ? '0' : String(Number(value.toPrecision(3)));
}
