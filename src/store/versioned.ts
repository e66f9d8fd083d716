import { createHash, randomUUID } from 'node:crypto';

import type { Queryable, Statement } from './database.js';
import type { Prisma } from './generated/prisma/client.js';
import type { Rows, VersionedTable } from './rows.js';
import { columnList, TABLES, type Column } from './tables.js';

/**
 * Writes of versioned rows: every one carries who and why, and a token of its own, from which the log's triggers
 * tell our writes from those made past us.
 */
export interface Stamp {
  /** Actor id: `token:…`, `local`, `system:…`. */
  readonly actor: string;
  readonly reason: string | null;
  /** For people, beside the reason; absent as null. */
  readonly message?: string | null;
  readonly traceId: string | null;
}

/** The columns that a write may set: never the identity, the version or the times, which the database keeps. */
export type Settable<T extends VersionedTable> = {
  [F in Exclude<keyof Rows[T], 'id' | 'version' | 'createdAt' | 'updatedAt'>]?: Written<Rows[T][F]>;
};
/** jsonb columns take whatever JSON.stringify does: the driver's own JSON type knows no readonly arrays. */
type Written<V> = Prisma.JsonValue extends V ? unknown : V;

/** Inserts version 1. Unique violations are thrown by the driver (code 23505) and are the caller's to translate. */
export async function insertRow<T extends VersionedTable>(
  db: Queryable,
  table: T,
  id: string,
  values: Settable<T>,
  stamp: Stamp,
): Promise<Rows[T]> {
  const row = await insert(db, table, id, values, stamp, '');
  if (!row) throw new Error(`insert into ${table} returned no row`);
  return row;
}

/**
 * Inserts version 1, or nothing where a unique name is taken: undefined. Waits for a transaction that is about to take
 * it, and leaves the own transaction usable.
 */
export function insertRowUnlessTaken<T extends VersionedTable>(
  db: Queryable,
  table: T,
  id: string,
  values: Settable<T>,
  stamp: Stamp,
): Promise<Rows[T] | undefined> {
  return insert(db, table, id, values, stamp, ' ON CONFLICT DO NOTHING');
}

async function insert<T extends VersionedTable>(
  db: Queryable,
  table: T,
  id: string,
  values: Settable<T>,
  stamp: Stamp,
  onConflict: '' | ' ON CONFLICT DO NOTHING',
): Promise<Rows[T] | undefined> {
  const fields = settableFields(table, values);
  const columns = fields.map((field) => column(table, field).name);
  const result = await db.query<Rows[T]>(
    named(`insert${onConflict === '' ? '' : '_unless_taken'}_${table}`, fields, {
      text:
        `INSERT INTO ${table} (id, changed_by, change_reason, change_message, trace_id, change_token${columns.map((c) => `, ${c}`).join('')})` +
        ` VALUES ($1, $2, $3, $4, $5, $6${columns.map((_, i) => `, $${i + 7}`).join('')})` +
        `${onConflict} RETURNING ${columnList(table)}`,
      values: [id, ...stampValues(stamp), ...parameters(table, fields, values)],
    }),
  );
  return result.rows[0];
}

/**
 * One statement: sets the fields and moves the version on, if the row still has `expectedVersion`. Undefined when it
 * does not, or is gone; a second read tells which.
 */
export async function updateRow<T extends VersionedTable>(
  db: Queryable,
  table: T,
  id: string,
  expectedVersion: number,
  values: Settable<T>,
  stamp: Stamp,
): Promise<Rows[T] | undefined> {
  const fields = settableFields(table, values);
  const assignments = fields.map((field, i) => `, ${column(table, field).name} = $${i + 8}`).join('');
  const result = await db.query<Rows[T]>(
    named(`update_${table}`, fields, {
      text:
        `UPDATE ${table} SET version = version + 1, changed_by = $3, change_reason = $4, change_message = $5, trace_id = $6, change_token = $7${assignments}` +
        ` WHERE id = $1 AND version = $2 RETURNING ${columnList(table)}`,
      values: [id, expectedVersion, ...stampValues(stamp), ...parameters(table, fields, values)],
    }),
  );
  return result.rows[0];
}

/** The row as it is now, as the owner sees it. `lock` holds it until the transaction ends. */
export async function readRow<T extends VersionedTable>(
  db: Queryable,
  table: T,
  id: string,
  lock?: 'FOR UPDATE',
): Promise<Rows[T] | undefined> {
  const result = await db.query<Rows[T]>({
    name: `read_${table}${lock ? '_locked' : ''}`,
    text: `SELECT ${columnList(table)} FROM ${table} WHERE id = $1 ${lock ?? ''}`,
    values: [id],
  });
  return result.rows[0];
}

/** The bookkeeping columns in their order: changed_by, change_reason, change_message, trace_id, change_token. */
export function stampValues(stamp: Stamp): readonly unknown[] {
  return [stamp.actor, stamp.reason, stamp.message ?? null, stamp.traceId, randomUUID()];
}

/** A row that stands in one of `namespaces`, as the owner sees it now. */
export async function readRowWithin<T extends 'runtime' | 'release' | 'deployment' | 'rollout'>(
  db: Queryable,
  table: T,
  id: string,
  namespaces: 'all' | ReadonlySet<string>,
): Promise<Rows[T] | undefined> {
  const result = await db.query<Rows[T]>({
    name: `read_${table}_within`,
    text: `SELECT ${columnList(table)} FROM ${table} WHERE id = $1 AND ($2::text[] IS NULL OR namespace = ANY ($2))`,
    values: [id, namespaceValues(namespaces)],
  });
  return result.rows[0];
}

/** For `($n::text[] IS NULL OR namespace = ANY ($n))`. */
export function namespaceValues(namespaces: 'all' | ReadonlySet<string>): string[] | null {
  return namespaces === 'all' ? null : [...namespaces];
}

function settableFields<T extends VersionedTable>(table: T, values: Settable<T>): string[] {
  // Sorted, so that one set of fields is one prepared statement however the caller wrote it.
  return Object.keys(values)
    .filter((field) => (values as Record<string, unknown>)[field] !== undefined) // only to read by name
    .sort();
}

function column(table: VersionedTable, field: string): Column {
  const found = (TABLES[table] as Record<string, Column>)[field]; // field comes from a value typed by the same table
  if (!found) throw new Error(`${table} has no column ${field}`);
  return found;
}

function parameters<T extends VersionedTable>(table: T, fields: string[], values: Settable<T>): unknown[] {
  return fields.map((field) => {
    const value = (values as Record<string, unknown>)[field]; // only to read by name
    return column(table, field).json && value !== null ? JSON.stringify(value) : value;
  });
}

function named(prefix: string, fields: string[], statement: Statement): Statement {
  const digest = createHash('sha256').update(fields.join()).digest('hex').slice(0, 12);
  return { name: `${prefix}_${digest}`, ...statement };
}
