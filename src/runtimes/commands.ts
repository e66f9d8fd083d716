import { authorise, withinNamespaces } from '../access/authorise.js';
import type { Action } from '../access/actions.js';
import type { Caller } from '../access/caller.js';
import { ForbiddenError } from '../access/errors.js';
import type { Grant } from '../access/grant.js';
import { idempotentRequest } from '../access/idempotent-request.js';
import { stampOf } from '../access/stamp.js';
import type { Clock } from '../kernel/clock.js';
import { done, notFound, refused, versionConflict, type Failure, type Outcome } from '../kernel/failure.js';
import { newId } from '../kernel/ids.js';
import { validated } from '../kernel/validate.js';
import type { Database, Queryable } from '../store/database.js';
import { changeRow } from '../store/change-row.js';
import { idempotently, type ResultCodec } from '../store/idempotency.js';
import { rowFromJson, rowToJson } from '../store/row-json.js';
import type { RuntimeRow } from '../store/rows.js';
import { readRow } from '../store/versioned.js';
import {
  createRuntimeSchema,
  deleteRuntimeSchema,
  patchRuntimeStatusSchema,
  updateRuntimeSchema,
  type CreateRuntimeInput,
  type DeleteRuntimeInput,
  type PatchRuntimeStatusInput,
  type UpdateRuntimeInput,
} from './input.js';
import { applyRuntimeStatus, drivenByClients, notDrivenByClients, updateSpec } from './model.js';
import {
  runtimeChange,
  runtimeHasDeployments,
  runtimeInsert,
  runtimePatchStatus,
  runtimeRead,
  runtimeReadReferred,
  runtimeState,
} from './store.js';

export interface RuntimeDeps {
  readonly database: Database;
  readonly clock: Clock;
}

export type RuntimeOutcome = Outcome<RuntimeRow, Failure<RuntimeRow>>;

export interface RuntimeCommands {
  createRuntime(caller: Caller, input: CreateRuntimeInput): Promise<RuntimeOutcome>;
  /** Config, environment and labels; type, name and namespace never change. */
  updateRuntime(caller: Caller, input: UpdateRuntimeInput): Promise<RuntimeOutcome>;
  /** Marks it for deletion; it goes at once if no deployment lives on it, else with the last one. Repeated: success. */
  deleteRuntime(caller: Caller, input: DeleteRuntimeInput): Promise<RuntimeOutcome>;
  patchRuntimeStatus(caller: Caller, input: PatchRuntimeStatusInput): Promise<RuntimeOutcome>;
}

const CODEC: ResultCodec<RuntimeRow> = {
  what: 'runtime',
  namespaceOf: (row) => row.namespace,
  objectId: (row) => row.id,
  toJson: rowToJson,
  fromJson: (json) => rowFromJson('runtime', json),
};

type Keyed = { readonly idempotencyKey?: string | undefined };
/** Runs `work` by itself or, with a key, in the transaction of its idempotency record. */
type Run = (
  caller: Caller,
  operation: string,
  input: Keyed,
  work: (db: Queryable) => Promise<RuntimeOutcome>,
) => Promise<RuntimeOutcome>;

export function runtimeCommands(deps: RuntimeDeps): RuntimeCommands {
  const { database } = deps;
  const run: Run = (caller, operation, input, work) => {
    if (input.idempotencyKey === undefined) return work(database.writer);
    const request = idempotentRequest(caller, operation, input.idempotencyKey, input);
    return idempotently(deps, request, CODEC, work);
  };
  return {
    createRuntime: (caller, input) => createRuntime(run, caller, input),
    updateRuntime: (caller, input) => updateRuntime(deps, run, caller, input),
    deleteRuntime: (caller, input) => deleteRuntime(deps, caller, input),
    patchRuntimeStatus: (caller, input) => patchRuntimeStatus(deps, run, caller, input),
  };
}

async function createRuntime(run: Run, caller: Caller, input: CreateRuntimeInput): Promise<RuntimeOutcome> {
  const parsed = validated(createRuntimeSchema, input);
  if (!parsed.done) return parsed;
  const { namespace, name, type, environment, config, labels } = parsed.value;
  const grant = authorise(caller, 'runtime:write', { namespace });
  if (!grant) return notFound('namespace');
  const values = {
    namespace,
    name,
    type,
    environment: environment ?? null,
    config: config ?? {},
    labels: labels ?? {},
  };
  return run(caller, 'createRuntime', parsed.value, async (db) => {
    const row = await runtimeInsert(db, grant, newId('RUNTIME'), values, stampOf(grant, 'Created'));
    if (row) return done(row);
    const existing = await runtimeReadReferred(db, grant, namespace, { name });
    const message = `\`name\`: there is a runtime \`${name}\` in the namespace \`${namespace}\` already.`;
    return refused({ kind: 'AlreadyExists', message, existingId: existing?.id ?? null });
  });
}

