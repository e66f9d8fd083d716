/**
 * Builds dist/ from src/. Used by start.mjs when sources changed, and by hand:
 *
 *   node .config/build.mjs                     generated code, bundles and the client's declarations
 *   node .config/build.mjs --no-declarations   what a start needs
 *   node .config/build.mjs --generate          generated code only
 *
 * Layout: every bundle and every shared chunk of a file in src/ lies directly in dist/, except entries of
 * subfolders (dist/cli/x.js). So a path relative to `import.meta.url` is right before and after bundling
 * only in src/main.ts, where `new URL('..', import.meta.url)` is the package's root both times; every other
 * file must be given the path it needs.
 *
 * What runs here holds the packages that it needs: to find and read their eight hundred files takes three times as long
 * as the rest of an import. What others import (the client) leaves them to be found, and shared, where it is installed.
 * node_modules is needed in both cases, and has the licences.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, join, relative, sep } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { BUILD_INPUTS, BUILD_STAMP, buildIsCurrent, fingerprint } from './fingerprint.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');
const require = createRequire(import.meta.url);

const LOCK_WAIT_MS = 120_000;

/** Paths below the root with `/` between names, sorted; none if the folder is missing. */
function filesUnder(folder) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { recursive: true })
    .map((name) => `${folder}/${name.replaceAll(sep, '/')}`)
    .sort();
}

