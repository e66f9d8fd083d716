import type { QueryResultRow } from 'pg';

import type { Predicate } from '../kernel/filter.js';
import type { Queryable } from './database.js';
import { filterSql } from './filter-sql.js';
import type { Rows, VersionedTable } from './rows.js';
import { columnList, TABLES, type Column } from './tables.js';

/** What a watch begins with, read on the transaction of the feed. One row more than fits says that there are too many. */
export type SnapshotRows<R> = (tx: Queryable, limit: number) => Promise<readonly R[]>;

/** Facts that stand beside the rows, as a select list, and the join that brings them. */
interface Joined {
  readonly columns: string;
  readonly join: string;
}

/** The rows of a filter that stand in one of `namespaces`, the oldest first; deleted ones are left out. */
export function snapshotRows<T extends VersionedTable, R extends QueryResultRow = Rows[T]>(
  table: T,
  predicate: Predicate<string>,
  namespaces: 'all' | ReadonlySet<string>,
  beside?: Joined,
): SnapshotRows<R> {
  const allowed: Predicate<string> =
    namespaces === 'all'
      ? predicate
      : { kind: 'all', of: [{ kind: 'in', field: 'namespace', values: [...namespaces] }, predicate] };
  const columns: Readonly<Record<string, Column>> = TABLES[table];
  const filter = filterSql(allowed, columns, 2);
  const text =
    `SELECT ${columnList(table)}${beside ? `, ${beside.columns}` : ''} FROM ${table}${beside ? ` ${beside.join}` : ''}` +
    ` WHERE deleted_at IS NULL AND ${filter.text} ORDER BY created_at, id LIMIT $1`;
  return async (tx, limit) => {
    const { rows } = await tx.query<R>({ text, values: [limit, ...filter.values] });
    return rows;
  };
}
