import type { ArgBuilder } from '@pothos/core';

import { DEFAULT_NAMESPACE } from '../kernel/names.js';
import { operationError } from './errors.js';
import type { Types } from './graph-types.js';

/** Look-up of one object by id, or by namespace and name. */
export interface LookUpArgs {
  readonly id?: string | null | undefined;
  readonly namespace?: string | null | undefined;
  readonly name?: string | null | undefined;
}

export function lookUpArguments(t: ArgBuilder<Types>, what: string) {
  return {
    id: t.id({ description: `The id of the ${what}. Null: look it up by name.` }),
    namespace: t.string({
      description: `Where the name is looked up. Null: \`${DEFAULT_NAMESPACE}\`. Not together with \`id\`.`,
    }),
    name: t.string({
      description: `The name of the ${what}, which must not be deleted. Not together with \`id\`.`,
    }),
  };
}

export type LookUp = { readonly id: string } | { readonly namespace: string; readonly name: string };

export function lookUpOf({ id, namespace, name }: LookUpArgs): LookUp {
  const byId = typeof id === 'string';
  const byName = typeof name === 'string';
  if (byId === byName || (byId && typeof namespace === 'string')) {
    throw operationError('BAD_USER_INPUT', 'Give either `id`, or `name` with or without `namespace`.');
  }
  return typeof id === 'string' ? { id } : { namespace: namespace ?? DEFAULT_NAMESPACE, name: name ?? '' };
}
