/**
 * Who PostgreSQL runs as. It refuses to run as root, so a root process starts it as another user of the system, and
 * keeps to the owner of the data folder once there is one.
 */
import { readFileSync, statSync, type Stats } from 'node:fs';
import { dirname } from 'node:path';
import { StartError } from '../../kernel/start-error.js';

/** Undefined: as ourselves. */
export type RunAs = { readonly uid: number; readonly gid: number } | undefined;

/** `postgres` is made for this; `nobody` exists nearly everywhere. */
const PREFERRED_USERS = ['postgres', 'nobody', 'daemon'];

function systemUser(): { uid: number; gid: number } {
  const rows = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  for (const user of PREFERRED_USERS) {
    const row = rows.find((fields) => fields[0] === user);
    const [uid, gid] = [Number(row?.[2]), Number(row?.[3])];
    if (uid > 0 && gid > 0) return { uid, gid };
  }
  throw new StartError(
    `PostgreSQL does not run as root, and none of the users ${PREFERRED_USERS.join(', ')} exists here. Start Slipway as an ordinary user, or set DATABASE_URL.`,
  );
}

/** `clusterFolder` may not exist yet. */
export function chooseRunAs(clusterFolder: string): RunAs {
  const owner = statSync(clusterFolder, { throwIfNoEntry: false });
  const self = process.getuid?.();
  if (self === undefined) return undefined;
  if (self !== 0) {
    if (owner !== undefined && owner.uid !== self) {
      throw new StartError(
        `${clusterFolder} belongs to user ${owner.uid} and Slipway runs as user ${self}. Start it as that user (or as root), or set SLIPWAY_DATA_DIR to another folder.`,
      );
    }
    return undefined;
  }
  if (owner === undefined) return systemUser();
  if (owner.uid === 0) {
    throw new StartError(
      `${clusterFolder} belongs to root, which PostgreSQL does not run as. Give it to the user that made it (chown -R), or set SLIPWAY_DATA_DIR to another folder.`,
    );
  }
  return { uid: owner.uid, gid: owner.gid };
}

function may(stats: Stats, user: { uid: number; gid: number }, bit: number): boolean {
  const shift = stats.uid === user.uid ? 6 : stats.gid === user.gid ? 3 : 0;
  return ((stats.mode >> shift) & bit) === bit;
}

/** Whether `user` can enter every folder down to `path` and read it, by the mode bits. */
export function canReach(path: string, user: { uid: number; gid: number }): boolean {
  if (!may(statSync(path), user, 5)) return false;
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    if (!may(statSync(folder), user, 1)) return false;
    if (folder === dirname(folder)) return true;
  }
}
