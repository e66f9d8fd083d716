import type { Grant } from '../access/grant.js';
import type { Wanted } from '../store/public-types.js';
import type { RuntimePredicate } from './filter.js';

/** The runtimes that the filter names and the grant allows; deleted ones only when asked for. */
export function runtimesWanted(
  predicate: RuntimePredicate,
  grant: Grant<'runtime:read'>,
  deleted = false,
): Wanted<'runtime'> {
  return { table: 'runtime', namespaces: grant.namespaces, predicate, deleted };
}
