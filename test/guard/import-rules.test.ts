import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { cruise, type ICruiseResult, type IFlattenedRuleSet } from 'dependency-cruiser';
import extractDepcruiseOptions from 'dependency-cruiser/config-utl/extract-depcruise-options';
import extractTSConfig from 'dependency-cruiser/config-utl/extract-ts-config';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
const configFile = join(root, '.config/dependency-cruiser.cjs');

/** `[importing file, what it imports]`: a path below the fixture's root, or a package's name. */
type Import = readonly [from: string, to: string];

/** For each rule one import that it must refuse. A rule without a row here fails the test below. */
const BROKEN: Record<string, Import> = {
  'no-cycles': ['src/kernel/cycle-a.ts', 'src/kernel/cycle-b.ts'],
  'no-orphans': ['src/kernel/orphan.ts', 'nothing'],
  'no-unresolved': ['src/kernel/unresolved.ts', './missing.js'],
  'no-unlisted': ['src/transport/unlisted.ts', 'graphql-yoga'],
  'no-dev-dependencies': ['src/cli/dev.ts', 'vitest'],
  'src-not-to-test': ['src/cli/from-test.ts', 'test/support/wait-for.ts'],
  'known-folders': ['src/utils/date.ts', 'src/kernel/clock.ts'],

  'folder-kernel': ['src/kernel/folder.ts', 'src/store/pool.ts'],
  'folder-config': ['src/config/folder.ts', 'src/store/pool.ts'],
  'folder-store': ['src/store/folder.ts', 'src/changes/feed.ts'],
  'folder-access': ['src/access/folder.ts', 'src/changes/feed.ts'],
  'folder-changes': ['src/changes/folder.ts', 'src/access/authorise.ts'],
  'folder-graph': ['src/graph/folder.ts', 'src/store/pool.ts'],
  'folder-deployments': ['src/deployments/commands.ts', 'src/transport/http.ts'],
  'folder-rollouts': ['src/rollouts/commands.ts', 'src/engine/loop.ts'],
  'folder-placement': ['src/placement/commands.ts', 'src/engine/loop.ts'],
  'folder-instances': ['src/instances/commands.ts', 'src/engine/loop.ts'],
  'folder-agents': ['src/agents/commands.ts', 'src/adapters/noop.ts'],
  'folder-runtimes': ['src/runtimes/commands.ts', 'src/adapters/noop.ts'],
  'folder-releases': ['src/releases/commands.ts', 'src/messaging/relay.ts'],
  'folder-adapters': ['src/adapters/folder.ts', 'src/store/pool.ts'],
  'folder-messaging': ['src/messaging/folder.ts', 'src/engine/loop.ts'],
  'folder-engine': ['src/engine/folder.ts', 'src/transport/http.ts'],
  'folder-transport': ['src/transport/folder.ts', 'src/deployments/index.ts'],
  'folder-client': ['src/client/folder.ts', 'src/kernel/clock.ts'],
  'folder-cli': ['src/cli/folder.ts', 'src/store/pool.ts'],
  'folder-demo': ['src/demo/folder.ts', 'src/store/pool.ts'],
  'folder-dashboard': ['src/dashboard/folder.ts', 'src/kernel/clock.ts'],

  'order-rollouts': ['src/rollouts/reads.ts', 'src/deployments/index.ts'],
  'order-placement': ['src/placement/reads.ts', 'src/rollouts/index.ts'],
  'order-instances': ['src/instances/reads.ts', 'src/placement/index.ts'],
  'order-agents': ['src/agents/reads.ts', 'src/rollouts/index.ts'],
  'order-runtimes': ['src/runtimes/reads.ts', 'src/releases/index.ts'],
  'order-releases': ['src/releases/reads.ts', 'src/instances/index.ts'],

  'kernel-no-libraries': ['src/kernel/library.ts', 'pino'],
  'kernel-no-io': ['src/kernel/io.ts', 'node:fs'],
  'domain-through-index': ['src/deployments/reads.ts', 'src/agents/model.ts'],
  'schema-only-from-assemble': ['src/runtimes/index.ts', 'src/runtimes/schema.ts'],
  'assemble-only-schemas': ['src/graph/assemble.ts', 'src/runtimes/index.ts'],
  'schema-not-to-store': ['src/agents/schema.ts', 'src/agents/store.ts'],
  'graph-only-from-schema': ['src/agents/index.ts', 'src/graph/builder.ts'],
  'internals-only-in-own-folder': ['src/deployments/store.ts', 'src/agents/internals.ts'],
  'internals-only-from-store-and-commands': ['src/agents/reads.ts', 'src/agents/internals.ts'],
  'model-imports-kernel-only': ['src/agents/model.ts', 'src/agents/store.ts'],
  'internals-import-model-only': ['src/agents/internals.ts', 'src/store/pool.ts'],
  'model-no-libraries': ['src/agents/filter.ts', 'pino'],
  'model-no-io': ['src/agents/projection.ts', 'node:crypto'],
  'prisma-only-in-stores': ['src/deployments/commands.ts', 'src/store/generated/client.ts'],
  'graphql-only-in-graph': ['src/deployments/commands.ts', 'graphql'],
  'wire-only-in-transport': ['src/messaging/socket.ts', 'ws'],
  'client-few-libraries': ['src/client/library.ts', 'zod'],
  'client-runs-in-browsers': ['src/client/node.ts', 'node:crypto'],
};

