import type { Grant } from '../access/grant.js';
import type { ReleaseId } from '../kernel/ids.js';
import type { Queryable } from '../store/database.js';
import type { ReleaseRow } from '../store/rows.js';
import { columnList } from '../store/tables.js';
import { insertRowUnlessTaken, namespaceValues, type Settable, type Stamp } from '../store/versioned.js';

/** Writes of releases: one, when it is made. Every function takes the grant and touches what it allows. */

/** Undefined when the app has a release of that label. */
export function releaseInsert(
  db: Queryable,
  _grant: Grant<'release:write'>,
  id: ReleaseId,
  values: Settable<'release'>,
  stamp: Stamp,
): Promise<ReleaseRow | undefined> {
  return insertRowUnlessTaken(db, 'release', id, values, stamp);
}

export type ReleaseRef = { readonly id: ReleaseId } | { readonly app: string; readonly label: string };

/** The release that something in `namespace` refers to. */
export async function releaseReadReferred(
  db: Queryable,
  grant: Grant,
  namespace: string,
  ref: ReleaseRef,
): Promise<ReleaseRow | undefined> {
  const byId = 'id' in ref;
  const result = await db.query<ReleaseRow>({
    name: `read_release_referred_by_${byId ? 'id' : 'label'}`,
    text:
      `SELECT ${columnList('release')} FROM release WHERE namespace = $1` +
      ' AND ($2::text[] IS NULL OR namespace = ANY ($2))' +
      (byId ? ' AND id = $3' : ' AND app = $3 AND label = $4'),
    values: [namespace, namespaceValues(grant.namespaces), ...(byId ? [ref.id] : [ref.app, ref.label])],
  });
  return result.rows[0];
}
