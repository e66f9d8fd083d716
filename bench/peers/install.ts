/**
 * Makes `bench/node_modules` what `bench/package-lock.json` says, and generates the Prisma client of the peers into it,
 * unless both are there already. Nothing else of the repository needs these packages.
 */
import { build } from 'esbuild';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const BENCH = join(ROOT, 'bench');
const SCHEMA = join(ROOT, 'prisma/schema.prisma');
/** Below node_modules, which every tool leaves alone, and `npm ci` empties. */
const GENERATED = join(BENCH, 'node_modules/.slipway');
const PACKAGES_STAMP = join(GENERATED, 'packages');
const CLIENT_STAMP = join(GENERATED, 'client');

/** As Prisma advises for such a server: its default compiler, which is faster than the small one, and joins. */
const GENERATORS = `generator client {
  provider               = "prisma-client"
  output                 = "./prisma"
  moduleFormat           = "esm"
  runtime                = "nodejs"
  generatedFileExtension = "ts"
  importFileExtension    = "js"
  previewFeatures        = ["views", "relationJoins"]
}

generator pothos {
  provider          = "prisma-pothos-types"
  clientOutput      = "./prisma/client.js"
  output            = "./pothos.ts"
  generateDatamodel = true
}
`;

export async function installPeers(): Promise<void> {
  await unlessCurrent(PACKAGES_STAMP, fingerprint([join(BENCH, 'package-lock.json')]), async () => {
    process.stderr.write(
      'Installing the peers into bench/node_modules, once for each change of their lock …\n',
    );
    await run('npm', ['ci', '--prefix', BENCH, '--ignore-scripts', '--no-audit', '--no-fund']);
  });
  await unlessCurrent(CLIENT_STAMP, fingerprint([SCHEMA], GENERATORS), generateClient);
}

async function unlessCurrent(stamp: string, wanted: string, make: () => Promise<void>): Promise<void> {
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  await make();
  mkdirSync(GENERATED, { recursive: true });
  writeFileSync(stamp, wanted);
}

function fingerprint(files: readonly string[], text = ''): string {
  const hash = createHash('sha256').update(text);
  for (const file of files) hash.update(readFileSync(file));
  return hash.digest('hex');
}

/** The project's own models; in one module, as its server has them, because a generated client is TypeScript. */
async function generateClient(): Promise<void> {
  const models = readFileSync(SCHEMA, 'utf8').replace(/^generator \w+ \{[^}]*\}\n/gm, '');
  const schema = join(GENERATED, 'schema.prisma');
  writeFileSync(schema, `${GENERATORS}\n${models}`);
  await run(process.execPath, [
    join(ROOT, 'node_modules/prisma/build/index.js'),
    'generate',
    '--schema',
    schema,
  ]);
  const entry = `export { PrismaClient } from './prisma/client.js'; export { getDatamodel } from './pothos.js';`;
  await build({
    stdin: { contents: entry, resolveDir: GENERATED, loader: 'ts' },
    outfile: join(GENERATED, 'client.mjs'),
    bundle: true,
    packages: 'external',
    format: 'esm',
    platform: 'node',
    logLevel: 'warning',
  });
}

async function run(command: string, args: readonly string[]): Promise<void> {
  const child = spawn(command, args, {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
    // npm is a script on Windows.
    shell: process.platform === 'win32',
    env: {
      ...process.env,
      // Where Prisma looks for generators.
      PATH: `${join(ROOT, 'node_modules/.bin')}${delimiter}${process.env['PATH'] ?? ''}`,
      CHECKPOINT_DISABLE: '1',
      PRISMA_HIDE_UPDATE_MESSAGE: '1',
    },
  });
  let output = '';
  const take = (chunk: Buffer) => (output += chunk.toString());
  child.stdout.on('data', take);
  child.stderr.on('data', take);
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}:\n${output}`);
}
