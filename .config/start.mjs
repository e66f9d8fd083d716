/**
 * `node .config/start.mjs [command] [arguments]` runs what `src/main.ts` (command `serve`, the default) or
 * `src/cli/<command>.ts` exports as `main(argv)`, from dist/, building it first if sources changed.
 *
 * The command runs in this process: a signal reaches it directly and its exit code is ours. Where src/ was
 * not shipped (a container image), dist/ is taken as it is.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { buildIsCurrent } from './fingerprint.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const [first, ...others] = process.argv.slice(2);
const named = first !== undefined && !first.startsWith('-');
const command = named ? first : 'serve';
const argv = named ? others : process.argv.slice(2);

/** Null if no file of that name was built. */
function entryOf(name) {
  if (name === 'serve') return join(root, 'dist/main.js');
  if (!/^[a-z][a-z0-9-]*$/.test(name)) return null;
  const files = [`dist/cli/${name}.js`, `dist/demo/${name}.js`].map((file) => join(root, file));
  return files.find((file) => existsSync(file)) ?? null;
}

function commands() {
  const folder = join(root, 'dist/cli');
  const built = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.js')) : [];
  return ['serve', ...built.map((name) => name.slice(0, -'.js'.length)).sort()];
}

async function start() {
  if (existsSync(join(root, 'src')) && !buildIsCurrent(root)) {
    const started = performance.now();
    process.stderr.write('Building from source, once for each change of it …\n');
    const { build } = await import('./build.mjs');
    try {
      await build();
    } catch (error) {
      process.stderr.write(`${error.message}\n`);
      process.exitCode = 1;
      return;
    }
    process.stderr.write(`Built in ${((performance.now() - started) / 1000).toFixed(1)} s.\n`);
  }
  const entry = entryOf(command);
  if (entry === null) {
    process.stderr.write(`There is no command \`${command}\`. Commands: ${commands().join(', ')}.\n`);
    process.exitCode = 2;
    return;
  }
  process.setSourceMapsEnabled(true);
  // As if Node had been called with the command's own file.
  process.argv = [process.argv[0], entry, ...argv];
  const { main } = await import(pathToFileURL(entry).href);
  if (typeof main !== 'function') throw new TypeError(`${entry} does not export \`main(argv)\`.`);
  await main(argv);
}

await start();
