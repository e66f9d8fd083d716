import { parseMoment } from '../kernel/clock.js';
import type { JsonObject } from '../kernel/json.js';
import type { Rows, VersionedTable } from './rows.js';
import { TABLES, type Column } from './tables.js';

/** A row as JSON keeps it: times as ISO 8601 text. */
export function rowToJson<T extends VersionedTable>(row: Rows[T]): JsonObject {
  return JSON.parse(JSON.stringify(row)) as JsonObject; // rows are plain data
}

/** The row again. A column that the JSON lacks, because it is younger, comes back as null. */
export function rowFromJson<T extends VersionedTable>(table: T, json: JsonObject): Rows[T] {
  const columns: Readonly<Record<string, Column>> = TABLES[table];
  return Object.fromEntries(
    Object.entries(columns).map(([field, column]) => {
      const value = json[field] ?? null;
      const time = column.name.endsWith('_at') && typeof value === 'string' ? parseMoment(value) : undefined;
      return [field, time ?? value];
    }),
  ) as unknown as Rows[T]; // every column of the table, as rowToJson wrote it
}
