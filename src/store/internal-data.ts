import type { Queryable } from './database.js';
import { namespaceValues } from './versioned.js';

/**
 * The internal metadata beside an object: one jsonb column in a table of its own. What its fields are is the domain's;
 * merging and reading them is the same for every kind.
 */
export type InternalOwner = 'deployment' | 'runtime';

type Namespaces = 'all' | ReadonlySet<string>;

/** Merges named fields; the rest stays. No version, no change row. False when there is no such object within `namespaces`. */
export async function internalMerge(
  db: Queryable,
  owner: InternalOwner,
  id: string,
  named: object,
  namespaces: Namespaces,
): Promise<boolean> {
  const result = await db.query({
    name: `${owner}_patch_internal`,
    text:
      `INSERT INTO ${owner}_internal AS i (${owner}_id, data)` +
      ` SELECT id, $2::jsonb FROM ${owner} WHERE id = $1 AND ($3::text[] IS NULL OR namespace = ANY ($3))` +
      ` ON CONFLICT (${owner}_id) DO UPDATE SET data = i.data || excluded.data, updated_at = clock_timestamp()` +
      ' RETURNING 1',
    values: [id, JSON.stringify(named), namespaceValues(namespaces)],
  });
  return result.rows.length === 1;
}

/** Undefined when there is no such object within `namespaces`; `{}` when nothing was ever remembered about it. */
export async function internalRead(
  db: Queryable,
  owner: InternalOwner,
  id: string,
  namespaces: Namespaces,
): Promise<{ readonly data: unknown } | undefined> {
  const result = await db.query<{ data: unknown }>({
    name: `${owner}_read_internal`,
    text:
      `SELECT i.data FROM ${owner} o LEFT JOIN ${owner}_internal i ON i.${owner}_id = o.id` +
      ' WHERE o.id = $1 AND ($2::text[] IS NULL OR o.namespace = ANY ($2))',
    values: [id, namespaceValues(namespaces)],
  });
  const row = result.rows[0];
  return row && { data: row.data ?? {} };
}
