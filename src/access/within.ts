import type { Grant } from './grant.js';

/** The rows of a namespaced kind that a grant allows, as a Prisma `where`. */
export function within(grant: Grant): { namespace?: { in: string[] } } {
  return grant.namespaces === 'all' ? {} : { namespace: { in: [...grant.namespaces] } };
}
