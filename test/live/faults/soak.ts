/**
 * `npm run soak -- <scenario> [--seed n] [--rounds n] [--minutes n] [--small]`: the full form of a scenario, on a
 * PostgreSQL of its own. One line at the end says what was done and what became of it; the exit code is 0 for PASS.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { makeRunFolder, removeRunFolder, removeStaleRunFolders } from '../../support/run-folder.js';
import { startPostgres } from './postgres.js';
import type { Verdict } from './run.js';
import type { Scenario, Size } from './scenario.js';
import { SCENARIOS } from './scenarios.js';

const KEPT = fileURLToPath(new URL('../../../.slipway/histories', import.meta.url));

function usage(): string {
  const lines = Object.values(SCENARIOS).map(({ name, shows, rounds, minutes }) => {
    const may = [rounds === undefined ? [] : ['--rounds'], minutes === undefined ? [] : ['--minutes']].flat();
    return `  ${name.padEnd(16)} ${shows}${may.length > 0 ? ` (${may.join(', ')})` : ''}`;
  });
  return `npm run soak -- <scenario> [--seed n] [--rounds n] [--minutes n] [--small]\n${lines.join('\n')}\n`;
}

export function summary({ scenario, seed, problems, counts, seconds }: Verdict): string {
  const facts = Object.entries(counts).map(([name, value]) => `${name} ${Math.round(value * 100) / 100}`);
  return `${problems.length === 0 ? 'PASS' : 'FAIL'} ${scenario} · seed ${seed} · ${facts.join(' · ')} · ${seconds.toFixed(0)} s`;
}

function numberOf(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!Number.isFinite(value) || value <= 0) throw new RangeError(`--${name} must be a number above 0`);
  return value;
}

function sizeOf(
  one: Scenario,
  values: { rounds?: string | undefined; minutes?: string | undefined; small?: boolean | undefined },
): Size {
  const size: Record<string, number> = { ...(values.small === true ? one.small : one.full) };
  for (const name of ['rounds', 'minutes'] as const) {
    const value = numberOf(values[name], name);
    const key = one[name];
    if (value === undefined) continue;
    if (key === undefined) throw new RangeError(`${one.name} has no --${name}`);
    size[key] = value;
  }
  return size;
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      seed: { type: 'string' },
      rounds: { type: 'string' },
      minutes: { type: 'string' },
      small: { type: 'boolean' },
    },
  });
  const one = SCENARIOS[positionals[0] ?? ''];
  if (!one || positionals.length !== 1) {
    process.stderr.write(usage());
    return 2;
  }
  const size = sizeOf(one, values);
  const seed = numberOf(values.seed, 'seed') ?? 1 + Math.floor(Math.random() * 1_000_000);
  process.stdout.write(`${one.name} · seed ${seed} · ${JSON.stringify(size)}\n`);
  await removeStaleRunFolders();
  const folder = makeRunFolder();
  mkdirSync(KEPT, { recursive: true });
  try {
    const postgres = await startPostgres(join(folder, 'soak'));
    const say = (text: string) => process.stdout.write(`  ${text}\n`);
    const verdict = await one.run({ scenario: one.name, seed, postgres, keepIn: KEPT, say }, size);
    await postgres.stop();
    for (const problem of verdict.problems) process.stdout.write(`  ${problem}\n`);
    process.stdout.write(`${summary(verdict)}\n`);
    return verdict.problems.length === 0 ? 0 : 1;
  } finally {
    await removeRunFolder(folder);
  }
}

process.exitCode = await main();
