import { randomBytes } from 'node:crypto';
import { renameSync } from 'node:fs';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

import { absent } from './absent.js';
import type { Fence } from './fence.js';
import type { Layout } from './layout.js';

/**
 * Deletes a folder of ours. It leaves its place in one step, under the fence: a server that is frozen while it deletes,
 * and woken when another works there again, finds only what was meant.
 */
export async function discard(layout: Layout, folder: string, fence: Fence): Promise<void> {
  await mkdir(layout.trash, { recursive: true, mode: 0o700 });
  const away = join(layout.trash, randomBytes(8).toString('hex'));
  fence.check();
  try {
    renameSync(folder, away);
  } catch (error) {
    absent(error);
    return;
  }
  // Follows no symlink: one is deleted itself.
  await rm(away, { recursive: true, force: true, maxRetries: 3 });
}

/** What a server that died left behind. */
export async function emptyTrash(layout: Layout): Promise<void> {
  for (const name of (await readdir(layout.trash).catch(absent)) ?? []) {
    await rm(join(layout.trash, name), { recursive: true, force: true, maxRetries: 3 });
  }
}
