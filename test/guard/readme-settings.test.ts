import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { settingsTable } from '../../src/config/settings-table.js';

it('README.md tells every setting as it is', () => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  const table = /<!-- settings:begin -->\n\n([^]*?)\n<!-- settings:end -->/.exec(readme)?.[1];
  expect(table, 'Run `npm run settings:print`.').toBe(settingsTable());
});
