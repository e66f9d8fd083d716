import { LRUCache } from 'lru-cache';
import { z } from 'zod';

import type { Grant } from '../access/grant.js';
import { storedConditionsSchema } from '../kernel/conditions.js';
import type { RuntimeId } from '../kernel/ids.js';
import { storedObjectSchema } from '../kernel/json.js';
import type { Database, Queryable } from '../store/database.js';
import { internalMerge, internalRead } from '../store/internal-data.js';
import { storedPart } from '../store/malformed.js';
import type { RuntimeRow } from '../store/rows.js';
import { columnList } from '../store/tables.js';
import {
  insertRowUnlessTaken,
  namespaceValues,
  readRowWithin,
  stampValues,
  updateRow,
  type Settable,
  type Stamp,
} from '../store/versioned.js';
import {
  runtimeInternalPatchSchema,
  runtimeInternalSchema,
  type RuntimeInternal,
  type RuntimeInternalPatch,
} from './internals.js';
import type { RuntimeChange, RuntimeState, RuntimeStatus } from './model.js';

/** Writes of runtimes, and what they are decided on. Every function takes the grant and touches what it allows. */
type Writing = Grant<'runtime:write'>;
type Reporting = Grant<'runtime:report' | 'system:sweep'>;

const storedLabelsSchema = z.record(z.string(), z.string());

/** The row as decisions see it. Throws MalformedObjectError for what cannot be read. */
export function runtimeState(row: RuntimeRow): RuntimeState {
  return {
    environment: row.environment,
    config: storedPart(storedObjectSchema, 'RUNTIME', row.id, 'config', row.config),
    labels: storedPart(storedLabelsSchema, 'RUNTIME', row.id, 'labels', row.labels),
    generation: row.generation,
    observedGeneration: row.observedGeneration,
    conditions: storedPart(storedConditionsSchema, 'RUNTIME', row.id, 'conditions', row.conditions),
    deletionRequestedAt: row.deletionRequestedAt,
    deletedAt: row.deletedAt,
  };
}

export function runtimeRead(db: Queryable, grant: Grant, id: RuntimeId): Promise<RuntimeRow | undefined> {
  return readRowWithin(db, 'runtime', id, grant.namespaces);
}

/** By id or by name; deleted ones are not found. */
export type RuntimeRef = { readonly id: RuntimeId } | { readonly name: string };

/**
 * The runtime that something in `namespace` refers to. `FOR SHARE` keeps it from being marked for deletion until the
 * transaction ends: what is created under it then either comes before the mark, or sees it.
 */
export async function runtimeReadReferred(
  db: Queryable,
  grant: Grant,
  namespace: string,
  ref: RuntimeRef,
  lock?: 'FOR SHARE',
): Promise<RuntimeRow | undefined> {
  const by = 'id' in ref ? 'id' : 'name';
  const result = await db.query<RuntimeRow>({
    name: `read_runtime_referred_by_${by}${lock === undefined ? '' : '_shared'}`,
    text:
      `SELECT ${columnList('runtime')} FROM runtime WHERE namespace = $1 AND ${by} = $2 AND deleted_at IS NULL` +
      ` AND ($3::text[] IS NULL OR namespace = ANY ($3)) ${lock ?? ''}`,
    values: [namespace, 'id' in ref ? ref.id : ref.name, namespaceValues(grant.namespaces)],
  });
  return result.rows[0];
}

/** Undefined when the name is taken. */
export function runtimeInsert(
  db: Queryable,
  _grant: Writing,
  id: RuntimeId,
  values: Settable<'runtime'>,
  stamp: Stamp,
): Promise<RuntimeRow | undefined> {
  return insertRowUnlessTaken(db, 'runtime', id, values, stamp);
}

/** Undefined when the row that was decided on has moved on since. */
export function runtimeChange(
  db: Queryable,
  _grant: Writing,
  decidedOn: RuntimeRow,
  change: RuntimeChange,
  stamp: Stamp,
): Promise<RuntimeRow | undefined> {
  return updateRow(db, 'runtime', decidedOn.id, decidedOn.version, change, stamp);
}

/** Whether anything that is not deleted stands on it. Final only while the runtime is locked. */
export async function runtimeHasDeployments(db: Queryable, _grant: Writing, id: RuntimeId): Promise<boolean> {
  const result = await db.query<{ any: boolean }>({
    name: 'runtime_has_deployments',
    text: 'SELECT EXISTS (SELECT FROM deployment WHERE runtime_id = $1 AND deleted_at IS NULL) AS any',
    values: [id],
  });
  return result.rows[0]?.any ?? false;
}

const PATCH_STATUS =
  'UPDATE runtime SET version = version + 1, changed_by = $4, change_reason = $5, change_message = $6,' +
  ' trace_id = $7, change_token = $8, conditions = $9, observed_generation = $10' +
  ' WHERE id = $1 AND version = $2 AND ($3::text[] IS NULL OR namespace = ANY ($3))' +
  ` RETURNING ${columnList('runtime')}`;

/** ONE statement. Undefined when the runtime no longer has that version, is gone, or stands outside the grant. */
export async function runtimePatchStatus(
  db: Queryable,
  grant: Reporting,
  id: RuntimeId,
  expectedVersion: number,
  status: RuntimeStatus,
  stamp: Stamp,
): Promise<RuntimeRow | undefined> {
  const { conditions, observedGeneration } = status;
  const result = await db.query<RuntimeRow>({
    name: 'runtime_patch_status',
    text: PATCH_STATUS,
    values: [
      id,
      expectedVersion,
      namespaceValues(grant.namespaces),
      ...stampValues(stamp),
      JSON.stringify(conditions),
      observedGeneration,
    ],
  });
  return result.rows[0];
}

