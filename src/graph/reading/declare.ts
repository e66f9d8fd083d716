import { print, type FieldNode, type GraphQLField } from 'graphql';

import type { Action } from '../../access/actions.js';
import type { ObjectKind } from '../../kernel/ids.js';
import type { Wanted } from '../../store/public-types.js';
import type { Context } from '../context.js';
import type { PageArgs } from './page.js';

/**
 * What a field reads, said beside it: the one source both of the statement that reads a whole selection and of the
 * resolver that finds or fetches what belongs to a row. Fields that expose a column say so by that alone; a field that
 * says nothing is taken to read every public column of its row.
 */
export type ReadDeclaration =
  /** Computed from these columns. */
  | { readonly kind: 'columns'; readonly columns: readonly string[] }
  /** Resolves to the row itself, shown as another type. */
  | { readonly kind: 'sameRow' }
  /** The object whose id is in the column. */
  | { readonly kind: 'one'; readonly object: ObjectKind; readonly column: string }
  /** A connection over the rows whose column has the id of this one. */
  | { readonly kind: 'page'; readonly column: string; wanted(args: PageArgs, context: Context): Wanted }
  /** The object's own changes. */
  | { readonly kind: 'timeline' };

/** For a computed field: `...reads<Row>('phase')`. */
export function reads<Row>(...columns: readonly (keyof Row & string)[]): {
  readonly extensions: { readonly read: ReadDeclaration };
} {
  return { extensions: { read: { kind: 'columns', columns } } };
}

/** For a field that shows its own row as another type. */
export function sameRow<Row>(): {
  readonly extensions: { readonly read: ReadDeclaration };
  readonly resolve: (row: Row) => Row;
} {
  return { extensions: { read: { kind: 'sameRow' } }, resolve: (row) => row };
}

export function declarationOf(field: GraphQLField<unknown, unknown>): ReadDeclaration | undefined {
  const { pothosExposedField: exposed, read } = field.extensions;
  if (typeof exposed === 'string') return { kind: 'columns', columns: [exposed] };
  return read as ReadDeclaration | undefined; // nobody else writes it
}

const keys = new WeakMap<FieldNode, string>();

/** Where a row holds what was read for a field: equal for equal arguments, whatever the alias. */
export function keyOf(node: FieldNode): string {
  let key = keys.get(node);
  if (key === undefined) {
    const { name, arguments: given = [] } = node;
    key = `~${name.value}${given.length === 0 ? '' : `(${given.map(print).join()})`}`;
    keys.set(node, key);
  }
  return key;
}

/** What it takes to see an object of each kind. */
export const READ_ACTION: Readonly<Record<ObjectKind, Action>> = {
  RUNTIME: 'runtime:read',
  RELEASE: 'release:read',
  DEPLOYMENT: 'deployment:read',
  AGENT: 'agent:read',
  TOKEN: 'token:read',
  ROLLOUT: 'rollout:read',
};

export interface TableOf {
  readonly RUNTIME: 'runtime';
  readonly RELEASE: 'release';
  readonly DEPLOYMENT: 'deployment';
  readonly AGENT: 'agent';
  readonly TOKEN: 'token';
  readonly ROLLOUT: 'rollout';
}
export const TABLE_OF: TableOf = {
  RUNTIME: 'runtime',
  RELEASE: 'release',
  DEPLOYMENT: 'deployment',
  AGENT: 'agent',
  TOKEN: 'token',
  ROLLOUT: 'rollout',
};
