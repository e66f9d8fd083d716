import type { Grant } from '../access/grant.js';
import type { Wanted } from '../store/public-types.js';
import type { ReleasePredicate } from './filter.js';

/** The releases that the filter names and the grant allows. */
export function releasesWanted(predicate: ReleasePredicate, grant: Grant<'release:read'>): Wanted<'release'> {
  return { table: 'release', namespaces: grant.namespaces, predicate, deleted: false };
}
