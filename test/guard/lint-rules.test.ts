import { fileURLToPath } from 'node:url';

import { ESLint } from 'eslint';
import tseslint from 'typescript-eslint';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));

// Snippets are no files of the program, so the rules that need types are off here; those are not ours.
const eslint = new ESLint({
  cwd: root,
  overrideConfigFile: `${root}.config/eslint.config.js`,
  overrideConfig: [{ files: ['**/*.ts'], ...tseslint.configs.disableTypeChecked }],
});

async function refusals(filePath: string, code: string): Promise<string[]> {
  const [result] = await eslint.lintText(code, { filePath: `${root}${filePath}` });
  return (result?.messages ?? []).map(({ ruleId, message }) => `${ruleId ?? 'parser'}: ${message}`);
}

const CLOCK = /Clock/;
const CONFIG = /`Config`/;
const BY_NAME = /Export by name/;
const UNION = /string union/;
const COPY = /loses the key `__proto__`/;
const EVERY_TEST = /Every test runs/;
const REASON = /needs its reason/;

describe('the lint rules of this house', () => {
  it.each([
    ['src/engine/probe.ts', 'export const at = Date.now();', CLOCK],
    ['src/engine/probe.ts', 'export const at = new Date();', CLOCK],
    ['src/config/probe.ts', 'export const at = new Date();', CLOCK],
    ['src/engine/probe.ts', 'export const home = process.env.HOME;', CONFIG],
    ['src/engine/probe.ts', "export const home = process['env'];", CONFIG],
    ['src/engine/probe.ts', 'export const { env } = process;', CONFIG],
    ['src/engine/probe.ts', "import { env } from 'node:process';\nexport const home = env;", CONFIG],
    ['src/kernel/clock.ts', 'export const home = process.env.HOME;', CONFIG],
    ['src/engine/probe.ts', 'export default 1;', BY_NAME],
    ['src/engine/probe.ts', 'const a = 1;\nexport { a as default };', BY_NAME],
    ['src/engine/probe.ts', 'export enum Phase { Pending }', UNION],
    ['test/unit/probe.test.ts', 'export enum Phase { Pending }', UNION],
    ['src/engine/probe.ts', 'export const schema = z.record(z.string(), z.json());', COPY],
    ['src/config/probe.ts', 'export const schema = z.json();', COPY],
    ['src/engine/probe.ts', "console.log('x');", /no-console/],
    ['src/graph/probe.ts', "export * from 'graphql/type/index.js';", /second instance/],
    ['src/engine/probe.ts', 'void 0;\n'.repeat(401), /max-lines/],
    ['test/unit/probe.test.ts', "it.only('x', () => {});", EVERY_TEST],
    ['test/unit/probe.test.ts', "describe.skip('x', () => {});", EVERY_TEST],
    ['test/unit/probe.test.ts', "it.todo('x');", EVERY_TEST],
    ['test/unit/probe.test.ts', "it.skipIf(true)('x', () => {});", EVERY_TEST],
    ['test/unit/probe.test.ts', "it.concurrent.skip('x', () => {});", EVERY_TEST],
    ['test/unit/probe.test.ts', "it('x', (context) => context.skip());", EVERY_TEST],
    ['test/unit/probe.test.ts', "it('x', { skip: true }, () => {});", EVERY_TEST],
    ['test/unit/probe.test.ts', "it('x', { retry: 2 }, () => {});", EVERY_TEST],
    ['src/engine/probe.ts', 'export const a = (b: unknown) => b as string;', REASON],
    ['src/engine/probe.ts', 'export const a = (b?: string) => b!;', REASON],
    ['src/engine/probe.ts', 'export const a = (b: unknown) => b as string; // ok', REASON],
    ['src/engine/probe.ts', 'const c = 1; // why c is one\nexport const a = (b?: string) => b!;', REASON],
  ])('refuse in %s: %s', async (filePath, code, message) => {
    expect(await refusals(filePath, code)).toContainEqual(expect.stringMatching(message));
  });

  it.each([
    ['src/kernel/clock.ts', 'export const at = Date.now();'],
    ['src/config/probe.ts', 'export const home = process.env.HOME;'],
    ['src/cli/probe.ts', "console.log('x');"],
    ['src/engine/probe.ts', 'export const at = (ms: number) => new Date(ms);'],
    ['src/engine/probe.ts', "export const phases = ['A'] as const;"],
    ['src/engine/probe.ts', 'export const a = (b: unknown) => b as string; // the parser made it a string'],
    ['src/engine/probe.ts', '// the caller checked it\nexport const a = (b?: string) => b!;'],
    ['src/engine/probe.ts', 'export const a = [\n  1,\n] as unknown as string; // one cast, one reason'],
    ['test/unit/probe.test.ts', 'export const a = (b: unknown) => b as string;'],
  ])('accept in %s: %s', async (filePath, code) => {
    expect(await refusals(filePath, code)).toEqual([]);
  });
});