/** Further imports that one of the rules above must refuse too: each is another arm of its pattern. */
const BROKEN_TOO: readonly (readonly [rule: string, ...Import])[] = [
  ['prisma-only-in-stores', 'src/agents/schema.ts', '@prisma/client'],
  ['prisma-only-in-stores', 'src/engine/loop.ts', 'pg'],
  ['graphql-only-in-graph', 'src/agents/commands.ts', '@pothos/core'],
  ['wire-only-in-transport', 'src/graph/socket.ts', 'graphql-ws'],
  ['schema-not-to-store', 'src/agents/schema.ts', 'src/store/pool.ts'],
  ['schema-only-from-assemble', 'src/graph/builder.ts', 'src/agents/schema.ts'],
  ['domain-through-index', 'src/main.ts', 'src/agents/store.ts'],
  ['internals-only-in-own-folder', 'src/main.ts', 'src/agents/internals.ts'],
  ['folder-graph', 'src/graph/builder.ts', 'src/agents/index.ts'],
];

const ALLOWED: readonly Import[] = [
  ['src/main.ts', 'src/store/pool.ts'],
  ['src/main.ts', 'src/config/environment.ts'],
  ['src/main.ts', 'src/deployments/index.ts'],
  ['src/main.ts', 'src/transport/http.ts'],
  ['src/main.ts', 'src/engine/loop.ts'],
  ['src/kernel/ids.ts', 'typeid-js'],
  ['src/kernel/ids.ts', 'zod'],
  ['src/kernel/ids.ts', 'node:crypto'],
  ['src/config/environment.ts', 'src/kernel/ids.ts'],
  ['src/store/pool.ts', 'pg'],
  ['src/store/pool.ts', '@prisma/adapter-pg'],
  ['src/store/pool.ts', 'src/store/generated/client.ts'],
  ['src/store/public-types.ts', 'src/store/generated/client.ts'],
  ['src/graph/builder.ts', 'src/store/public-types.ts'],
  ['src/graph/builder.ts', '@pothos/core'],
  ['src/graph/assemble.ts', 'src/deployments/schema.ts'],
  ['src/graph/assemble.ts', 'src/graph/builder.ts'],
  ['src/deployments/schema.ts', 'graphql'],
  ['src/deployments/schema.ts', 'zod'],
  ['src/deployments/schema.ts', 'src/graph/builder.ts'],
  ['src/deployments/schema.ts', 'src/deployments/commands.ts'],
  ['src/deployments/schema.ts', 'src/deployments/reads.ts'],
  ['src/deployments/index.ts', 'src/deployments/commands.ts'],
  ['src/deployments/commands.ts', 'src/deployments/internals.ts'],
  ['src/deployments/commands.ts', 'src/deployments/store.ts'],
  ['src/deployments/commands.ts', 'src/runtimes/index.ts'],
  ['src/deployments/commands.ts', 'src/access/authorise.ts'],
  ['src/deployments/store.ts', 'src/deployments/internals.ts'],
  ['src/deployments/store.ts', 'src/store/generated/client.ts'],
  ['src/deployments/reads.ts', '@prisma/client'],
  ['src/deployments/internals.ts', 'src/deployments/model.ts'],
  ['src/deployments/internals.ts', 'zod'],
  ['src/deployments/filter.ts', 'src/deployments/model.ts'],
  ['src/deployments/model.ts', 'src/kernel/ids.ts'],
  ['src/runtimes/index.ts', 'src/runtimes/model.ts'],
  ['src/engine/loop.ts', 'src/adapters/noop.ts'],
  ['src/adapters/noop.ts', 'src/deployments/index.ts'],
  ['src/transport/http.ts', 'graphql-ws'],
  ['src/transport/http.ts', 'graphql'],
  ['src/transport/http.ts', 'src/graph/assemble.ts'],
  ['src/client/index.ts', 'graphql-ws'],
  ['src/cli/demo.ts', 'src/main.ts'],
  ['src/cli/demo.ts', 'src/client/index.ts'],
  ['src/dashboard/page.ts', 'src/client/index.ts'],
  ['test/unit/a.test.ts', 'src/deployments/model.ts'],
];

