/**
 * Slipway's data folder (`SLIPWAY_DATA_DIR`): ours is told by a marker, so that a mistyped setting never writes into, or
 * starts PostgreSQL on, somebody else's folder.
 */
import { mkdirSync, readdirSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from '../../kernel/start-error.js';

const MARKER = 'slipway-data-folder';
const MARKER_TEXT =
  'Slipway keeps its data in this folder. Do not edit or remove anything in it while Slipway runs.\n';
/** What a fresh volume or a repository may hold without being anyone's data. */
const HARMLESS = new Set(['lost+found', '.gitignore', '.gitkeep']);

/** Makes the folder if need be, and returns its real path. */
export function claimDataFolder(folder: string): string {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const names = readdirSync(folder);
    if (!names.includes(MARKER)) {
      const foreign = names.find((name) => !HARMLESS.has(name));
      // Two first starts at once: the other one made the marker, before anything else, since we listed.
      if (foreign !== undefined && !readdirSync(folder).includes(MARKER)) {
        throw new StartError(
          `${folder} holds other files (${foreign}) and is not a data folder of Slipway. Set SLIPWAY_DATA_DIR to a new or empty folder.`,
        );
      }
      writeFileSync(join(folder, MARKER), MARKER_TEXT, { mode: 0o600 });
    }
    return realpathSync(folder);
  } catch (error) {
    if (error instanceof StartError) throw error;
    const { code } = error as NodeJS.ErrnoException; // `fs` throws system errors only.
    throw new StartError(
      `The data folder ${folder} cannot be used (${code}). Set SLIPWAY_DATA_DIR to a folder that this user can write to.`,
      {
        cause: error,
      },
    );
  }
}