/** Runs a package's own command without npx, whose start costs as much as the command. */
async function run(packageName, command, args) {
  const manifestFile = join(root, 'node_modules', packageName, 'package.json');
  if (!existsSync(manifestFile)) {
    throw new Error(
      `The build needs ${packageName}, which is not installed: run \`npm ci\` with the dev dependencies, ` +
        'or copy dist/ from a machine where `npm run build` ran.',
    );
  }
  const { bin } = require(manifestFile);
  const script = join(dirname(manifestFile), typeof bin === 'string' ? bin : bin[command]);
  const child = spawn(process.execPath, [script, ...args], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      // Generators are looked up on the PATH.
      PATH: `${join(root, 'node_modules', '.bin')}${delimiter}${process.env.PATH ?? ''}`,
      // Neither an update notice nor usage data: a build talks to nobody.
      CHECKPOINT_DISABLE: '1',
      PRISMA_HIDE_UPDATE_MESSAGE: '1',
    },
  });
  let output = '';
  child.stdout.on('data', (chunk) => (output += chunk));
  child.stderr.on('data', (chunk) => (output += chunk));
  const code = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}:\n${output}`);
}

/** Runs `make` unless its inputs are those of the last run. The stamp lies beside the output it vouches for. */
async function unlessCurrent(outputFolder, inputs, make) {
  const stampFile = join(root, outputFolder, '.stamp');
  const stamp = fingerprint(root, inputs);
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return;
  await make();
  mkdirSync(dirname(stampFile), { recursive: true });
  writeFileSync(stampFile, stamp);
}

async function generateDatabaseClient() {
  if (!existsSync(join(root, 'prisma/schema.prisma'))) return;
  await unlessCurrent(
    'src/store/generated',
    ['prisma/schema.prisma', 'prisma.config.ts', 'package-lock.json', '.config/build.mjs'],
    () => run('prisma', 'prisma', ['generate']),
  );
}

async function generateClientDocuments() {
  const documents = filesUnder('src/client').filter(
    (file) => file.endsWith('.graphql') || file === 'src/client/documents.ts',
  );
  if (documents.length === 0) return;
  await unlessCurrent(
    'src/client/generated',
    ['schema.graphql', 'package-lock.json', '.config/codegen.ts', '.config/build.mjs', ...documents],
    () => run('@graphql-codegen/cli', 'graphql-codegen', ['--config', '.config/codegen.ts']),
  );
}

/** Makes src/store/generated/ and src/client/generated/ current. */
export async function generate() {
  await withLock(generateUnlocked);
}

async function generateUnlocked() {
  // Both to the end: a failure of one must not leave the other running behind a finished build.
  const results = await Promise.allSettled([generateDatabaseClient(), generateClientDocuments()]);
  const failures = results.filter(({ status }) => status === 'rejected').map(({ reason }) => reason);
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) {
    throw new AggregateError(failures, failures.map(({ message }) => message).join('\n'));
  }
}

/** Loaded when they are used, if at all: megabytes that only a browser runs, WebAssembly, native code. */
const NOT_BUNDLED = ['@graphql-yoga/render-graphiql', '@prisma/client/runtime/query_compiler*', 'pg-native'];

/** CommonJS packages look for what Node gives them, which modules do not have. */
const COMMONJS_IN_MODULES = [
  `import { createRequire as __createRequire } from 'node:module';`,
  `import { dirname as __dirnameOf } from 'node:path';`,
  `import { fileURLToPath as __fileOf } from 'node:url';`,
  `const require = __createRequire(import.meta.url);`,
  `const __filename = __fileOf(import.meta.url);`,
  `const __dirname = __dirnameOf(__filename);`,
].join(' ');

async function bundle() {
  const esbuild = await import('esbuild');
  const files = filesUnder('src');
  const outputs = [
    ...(await bundleOf(
      esbuild,
      files.filter((file) => /^src\/client\/(index|node)\.ts$/.test(file)),
      { packages: 'external' },
    )),
    ...(await bundleOf(
      esbuild,
      files.filter((file) => /^src\/(main|cli\/[^/]+|demo\/[^/]+)\.ts$/.test(file)),
      { external: NOT_BUNDLED, banner: { js: COMMONJS_IN_MODULES } },
    )),
  ];
  await esbuild.stop();

  const written = new Set(outputs.map((file) => join(root, file)));
  for (const name of readdirSync(dist, { recursive: true })) {
    const file = join(dist, name);
    if (/\.js(\.map)?$/.test(name) && !written.has(file)) rmSync(file);
  }
}

/** Paths of the written files, below the root. */
async function bundleOf(esbuild, entryPoints, options) {
  if (entryPoints.length === 0) return [];
  const { metafile } = await esbuild.build({
    absWorkingDir: root,
    entryPoints,
    outbase: 'src',
    outdir: 'dist',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    // Packages too: the CommonJS of one that has both would be a second copy beside the ESM that others import.
    mainFields: ['module', 'main'],
    // Chunks beside main.js, so that main.ts keeps its depth when another entry shares it.
    chunkNames: 'chunk-[hash]',
    sourcemap: true,
    sourcesContent: false,
    // Names stay for stack traces, since identifiers are not minified. `keepNames` would keep those few that collide
    // too, by a call each time a function is made: a tenth of a patch.
    tsconfig: 'tsconfig.json',
    // Less to parse at each start; names stay, for stack traces.
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    logLevel: 'silent',
    metafile: true,
    // graphql-js checks every value for a second copy of itself otherwise: a seventh of a list.
    define: { 'process.env.NODE_ENV': '"production"' },
    ...options,
  });
  return Object.keys(metafile.outputs);
}

async function declarations() {
  if (!existsSync(join(root, 'src/client/index.ts'))) return;
  await run('typescript', 'tsc', ['-p', '.config/tsconfig.client.json']);
}

/** Two servers started at once from a fresh clone must not write the same files at the same time. */
async function withLock(work) {
  mkdirSync(dist, { recursive: true });
  const lock = join(dist, '.build-lock');
  const deadline = Date.now() + LOCK_WAIT_MS;
  for (;;) {
    try {
      writeFileSync(lock, String(process.pid), { flag: 'wx' });
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    if (!holderLives(lock)) rmSync(lock, { force: true });
    else if (Date.now() > deadline) {
      throw new Error(`Another build holds ${relative(root, lock)}: end it or delete the file.`);
    } else await sleep(100);
  }
  try {
    return await work();
  } finally {
    rmSync(lock, { force: true });
  }
}

function holderLives(lock) {
  try {
    const pid = Number(readFileSync(lock, 'utf8'));
    // Between creation and write the file is empty; process.kill(0, …) would ask about our own group.
    if (pid === 0) return true;
    // Left by a process that was ended; in a container the next one often gets the same id.
    if (pid === process.pid) return false;
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: alive, but another user's. ENOENT: just released.
    return error.code === 'EPERM';
  }
}

/** Makes dist/ current. Sources that change meanwhile are built by the next call. */
export async function build() {
  await withLock(async () => {
    if (buildIsCurrent(root)) return;
    const stamp = fingerprint(root, BUILD_INPUTS);
    rmSync(join(root, BUILD_STAMP), { force: true });
    await generateUnlocked();
    await bundle();
    writeFileSync(join(root, BUILD_STAMP), stamp);
  });
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  try {
    if (process.argv.includes('--generate')) await generate();
    else {
      await build();
      if (!process.argv.includes('--no-declarations')) await declarations();
    }
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}
