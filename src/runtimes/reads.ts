import { within } from '../access/within.js';
import type { Grant } from '../access/grant.js';
import { whereOf } from '../store/filter-where.js';
import type { Prisma } from '../store/generated/prisma/client.js';
import type { RuntimePredicate } from './filter.js';

const NULLABLE = new Set(['environment']);

/** The runtimes that the filter names and the grant allows; deleted ones only when asked for. */
export function runtimeWhere(
  predicate: RuntimePredicate,
  grant: Grant<'runtime:read'>,
  includeDeleted = false,
): Prisma.RuntimeWhereInput {
  return {
    AND: [whereOf(predicate, NULLABLE), within(grant), includeDeleted ? {} : { deletedAt: null }],
  };
}
