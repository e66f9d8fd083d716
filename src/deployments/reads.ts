import type { Grant } from '../access/grant.js';
import type { DeploymentRow } from '../store/rows.js';
import { snapshotRows, type SnapshotRows } from '../store/snapshot-rows.js';
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

/** The same set for a watch's snapshot. */
export function deploymentSnapshot(
  predicate: DeploymentPredicate,
  grant: Grant<'deployment:read'>,
): SnapshotRows<DeploymentRow> {
  return snapshotRows('deployment', predicate, grant.namespaces);
}
