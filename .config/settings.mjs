/** Puts the table of settings into README.md, between its marks. Runs under tsx. */
import { readFile, writeFile } from 'node:fs/promises';

import { settingsTable } from '../src/config/settings-table.ts';

const file = new URL('../README.md', import.meta.url);
const readme = await readFile(file, 'utf8');
const marked = /(<!-- settings:begin -->\n)[^]*?(<!-- settings:end -->)/;
if (!marked.test(readme)) {
  throw new Error('README.md has no `<!-- settings:begin -->` and `<!-- settings:end -->`.');
}
await writeFile(
  file,
  readme.replace(marked, (_all, begin, end) => `${begin}\n${settingsTable()}\n${end}`),
);