async function updateRuntime(
  deps: RuntimeDeps,
  run: Run,
  caller: Caller,
  input: UpdateRuntimeInput,
): Promise<RuntimeOutcome> {
  const parsed = validated(updateRuntimeSchema, input);
  if (!parsed.done) return parsed;
  const { id, expectedVersion } = parsed.value;
  const grant = anywhere(caller, 'runtime:write');
  return run(caller, 'updateRuntime', parsed.value, (db) =>
    changeRow(deps.clock, {
      what: 'runtime',
      expectedVersion,
      read: () => live(runtimeRead(db, grant, id)),
      decide(row) {
        const decision = updateSpec(runtimeState(row), parsed.value);
        if (decision.kind !== 'applied') return decision;
        const { change, reason } = decision;
        return {
          kind: 'applied',
          write: () => runtimeChange(db, grant, row, change, stampOf(grant, reason)),
        };
      },
    }),
  );
}

async function deleteRuntime(
  deps: RuntimeDeps,
  caller: Caller,
  input: DeleteRuntimeInput,
): Promise<RuntimeOutcome> {
  const parsed = validated(deleteRuntimeSchema, input);
  if (!parsed.done) return parsed;
  const { id, expectedVersion, reason, message } = parsed.value;
  const grant = anywhere(caller, 'runtime:write');
  return deps.database.inTransaction(async (tx): Promise<RuntimeOutcome> => {
    // Locked, so that nothing is created under it between the look at its deployments and the mark.
    const row = await readRow(tx, 'runtime', id, 'FOR UPDATE');
    if (!row || !withinNamespaces(grant.namespaces, row.namespace)) return notFound('runtime');
    if (row.deletionRequestedAt !== null) return done(row);
    if (expectedVersion !== undefined && expectedVersion !== row.version) {
      return versionConflict('runtime', row);
    }
    const now = deps.clock.now();
    const deletedAt = (await runtimeHasDeployments(tx, grant, id)) ? null : now;
    const change = { deletionRequestedAt: now, deletedAt };
    const stamp = stampOf(grant, reason ?? 'DeleteRequested', message);
    const written = await runtimeChange(tx, grant, row, change, stamp);
    if (!written) throw new Error(`runtime ${id} moved on while it was locked`);
    return done(written);
  });
}

async function patchRuntimeStatus(
  deps: RuntimeDeps,
  run: Run,
  caller: Caller,
  input: PatchRuntimeStatusInput,
): Promise<RuntimeOutcome> {
  const parsed = validated(patchRuntimeStatusSchema, input);
  if (!parsed.done) return parsed;
  const { id, expectedVersion, reason, message } = parsed.value;
  const grant = anywhere(caller, 'runtime:report');
  return run(caller, 'patchRuntimeStatus', parsed.value, (db) =>
    changeRow(deps.clock, {
      what: 'runtime',
      expectedVersion,
      read: () => live(runtimeRead(db, grant, id)),
      decide(row) {
        if (!drivenByClients(row.type)) return { kind: 'refused', failure: notDrivenByClients(row.type) };
        const decision = applyRuntimeStatus(runtimeState(row), parsed.value, deps.clock.now());
        if (decision.kind !== 'applied') return decision;
        const { status } = decision;
        const stamp = stampOf(grant, reason ?? null, message);
        return {
          kind: 'applied',
          write: () => runtimePatchStatus(db, grant, id, row.version, status, stamp),
        };
      },
    }),
  );
}

/** For an object named by its id alone: the store holds the row against the namespaces of the grant. */
function anywhere<A extends Action>(caller: Caller, action: A): Grant<A> {
  const grant = authorise(caller, action);
  if (!grant) throw new ForbiddenError('The roles of the caller do not allow this.');
  return grant;
}

/** A deleted runtime is kept for the log's sake; to users it is gone. */
async function live(row: Promise<RuntimeRow | undefined>): Promise<RuntimeRow | undefined> {
  const found = await row;
  return found?.deletedAt === null ? found : undefined;
}