/**
 * Merges named fields of the internal metadata; the rest of it stays. No version, no change row. False when there is
 * no such runtime. Throws before any I/O for a patch that names nothing, something unknown, or an impossible value.
 */
export async function runtimePatchInternal(
  db: Queryable,
  grant: Reporting,
  id: RuntimeId,
  patch: RuntimeInternalPatch,
): Promise<boolean> {
  const named = runtimeInternalPatchSchema.parse(patch);
  return internalMerge(db, 'runtime', id, named, grant.namespaces);
}

/** Status and internal metadata, both or neither. Undefined as in runtimePatchStatus: then nothing is written. */
export async function runtimePatchStatusAndInternal(
  database: Database,
  grant: Reporting,
  id: RuntimeId,
  expectedVersion: number,
  status: RuntimeStatus,
  patch: RuntimeInternalPatch,
  stamp: Stamp,
): Promise<RuntimeRow | undefined> {
  runtimeInternalPatchSchema.parse(patch); // before any I/O
  return database.inTransaction(async (tx) => {
    const row = await runtimePatchStatus(tx, grant, id, expectedVersion, status, stamp);
    if (row === undefined) return undefined;
    await runtimePatchInternal(tx, grant, id, patch);
    return row;
  });
}

/** Undefined when there is no such runtime; defaults when nothing was ever remembered about it. */
export async function runtimeReadInternal(
  db: Queryable,
  grant: Reporting,
  id: RuntimeId,
): Promise<RuntimeInternal | undefined> {
  const stored = await internalRead(db, 'runtime', id, grant.namespaces);
  return stored && storedPart(runtimeInternalSchema, 'RUNTIME', id, 'internal metadata', stored.data);
}

/**
 * A terminating runtime goes when its last deployment has: one conditional statement, right whoever runs it and how
 * often. Nothing can be created under it meanwhile, since creating holds the runtime FOR SHARE and reads the mark.
 */
const FINISH = (which: string) =>
  'UPDATE runtime SET version = version + 1, changed_by = $2, change_reason = $3, change_message = $4, trace_id = $5,' +
  ` change_token = $6, deleted_at = $7 WHERE ${which} AND deletion_requested_at IS NOT NULL AND deleted_at IS NULL` +
  ' AND NOT EXISTS (SELECT FROM deployment d WHERE d.runtime_id = runtime.id AND d.deleted_at IS NULL)' +
  ` RETURNING ${columnList('runtime')}`;

export async function runtimeFinish(
  db: Queryable,
  id: string,
  now: Date,
  stamp: Stamp,
): Promise<RuntimeRow | undefined> {
  const values = [id, ...stampValues(stamp), now];
  const result = await db.query<RuntimeRow>({ name: 'runtime_finish', text: FINISH('id = $1'), values });
  return result.rows[0];
}

/** The same for every terminating runtime, at most `batch` of them; those that went. Run again until it is less. */
export async function runtimesSweepUnchecked(
  db: Queryable,
  now: Date,
  batch: number,
  stamp: Stamp,
): Promise<readonly RuntimeRow[]> {
  const ready =
    'id = ANY (ARRAY(SELECT r.id FROM runtime r WHERE r.deletion_requested_at IS NOT NULL AND r.deleted_at IS NULL' +
    ' AND NOT EXISTS (SELECT FROM deployment d WHERE d.runtime_id = r.id AND d.deleted_at IS NULL)' +
    ' ORDER BY r.id LIMIT $1 FOR UPDATE SKIP LOCKED))';
  const values = [batch, ...stampValues(stamp), now];
  const result = await db.query<RuntimeRow>({ name: 'runtimes_sweep', text: FINISH(ready), values });
  return result.rows;
}

/** Takes away at most `batch` rows deleted before `cutoff`, once no row of a deployment points at them any more. */
export async function runtimesPurgeUnchecked(db: Queryable, cutoff: Date, batch: number): Promise<number> {
  const result = await db.query({
    // Not named: planned for any moment and any number, it would read every deployment.
    text:
      'DELETE FROM runtime WHERE id = ANY (ARRAY(SELECT r.id FROM runtime r WHERE r.deleted_at < $1' +
      ' AND NOT EXISTS (SELECT FROM deployment d WHERE d.runtime_id = r.id)' +
      ' ORDER BY r.deleted_at LIMIT $2 FOR UPDATE SKIP LOCKED))',
    values: [cutoff, batch],
  });
  return result.rowCount ?? 0;
}

/** Types remembered at most. */
const TYPES_MAX = 10_000;

/** The type of a runtime never changes and ids are never used again, so what was read once is right for good. */
export function runtimeTypes(): (db: Queryable, id: string) => Promise<string | undefined> {
  const known = new LRUCache<string, string>({ max: TYPES_MAX });
  // Over the caller's own connection: one that holds a transaction open must not wait for a second one of a full pool.
  return async (db, id) => {
    const remembered = known.get(id);
    if (remembered !== undefined) return remembered;
    const result = await db.query<{ type: string }>({
      name: 'read_runtime_type',
      text: 'SELECT type FROM runtime WHERE id = $1',
      values: [id],
    });
    const type = result.rows[0]?.type;
    if (type !== undefined) known.set(id, type);
    return type;
  };
}
