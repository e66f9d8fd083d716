import type { Grant } from '../access/grant.js';
import type { Queryable } from '../store/database.js';
import { filterSql } from '../store/filter-sql.js';
import type { Wanted } from '../store/public-types.js';
import type { RolloutRow } from '../store/rows.js';
import { columnList, TABLES } from '../store/tables.js';
import type { RolloutPredicate } from './filter.js';

/** The rollouts that the filter names and the grant allows. */
export function rolloutsWanted(predicate: RolloutPredicate, grant: Grant<'rollout:read'>): Wanted<'rollout'> {
  return { table: 'rollout', namespaces: grant.namespaces, predicate, deleted: false };
}

/** The same set for a watch's snapshot, on the transaction of the feed; one row more than fits says that there are too many. */
export function rolloutSnapshot(
  predicate: RolloutPredicate,
  grant: Grant<'rollout:read'>,
): (tx: Queryable, limit: number) => Promise<readonly RolloutRow[]> {
  const { namespaces } = grant;
  const allowed: RolloutPredicate =
    namespaces === 'all'
      ? predicate
      : { kind: 'all', of: [{ kind: 'in', field: 'namespace', values: [...namespaces] }, predicate] };
  const filter = filterSql(allowed, TABLES.rollout, 2);
  return async (tx, limit) => {
    const result = await tx.query<RolloutRow>({
      text:
        `SELECT ${columnList('rollout')} FROM rollout` +
        ` WHERE deleted_at IS NULL AND ${filter.text} ORDER BY created_at, id LIMIT $1`,
      values: [limit, ...filter.values],
    });
    return result.rows;
  };
}
