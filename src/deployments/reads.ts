import { within } from '../access/within.js';
import type { Grant } from '../access/grant.js';
import { whereOf } from '../store/filter-where.js';
import type { Prisma } from '../store/generated/prisma/client.js';
import type { DeploymentPredicate } from './filter.js';

const NULLABLE = new Set<string>();

/** The deployments that the filter names and the grant allows; deleted ones only when asked for. */
export function deploymentWhere(
  predicate: DeploymentPredicate,
  grant: Grant<'deployment:read'>,
  includeDeleted = false,
): Prisma.DeploymentWhereInput {
  return {
    AND: [
      whereOf(predicate, NULLABLE) as Prisma.DeploymentWhereInput, // built from fields of this model
      within(grant),
      includeDeleted ? {} : { deletedAt: null },
    ],
  };
}
