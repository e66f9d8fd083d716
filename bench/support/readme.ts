/** Puts what was measured into bench/README.md, between the marks of its name: contenders by cases, so that it stays short. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import type { Summary } from './contender.js';
import { figure, machine, ratio, table, type Group, type Report } from './report.js';

const README = fileURLToPath(new URL('../README.md', import.meta.url));

export function publish(report: Report): void {
  const { name, groups, tables = [], notes, options } = report;
  const readme = readFileSync(README, 'utf8');
  const [begin, end] = [`<!-- ${name}:begin -->\n`, `<!-- ${name}:end -->`];
  const [from, to] = [readme.indexOf(begin), readme.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`bench/README.md has no ${begin.trim()} and ${end}.`);
  const text = [
    groups.length === 0
      ? `${machine()}.`
      : `${machine()}; ${options.rounds} rounds of ${options.seconds} s each. Cells: **ratio to the first row** · median rate · CPU ms a unit · p50/p99 ms.`,
    ...(groups.length === 0 ? [] : [byCases(groups)]),
    ...tables.map(({ head, rows }) => table(head, rows)),
    notes.map((note) => `- ${note}`).join('\n'),
  ].join('\n\n');
  writeFileSync(README, `${readme.slice(0, from + begin.length)}\n${text}\n\n${readme.slice(to)}`);
}

/** A row for each contender, a column for each case. */
function byCases(groups: readonly Group[]): string {
  const contenders = [
    ...new Set(groups.flatMap(({ summaries }) => summaries.map(({ contender }) => contender))),
  ];
  const rows = contenders.map((name) => [
    name,
    ...groups.map(({ summaries }) => {
      const found = summaries.find(({ contender }) => contender === name);
      return found ? cell(found, summaries[0]) : '–';
    }),
  ]);
  return table(['', ...groups.map(({ title, unit }) => `${title}, ${unit}`)], rows);
}

function cell({ median, cpuMs, p50, p99 }: Summary, limit: Summary | undefined): string {
  return [
    `**${ratio(median, limit?.median ?? 0)}**`,
    `${figure(median)}/s`,
    ...(cpuMs === null ? [] : [`CPU ${figure(cpuMs)}`]),
    ...(p50 === null || p99 === null ? [] : [`${figure(p50)}/${figure(p99)}`]),
  ].join(' · ');
}
