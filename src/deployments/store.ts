import type { Grant } from '../access/grant.js';
import { storedConditionsSchema } from '../kernel/conditions.js';
import type { DeploymentId } from '../kernel/ids.js';
import { storedObjectSchema } from '../kernel/json.js';
import type { Database, Queryable } from '../store/database.js';
import { internalMerge, internalRead } from '../store/internal-data.js';
import { storedPart } from '../store/malformed.js';
import type { DeploymentRow } from '../store/rows.js';
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
import type { DeploymentChange } from './intents.js';
import {
  deploymentInternalPatchSchema,
  deploymentInternalSchema,
  type DeploymentInternal,
  type DeploymentInternalPatch,
} from './internals.js';
import { stateWithStatus, type DeploymentState, type DeploymentStatus } from './model.js';
import {
  storedEnvironmentInfoSchema,
  storedEnvSchema,
  storedErrorSchema,
  storedLabelsSchema,
  storedRuntimeSchema,
} from './stored.js';

/** Writes of deployments, and what they are decided on. Every function takes the grant and touches what it allows. */
type Reporting = Grant<'deployment:report'>;
type Writing = Grant<'deployment:write' | 'deployment:detach' | 'deployment:forget'>;
type Controlling = Grant<'deployment:report' | 'deployment:write' | 'system:sweep'>;

/** States of rows that are held somewhere. A row never changes: what is written makes another one. */
const states = new WeakMap<DeploymentRow, DeploymentState>();

/** The row as decisions see it. Throws MalformedObjectError for what cannot be read. */
export function deploymentState(row: DeploymentRow): DeploymentState {
  let state = states.get(row);
  if (state === undefined) {
    state = readState(row);
    states.set(row, state);
  }
  return state;
}

function readState(row: DeploymentRow): DeploymentState {
  const part = <T>(schema: Parameters<typeof storedPart<T>>[0], name: string, value: unknown) =>
    storedPart(schema, 'DEPLOYMENT', row.id, name, value);
  return {
    phase: row.phase,
    conditions: part(storedConditionsSchema, 'conditions', row.conditions),
    observedGeneration: row.observedGeneration,
    observedRuntime: part(storedRuntimeSchema, 'runtime', row.observedRuntime),
    environmentInfo: part(storedEnvironmentInfoSchema, 'environmentInfo', row.environmentInfo),
    error: part(storedErrorSchema, 'error', row.error),
    currentReleaseId: row.currentReleaseId,
    targetReleaseId: row.targetReleaseId,
    retryRequested: row.retryRequested,
    deletedAt: row.deletedAt,
    desiredState: row.desiredState,
    env: part(storedEnvSchema, 'env', row.env),
    runtimeConfig: part(storedObjectSchema, 'runtimeConfig', row.runtimeConfig),
    labels: part(storedLabelsSchema, 'labels', row.labels),
    generation: row.generation,
    protocolVersion: row.protocolVersion,
    deletionRequestedAt: row.deletionRequestedAt,
  };
}

export function deploymentRead(
  db: Queryable,
  grant: Grant,
  id: DeploymentId,
): Promise<DeploymentRow | undefined> {
  return readRowWithin(db, 'deployment', id, grant.namespaces);
}

/** The live one of that name: a deleted one has given its name back. */
export async function deploymentReadByName(
  db: Queryable,
  grant: Grant,
  namespace: string,
  name: string,
): Promise<DeploymentRow | undefined> {
  const result = await db.query<DeploymentRow>({
    name: 'read_deployment_by_name',
    text:
      `SELECT ${columnList('deployment')} FROM deployment WHERE namespace = $1 AND name = $2 AND deleted_at IS NULL` +
      ' AND ($3::text[] IS NULL OR namespace = ANY ($3))',
    values: [namespace, name, namespaceValues(grant.namespaces)],
  });
  return result.rows[0];
}

// Fixed text with every status column and no other: one plan, and no spec column that a status write could touch.
const PATCH_STATUS =
  'UPDATE deployment SET version = version + 1, changed_by = $4, change_reason = $5, change_message = $6,' +
  ' trace_id = $7, change_token = $8, phase = $9, conditions = $10, observed_generation = $11,' +
  ' observed_runtime = $12, environment_info = $13, error = $14, current_release_id = $15,' +
  ' target_release_id = $16, retry_requested = $17, deleted_at = $18' +
  ' WHERE id = $1 AND version = $2 AND ($3::text[] IS NULL OR namespace = ANY ($3))' +
  ' RETURNING updated_at AS "updatedAt"';

/**
 * ONE statement: the status, the next version and, by the trigger, the change row. Undefined when the deployment no
 * longer is at the version that was decided on, is gone, or stands outside the grant; a read tells which.
 *
 * An object at one version is one row, whoever read it: that the version matched says what the rest of the row is, and
 * the database tells only what it alone knows.
 */
export async function deploymentPatchStatus(
  db: Queryable,
  grant: Reporting | Grant<'system:sweep'>,
  decidedOn: DeploymentRow,
  status: DeploymentStatus,
  stamp: Stamp,
): Promise<DeploymentRow | undefined> {
  const result = await db.query<Pick<DeploymentRow, 'updatedAt'>>({
    name: 'deployment_patch_status',
    text: PATCH_STATUS,
    values: [
      decidedOn.id,
      decidedOn.version,
      namespaceValues(grant.namespaces),
      ...stampValues(stamp),
      status.phase,
      JSON.stringify(status.conditions),
      status.observedGeneration,
      jsonOrNull(status.observedRuntime),
      jsonOrNull(status.environmentInfo),
      jsonOrNull(status.error),
      status.currentReleaseId,
      status.targetReleaseId,
      status.retryRequested,
      status.deletedAt,
    ],
  });
  const [kept] = result.rows;
  return kept && withStatus(decidedOn, status, kept.updatedAt);
}