const folders: string[] = [];

/** Writes a repository whose files hold exactly these imports. */
async function fixture(imports: readonly Import[], unlisted: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'import-rules-'));
  folders.push(folder);
  const lines = new Map<string, string[]>();
  const linesOf = (file: string): string[] => {
    const known = lines.get(file) ?? [];
    lines.set(file, known);
    return known;
  };
  for (const [index, [from, to]] of imports.entries()) {
    const file = linesOf(from);
    if (to === 'nothing') continue;
    const local = /^(src|test)\//.test(to);
    if (local) linesOf(to);
    const up = '../'.repeat(from.split('/').length - 1) || './';
    const specifier = local ? `${up}${to.replace(/\.ts$/, '.js')}` : to;
    file.push(`import * as used${index} from '${specifier}';`, `console.log(used${index});`);
  }
  for (const [file, content] of lines) {
    await mkdir(join(folder, dirname(file)), { recursive: true });
    await writeFile(join(folder, file), `${content.join('\n')}\nexport {};\n`);
  }
  const manifest: unknown = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  const { dependencies, devDependencies } = manifest as Record<'dependencies' | 'devDependencies', object>;
  const listed = Object.fromEntries(
    Object.entries(dependencies).filter(([name]) => !unlisted.includes(name)),
  );
  await writeFile(
    join(folder, 'package.json'),
    JSON.stringify({ type: 'module', dependencies: listed, devDependencies }),
  );
  await writeFile(join(folder, 'tsconfig.json'), await readFile(join(root, 'tsconfig.json'), 'utf8'));
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

async function violations(folder: string, paths: readonly string[]): Promise<string[]> {
  const options = await extractDepcruiseOptions(configFile);
  const tsConfigFile = join(folder, 'tsconfig.json');
  const { output } = await cruise(
    [...paths],
    { ...options, baseDir: folder, tsConfig: { fileName: tsConfigFile } },
    undefined,
    { tsConfig: extractTSConfig(tsConfigFile) },
  );
  const { summary } = output as ICruiseResult;
  return summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${to}`);
}

describe('the import rules', () => {
  let rules: readonly string[] = [];
  let reported: readonly string[] = [];

  beforeAll(async () => {
    const { ruleSet } = await extractDepcruiseOptions(configFile);
    const { forbidden = [] } = ruleSet as IFlattenedRuleSet;
    rules = forbidden.map(({ name }) => name ?? 'unnamed');
    const uncommented = forbidden.filter(({ comment }) => !comment).map(({ name }) => name);
    expect(uncommented, 'Say in the comment what to do instead.').toEqual([]);

    const broken = [...Object.values(BROKEN), ...BROKEN_TOO.map(([, from, to]) => [from, to] as const)];
    const back: Import = ['src/kernel/cycle-b.ts', 'src/kernel/cycle-a.ts'];
    reported = await violations(await fixture([...broken, back], ['graphql-yoga']), ['src', 'test']);
  });

  afterAll(async () => {
    for (const folder of folders) await rm(folder, { recursive: true, force: true });
  });

  it('hold in this repository', async () => {
    expect(await violations(root, ['src', 'test'])).toEqual([]);
  });

  it('have a broken import here for each rule', () => {
    expect(Object.keys(BROKEN).sort()).toEqual([...rules].sort());
  });

  it.each([...Object.entries(BROKEN).map(([rule, [from, to]]) => [rule, from, to] as const), ...BROKEN_TOO])(
    '%s refuses %s → %s',
    (rule, from, to) => {
      const own = reported.filter((line) => line.startsWith(`${rule}: ${from} → `));
      // A package is reported by the file that it resolves to; an orphan is reported against itself.
      const name = to.replace(/^node:/, '');
      const found = own.some((line) => to === 'nothing' || line.includes(name));
      expect(found, `${rule} reported: ${own.join('; ') || 'nothing'}`).toBe(true);
    },
  );

  it('accept what the layout means to allow', async () => {
    expect(await violations(await fixture(ALLOWED, []), ['src', 'test'])).toEqual([]);
  });
});
