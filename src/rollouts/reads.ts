import type { Grant } from '../access/grant.js';
import type { Wanted } from '../store/public-types.js';
import type { RolloutRow } from '../store/rows.js';
import { snapshotRows, type SnapshotRows } from '../store/snapshot-rows.js';
import type { RolloutPredicate } from './filter.js';

/** The rollouts that the filter names and the grant allows. */
export function rolloutsWanted(predicate: RolloutPredicate, grant: Grant<'rollout:read'>): Wanted<'rollout'> {
  return { table: 'rollout', namespaces: grant.namespaces, predicate, deleted: false };
}

/** The same set for a watch's snapshot. */
export function rolloutSnapshot(
  predicate: RolloutPredicate,
  grant: Grant<'rollout:read'>,
): SnapshotRows<RolloutRow> {
  return snapshotRows('rollout', predicate, grant.namespaces);
}
