/**
 * A real, headless Chromium for tests, from npm packages alone where that can be: @sparticuz/chromium carries the browser
 * and, packed beside it, the few shared libraries (NSS, NSPR, expat) that a bare system lacks; glibc 2.34 and libgcc are
 * all it wants from outside. Elsewhere the system's own Chromium. Never a reason to skip a test: what is missing is named.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  createReadStream,
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { createBrotliDecompress } from 'node:zlib';
import { chromium, type Browser } from 'playwright-core';

const root = fileURLToPath(new URL('../..', import.meta.url));

const SYSTEM_BROWSERS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

interface Executable {
  readonly path: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** Long enough for a slow machine; a browser whose processes cannot start hangs instead of failing. */
const START_TIMEOUT_MS = 30_000;

/** A browser with an empty profile of its own; the caller closes it. */
export async function launchChromium(): Promise<Browser> {
  const complaints: string[] = [];
  const attempts: (() => Promise<Executable>)[] = [
    unpackedChromium,
    ...SYSTEM_BROWSERS.filter((path) => existsSync(path)).map(
      (path) => () => Promise.resolve({ path, environment: {} }),
    ),
  ];
  for (const attempt of attempts) {
    try {
      return await launch(await attempt());
    } catch (error) {
      complaints.push((error instanceof Error ? error.message : String(error)).trim().split('\n')[0] ?? '');
    }
  }
  throw new Error(
    `The browser tests found no Chromium that runs here: install one (Debian: \`apt-get install chromium\`). Tried: ${complaints.join('; ')}`,
  );
}

/** Starting proves little: with a library missing, the browser comes up and its pages never do. */
async function launch({ path, environment }: Executable): Promise<Browser> {
  const env = { PATH: process.env.PATH ?? '', ...environment };
  const browser = await chromium.launch({
    executablePath: path,
    args: FLAGS,
    env,
    timeout: START_TIMEOUT_MS,
  });
  try {
    const page = await browser.newPage();
    await page.goto('data:text/html,<p>ready</p>', { timeout: START_TIMEOUT_MS });
    await page.close();
    return browser;
  } catch (error) {
    await browser.close();
    throw error;
  }
}

/** Unpacks the package's browser once for each version; 200 MB below node_modules/.cache. */
async function unpackedChromium(): Promise<Executable> {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new Error(`@sparticuz/chromium has no browser for ${process.platform} on ${process.arch}`);
  }
  const entry = createRequire(import.meta.url).resolve('@sparticuz/chromium');
  const packageFolder = join(dirname(entry), '..', '..');
  const { version } = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8')) as {
    version: string;
  }; // npm's own file
  const cache = join(root, 'node_modules', '.cache');
  const folder = join(cache, `chromium-${version}`);
  if (!existsSync(join(folder, 'complete'))) {
    mkdirSync(cache, { recursive: true });
    await unpack(packageFolder, folder, mkdtempSync(join(cache, 'unpacking-')));
  }
  return {
    path: join(folder, 'chromium'),
    environment: {
      LD_LIBRARY_PATH: join(folder, 'al2023', 'lib'),
      FONTCONFIG_PATH: join(folder, 'fonts'),
      HOME: tmpdir(),
    },
  };
}

/** In a folder of its own first, so that neither a crash nor a second worker leaves half a browser behind. */
async function unpack(packageFolder: string, folder: string, workFolder: string): Promise<void> {
  const packed = (name: string) =>
    createReadStream(join(packageFolder, 'bin', name)).pipe(createBrotliDecompress());
  await Promise.all([
    pipeline(packed('chromium.br'), createWriteStream(join(workFolder, 'chromium'), { mode: 0o755 })),
    untar(packed('al2023.tar.br'), join(workFolder, 'al2023')),
    untar(packed('fonts.tar.br'), join(workFolder, 'fonts')),
  ]);
  // The package's own file names folders of the service it is made for. Without any font the browser ends with a page.
  const fonts = `<?xml version="1.0"?><fontconfig><dir>${join(folder, 'fonts', 'fonts')}</dir><cachedir>${join(folder, 'font-cache')}</cachedir></fontconfig>`;
  writeFileSync(join(workFolder, 'fonts', 'fonts.conf'), fonts);
  writeFileSync(join(workFolder, 'complete'), '');
  try {
    renameSync(workFolder, folder);
  } catch (error) {
    // Another worker was first: its browser is as good.
    rmSync(workFolder, { recursive: true, force: true });
    if (!existsSync(join(folder, 'complete'))) throw error;
  }
}

/** The package's own unpacking knows the temporary folder only, and is not exported by each of its versions. */
async function untar(archive: NodeJS.ReadableStream, folder: string): Promise<void> {
  mkdirSync(folder);
  const tar = spawn('tar', ['-x', '-C', folder], { stdio: ['pipe', 'ignore', 'ignore'] });
  const ended = once(tar, 'close');
  // tar may leave at the end mark, before the padding behind it was written: its exit code is what counts.
  await Promise.allSettled([pipeline(archive, tar.stdin)]);
  const [code] = await ended;
  if (code !== 0) throw new Error(`tar ended with ${String(code)}`);
}
