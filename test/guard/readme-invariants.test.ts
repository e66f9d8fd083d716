import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const ROOT = new URL('../../', import.meta.url);

interface Invariant {
  readonly number: number;
  /** The files that show it, as paths from the package. */
  readonly files: readonly string[];
}

function invariantsOf(readme: string): Invariant[] {
  const section = readme.split(/^### Invariants$/m)[1]?.split(/^#/m)[0] ?? '';
  return [...section.matchAll(/^\| (\d+) \|[^|]+\| ([^|]*) \|$/gm)].map(([, number, shown = '']) => ({
    number: Number(number),
    files: [...shown.matchAll(/\[([^\]]+)\]\(([^)]+)\)/g)].map(([, name, path]) =>
      path === `test/${name}.test.ts` ? path : `${path} under the name ${name}`,
    ),
  }));
}

function problemsOf(readme: string): string[] {
  return invariantsOf(readme).flatMap(({ number, files }) => [
    ...(files.length === 0 ? [`invariant ${number} names no test`] : []),
    ...files
      .filter((file) => !existsSync(new URL(file, ROOT)))
      .map((file) => `invariant ${number}: there is no ${file}`),
  ]);
}

describe('the invariants of README.md', () => {
  const readme = readFileSync(new URL('README.md', ROOT), 'utf8');

  it('are numbered, and each names tests that exist', () => {
    const numbers = invariantsOf(readme).map(({ number }) => number);
    expect(numbers.length).toBeGreaterThanOrEqual(10);
    expect(numbers).toEqual([...new Set(numbers)].sort((one, other) => one - other));
    expect(problemsOf(readme), 'Name the test that shows it now.').toEqual([]);
  });

  it('are found wanting when a named test is gone or none is named', () => {
    const moved = readme.replace('(test/api/agents/sweep.test.ts)', '(test/api/agents/sweeps.test.ts)');
    expect(problemsOf(moved)).toEqual([
      'invariant 11: there is no test/api/agents/sweeps.test.ts under the name api/agents/sweep',
    ]);
    expect(problemsOf('### Invariants\n\n| 1 | Something. | everything |\n')).toEqual([
      'invariant 1 names no test',
    ]);
  });
});
