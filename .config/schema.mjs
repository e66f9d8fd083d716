/**
 * Prints the contract from the built schema into schema.graphql, or with `--check` only compares them.
 * Runs under tsx; `src/graph/print.ts` exports `printedSchema()`, the sorted text.
 */
import { readFile, writeFile } from 'node:fs/promises';

import { printedSchema } from '../src/graph/print.ts';

const file = new URL('../schema.graphql', import.meta.url);
const printed = `${(await printedSchema()).trimEnd()}\n`;

if (process.argv.includes('--check')) {
  const committed = (await readFile(file, 'utf8')).split('\n');
  const lines = printed.split('\n');
  const at = lines.findIndex((line, index) => line !== committed[index]);
  if (at !== -1 || committed.length !== lines.length) {
    const index = at === -1 ? lines.length : at;
    process.stderr.write(
      `schema.graphql differs from the schema at line ${index + 1}:\n` +
        `  committed: ${committed[index] ?? '(end)'}\n  built:     ${lines[index] ?? '(end)'}\n` +
        'Run `npm run schema:print` and review the difference.\n',
    );
    process.exitCode = 1;
  }
} else {
  await writeFile(file, printed);
}
