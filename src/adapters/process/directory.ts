import { chmod, lstat, mkdir } from 'node:fs/promises';
import { join } from 'node:path';

import { absent, systemCode } from './absent.js';
import type { Fence } from './fence.js';
import { below, type Layout } from './layout.js';

interface DirectoryName {
  readonly resource: string;
  readonly name: string;
}

/** Stable for the life of the deployment: neither releases nor undeploying change it. */
export function directoryPath(
  layout: Layout,
  deploymentId: string,
  { resource, name }: DirectoryName,
): string {
  // `name` is checked by its schema: no separator, and no dot in front.
  return join(below(layout.directories, deploymentId, resource), name);
}

/** Undefined when it is there now, with that mode; else why it cannot be. Follows no symlink below our own folder. */
export async function makeDirectory(
  layout: Layout,
  deploymentId: string,
  wanted: DirectoryName & { readonly mode: string },
  fence: Fence,
): Promise<string | undefined> {
  const path = directoryPath(layout, deploymentId, wanted);
  await mkdir(layout.directories, { recursive: true, mode: 0o700 });
  const steps = [
    below(layout.directories, deploymentId),
    below(layout.directories, deploymentId, wanted.resource),
    path,
  ];
  for (const step of steps) {
    fence.check();
    await mkdir(step, { mode: 0o700 }).catch((error: unknown) => {
      if (systemCode(error) !== 'EEXIST') throw error;
    });
    if (!(await lstat(step)).isDirectory()) return `${step} is there and is no folder`;
  }
  const mode = Number.parseInt(wanted.mode, 8);
  if (((await lstat(path)).mode & 0o777) !== mode) await chmod(path, mode);
  return undefined;
}

export async function directoryThere(path: string): Promise<boolean> {
  return (await lstat(path).catch(absent))?.isDirectory() ?? false;
}

export async function directoriesThere(layout: Layout, deploymentId: string): Promise<boolean> {
  return (await lstat(below(layout.directories, deploymentId)).catch(absent)) !== undefined;
}
