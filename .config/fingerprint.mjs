import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * One hash over the content of files and folders. Content, not times: a fresh clone, a container layer and
 * a branch switched there and back all keep what was built from the same sources.
 *
 * A missing path counts as empty. Names in `skip` are folders of generated files, which are outputs.
 */
export function fingerprint(root, paths, skip = ['generated']) {
  const hash = createHash('sha256');
  const visit = (path) => {
    let content;
    try {
      content = readFileSync(join(root, path));
    } catch (error) {
      if (error.code === 'ENOENT') return;
      if (error.code !== 'EISDIR') throw error;
      for (const name of readdirSync(join(root, path)).sort()) {
        if (!skip.includes(name)) visit(`${path}/${name}`);
      }
      return;
    }
    // The length keeps two neighbouring files from being read as one.
    hash.update(`${path}\0${content.length}\0`).update(content);
  };
  for (const path of paths) visit(path);
  return hash.digest('hex');
}

/** What the files under dist/ depend on. */
export const BUILD_INPUTS = [
  'src',
  'prisma/schema.prisma',
  'prisma.config.ts',
  'schema.graphql',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  '.config/build.mjs',
  '.config/codegen.ts',
];

export const BUILD_STAMP = 'dist/.build-stamp';

export function buildIsCurrent(root) {
  try {
    return readFileSync(join(root, BUILD_STAMP), 'utf8') === fingerprint(root, BUILD_INPUTS);
  } catch (error) {
    if (error.code === 'ENOENT') return false;
    throw error;
  }
}
