import { within } from '../access/within.js';
import type { Grant } from '../access/grant.js';
import { whereOf } from '../store/filter-where.js';
import type { Prisma } from '../store/generated/prisma/client.js';
import type { ReleasePredicate } from './filter.js';

const NULLABLE = new Set<string>();

/** The releases that the filter names and the grant allows. */
export function releaseWhere(
  predicate: ReleasePredicate,
  grant: Grant<'release:read'>,
): Prisma.ReleaseWhereInput {
  return {
    AND: [whereOf(predicate, NULLABLE), within(grant)],
  };
}
