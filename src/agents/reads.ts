import type { Grant } from '../access/grant.js';
import { whereOf } from '../store/filter-where.js';
import type { Prisma } from '../store/generated/prisma/client.js';
import type { AgentPredicate } from './filter.js';

const NULLABLE = new Set(['environment']);

/** The agents that the filter names. They stand outside namespaces: whoever may read agents may read each. */
export function agentWhere(predicate: AgentPredicate, _grant: Grant<'agent:read'>): Prisma.AgentWhereInput {
  // A deregistered agent's row goes in the same transaction; the mark is seen by nobody but the log.
  return { AND: [whereOf(predicate, NULLABLE), { deletedAt: null }] };
}
