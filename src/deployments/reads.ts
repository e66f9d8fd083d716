import type { Grant } from '../access/grant.js';
import type { Queryable } from '../store/database.js';
import { filterSql } from '../store/filter-sql.js';
import type { DeploymentRow } from '../store/rows.js';
import { columnList, TABLES } from '../store/tables.js';
import type { Wanted } from '../store/public-types.js';
import type { DeploymentPredicate } from './filter.js';

/** The deployments that the filter names and the grant allows; deleted ones only when asked for. */
export function deploymentsWanted(
  predicate: DeploymentPredicate,
  grant: Grant<'deployment:read'>,
  deleted = false,
): Wanted<'deployment'> {
  return { table: 'deployment', namespaces: grant.namespaces, predicate, deleted };
}

/**
 * The same set for a watch's snapshot, on the transaction of the feed. One row more than `limit` says that there are
 * too many.
 */
export function deploymentSnapshot(
  predicate: DeploymentPredicate,
  grant: Grant<'deployment:read'>,
): (tx: Queryable, limit: number) => Promise<readonly DeploymentRow[]> {
  const { namespaces } = grant;
  const allowed: DeploymentPredicate =
    namespaces === 'all'
      ? predicate
      : { kind: 'all', of: [{ kind: 'in', field: 'namespace', values: [...namespaces] }, predicate] };
  const filter = filterSql(allowed, TABLES.deployment, 2);
  return async (tx, limit) => {
    const result = await tx.query<DeploymentRow>({
      text:
        `SELECT ${columnList('deployment')} FROM deployment` +
        ` WHERE deleted_at IS NULL AND ${filter.text} ORDER BY created_at, id LIMIT $1`,
      values: [limit, ...filter.values],
    });
    return result.rows;
  };
}