function withStatus(decidedOn: DeploymentRow, status: DeploymentStatus, updatedAt: Date): DeploymentRow {
  const row = rowWithStatus(decidedOn, status, updatedAt);
  const known = states.get(decidedOn);
  if (known) states.set(row, stateWithStatus(known, status));
  return row;
}

/** Written out by name: to copy an object with so many fields costs more than all that a patch decides. */
function rowWithStatus(from: DeploymentRow, status: DeploymentStatus, updatedAt: Date): DeploymentRow {
  const row = {
    id: from.id,
    namespace: from.namespace,
    name: from.name,
    app: from.app,
    origin: from.origin,
    runtimeId: from.runtimeId,
    labels: from.labels,
    generation: from.generation,
    desiredState: from.desiredState,
    env: from.env,
    runtimeConfig: from.runtimeConfig,
    phase: status.phase,
    conditions: status.conditions,
    observedGeneration: status.observedGeneration,
    observedRuntime: status.observedRuntime,
    environmentInfo: status.environmentInfo,
    error: status.error,
    currentReleaseId: status.currentReleaseId,
    targetReleaseId: status.targetReleaseId,
    retryRequested: status.retryRequested,
    protocolVersion: from.protocolVersion,
    deletionRequestedAt: from.deletionRequestedAt,
    deletedAt: status.deletedAt,
    version: from.version + 1,
    createdAt: from.createdAt,
    updatedAt,
  } satisfies Record<keyof DeploymentRow, unknown>;
  return row as unknown as DeploymentRow; // JSON as it was written is JSON as it is read
}

function jsonOrNull(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}

/**
 * Merges named fields of the internal metadata; the rest of it stays. No version, no change row. False when there is
 * no such deployment. Throws before any I/O for a patch that names nothing, something unknown, or an impossible value.
 */
export async function deploymentPatchInternal(
  db: Queryable,
  grant: Controlling,
  id: DeploymentId,
  patch: DeploymentInternalPatch,
): Promise<boolean> {
  const named = deploymentInternalPatchSchema.parse(patch);
  return internalMerge(db, 'deployment', id, named, grant.namespaces);
}

/** Status and internal metadata, both or neither. Undefined as in deploymentPatchStatus: then nothing is written. */
export async function deploymentPatchStatusAndInternal(
  database: Database,
  grant: Reporting | Grant<'system:sweep'>,
  decidedOn: DeploymentRow,
  status: DeploymentStatus,
  patch: DeploymentInternalPatch,
  stamp: Stamp,
): Promise<DeploymentRow | undefined> {
  deploymentInternalPatchSchema.parse(patch); // before any I/O
  return database.inTransaction(async (tx) => {
    const row = await deploymentPatchStatus(tx, grant, decidedOn, status, stamp);
    if (row === undefined) return undefined;
    await deploymentPatchInternal(tx, grant, row.id as DeploymentId, patch); // a stored id
    return row;
  });
}

/** Undefined when there is no such deployment; defaults when nothing was ever remembered about it. */
export async function deploymentReadInternal(
  db: Queryable,
  grant: Controlling,
  id: DeploymentId,
): Promise<DeploymentInternal | undefined> {
  const stored = await internalRead(db, 'deployment', id, grant.namespaces);
  return stored && storedPart(deploymentInternalSchema, 'DEPLOYMENT', id, 'internal metadata', stored.data);
}

/** Undefined when the name is taken. */
export function deploymentInsert(
  db: Queryable,
  _grant: Writing,
  id: DeploymentId,
  values: Settable<'deployment'>,
  stamp: Stamp,
): Promise<DeploymentRow | undefined> {
  return insertRowUnlessTaken(db, 'deployment', id, values, stamp);
}

/** What an intent made of the row that was decided on; undefined when it has moved on since. */
export function deploymentChange(
  db: Queryable,
  _grant: Writing,
  decidedOn: DeploymentRow,
  change: DeploymentChange,
  stamp: Stamp,
): Promise<DeploymentRow | undefined> {
  return updateRow(db, 'deployment', decidedOn.id, decidedOn.version, change, stamp);
}

/**
 * Takes away at most `batch` rows deleted before `cutoff`; the log said DELETE when they were. Their rollouts go before
 * them: see `rolloutsPurgeUnchecked`.
 */
export async function deploymentsPurgeUnchecked(db: Queryable, cutoff: Date, batch: number): Promise<number> {
  const result = await db.query({
    name: 'deployments_purge',
    text:
      'DELETE FROM deployment WHERE id = ANY (ARRAY(SELECT id FROM deployment d' +
      ' WHERE deleted_at < $1 AND NOT EXISTS (SELECT FROM rollout r WHERE r.deployment_id = d.id)' +
      ' ORDER BY deleted_at LIMIT $2 FOR UPDATE SKIP LOCKED))',
    values: [cutoff, batch],
  });
  return result.rowCount ?? 0;
}
