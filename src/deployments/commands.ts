import { authorise } from '../access/authorise.js';
import type { Action } from '../access/actions.js';
import type { Caller } from '../access/caller.js';
import { ForbiddenError } from '../access/errors.js';
import type { Grant } from '../access/grant.js';
import { stampOf } from '../access/stamp.js';
import type { Feed } from '../changes/feed.js';
import type { Clock } from '../kernel/clock.js';
import { assertNever } from '../kernel/assert-never.js';
import {
  done,
  invalidInput,
  notFound,
  refused,
  versionConflict,
  type Failure,
  type Outcome,
} from '../kernel/failure.js';
import { newId, type DeploymentId } from '../kernel/ids.js';
import { redecide } from '../kernel/redecide.js';
import { validated } from '../kernel/validate.js';
import { releaseReadReferred, type ReleaseRef } from '../releases/index.js';
import {
  drivenByClients,
  notDrivenByClients,
  runtimeFinish,
  runtimeReadReferred,
  runtimeTypes,
  type RuntimeRef,
} from '../runtimes/index.js';
import { changeRow } from '../store/change-row.js';
import type { Database, Queryable } from '../store/database.js';
import { idempotently, type ResultCodec } from '../store/idempotency.js';
import { MalformedObjectError } from '../store/malformed.js';
import { ObjectCache } from '../store/object-cache.js';
import { rowFromJson, rowToJson } from '../store/row-json.js';
import type { DeploymentRow, ReleaseRow, RuntimeRow } from '../store/rows.js';
import {
  applyDeploymentSchema,
  deleteDeploymentSchema,
  patchDeploymentStatusSchema,
  retryDeploymentSchema,
  undeployDeploymentSchema,
  type ApplyDeploymentInput,
  type ApplyDeployment,
  type DeleteDeploymentInput,
  type DeleteMode,
  type PatchDeploymentStatus,
  type PatchDeploymentStatusInput,
  type RetryDeploymentInput,
  type UndeployDeploymentInput,
} from './input.js';
import { applySpec, dropRecord, requestDelete, retry, undeploy, type IntentDecision } from './intents.js';
import type { DeploymentState } from './model.js';
import { applyStatus } from './status.js';
import {
  deploymentChange,
  deploymentInsert,
  deploymentPatchStatus,
  deploymentRead,
  deploymentReadByName,
  deploymentState,
} from './store.js';

export interface DeploymentDeps {
  readonly database: Database;
  readonly clock: Clock;
  /** Tells of versions that others wrote, so that the next patch is decided without a read. */
  readonly feed: Pick<Feed, 'listen'>;
}

export type DeploymentOutcome = Outcome<DeploymentRow, Failure<DeploymentRow>>;
export type ApplyResult = 'CREATED' | 'UPDATED' | 'UNCHANGED';
export interface AppliedDeployment {
  readonly deployment: DeploymentRow;
  readonly result: ApplyResult;
}
export type ApplyOutcome = Outcome<AppliedDeployment, Failure<DeploymentRow>>;

export interface DeploymentCommands {
  /** What the controller of an external runtime reports. One statement in one round trip, if it is the next version. */
  patchDeploymentStatus(caller: Caller, input: PatchDeploymentStatusInput): Promise<DeploymentOutcome>;
  /** Creates or updates by namespace and name. */
  applyDeployment(caller: Caller, input: ApplyDeploymentInput): Promise<ApplyOutcome>;
  undeployDeployment(caller: Caller, input: UndeployDeploymentInput): Promise<DeploymentOutcome>;
  retryDeployment(caller: Caller, input: RetryDeploymentInput): Promise<DeploymentOutcome>;
  deleteDeployment(caller: Caller, input: DeleteDeploymentInput): Promise<DeploymentOutcome>;
}

const CODEC: ResultCodec<DeploymentRow> = {
  objectId: (row) => row.id,
  toJson: rowToJson,
  fromJson: (json) => rowFromJson('deployment', json),
};
const APPLIED_CODEC: ResultCodec<AppliedDeployment> = {
  objectId: ({ deployment }) => deployment.id,
  toJson: ({ deployment, result }) => ({ deployment: rowToJson(deployment), result }),
  fromJson: ({ deployment, result }) => ({
    deployment: rowFromJson('deployment', deployment as ReturnType<typeof rowToJson>), // as toJson wrote it
    result: result as ApplyResult, // as toJson wrote it
  }),
};

/** What the use cases share. */
interface Parts extends DeploymentDeps {
  readonly cache: ObjectCache<DeploymentRow>;
  readonly runtimeType: (id: string) => Promise<string | undefined>;
}

export function deploymentCommands(deps: DeploymentDeps): DeploymentCommands {
  const cache = new ObjectCache<DeploymentRow>();
  deps.feed.listen(['DEPLOYMENT'], (change) => {
    if (change.kind !== 'DEPLOYMENT') return;
    // A row removed past the server has no newer version; its last one would be taken for the current.
    if (change.op === 'DELETE' && change.after.deletedAt === null) cache.forget(change.objectId);
    else cache.note(change.after);
  });
  const parts: Parts = { ...deps, cache, runtimeType: runtimeTypes(deps.database) };
  return {
    patchDeploymentStatus: (caller, input) => patchDeploymentStatus(parts, caller, input),
    applyDeployment: (caller, input) => applyDeployment(parts, caller, input),
    async undeployDeployment(caller, input) {
      const parsed = validated(undeployDeploymentSchema, input);
      if (!parsed.done) return parsed;
      const grant = anywhere(caller, 'deployment:write');
      return intend(parts, caller, grant, 'undeployDeployment', parsed.value, undeploy);
    },
    async retryDeployment(caller, input) {
      const parsed = validated(retryDeploymentSchema, input);
      if (!parsed.done) return parsed;
      const grant = anywhere(caller, 'deployment:write');
      return intend(parts, caller, grant, 'retryDeployment', parsed.value, retry);
    },
    async deleteDeployment(caller, input) {
      const parsed = validated(deleteDeploymentSchema, input);
      if (!parsed.done) return parsed;
      const grant = deleteGrant(caller, parsed.value.mode);
      return intend(parts, caller, grant, 'deleteDeployment', parsed.value, deletion(parsed.value.mode));
    },
  };
}

// Status patches -----------------------------------------------------------------------------------------------------
async function patchDeploymentStatus(
  parts: Parts,
  caller: Caller,
  input: PatchDeploymentStatusInput,
): Promise<DeploymentOutcome> {
  const parsed = validated(patchDeploymentStatusSchema, input);
  if (!parsed.done) return parsed;
  const patch = parsed.value;
  const grant = anywhere(caller, 'deployment:report');
  const outcome = await run(parts, caller, 'patchDeploymentStatus', patch, CODEC, (on) =>
    reportOnce(parts, grant, on, patch),
  );
  return settle(parts, grant, outcome);
}

/**
 * A cached row that has the expected version is the row at that version, so it can be decided on without a read; that
 * it still is the current one, the write proves by its WHERE. Whatever is no write is decided on a fresh row: an old
 * row must not tell a client that nothing changed, or that a move is illegal.
 */
async function reportOnce(
  parts: Parts,
  grant: Grant<'deployment:report'>,
  on: On,
  patch: PatchDeploymentStatus,
): Promise<DeploymentOutcome> {
  const cached = parts.cache.newest(patch.id);
  if (cached?.version === patch.expectedVersion) {
    const decision = await decideReport(parts, cached, patch);
    const written = decision.kind === 'applied' ? await decision.write(grant, on.write) : undefined;
    if (written) return done(written);
  }
  const row = await deploymentRead(on.read, grant, patch.id);
  if (!row) return notFound('deployment');
  if (row.version !== patch.expectedVersion) return versionConflict('deployment', row);
  const decision = await decideReport(parts, row, patch);
  if (decision.kind === 'unchanged') return done(row);
  if (decision.kind === 'refused') return refused(decision.failure);
  const written = await decision.write(grant, on.write);
  if (written) return done(written);
  const winner = await deploymentRead(on.read, grant, patch.id);
  return winner ? versionConflict('deployment', winner) : notFound('deployment');
}

async function decideReport(parts: Parts, row: DeploymentRow, patch: PatchDeploymentStatus) {
  const type = await parts.runtimeType(row.runtimeId);
  if (type === undefined) throw new MalformedObjectError('DEPLOYMENT', row.id, 'runtime', 'there is no such runtime');
  if (!drivenByClients(type)) return { kind: 'refused', failure: notDrivenByClients(type) } as const;
  const decision = applyStatus(deploymentState(row), patch, parts.clock.now());
  if (decision.kind !== 'applied') return decision;
  return {
    kind: 'applied',
    write: (grant: Grant<'deployment:report'>, db: Queryable) => {
      const stamp = stampOf(grant, patch.reason ?? null, patch.message);
      return deploymentPatchStatus(db, grant, patch.id, row.version, decision.status, stamp);
    },
  } as const;
}

// Apply --------------------------------------------------------------------------------------------------------------
async function applyDeployment(parts: Parts, caller: Caller, input: ApplyDeploymentInput): Promise<ApplyOutcome> {
  const parsed = validated(applyDeploymentSchema, input);
  if (!parsed.done) return parsed;
  const wanted = parsed.value;
  const grant = authorise(caller, 'deployment:write', { namespace: wanted.namespace });
  if (!grant) return notFound('namespace');

  let latest: DeploymentRow | undefined;
  const settled = async (once: () => Promise<ApplyOutcome | 'again'>): Promise<ApplyOutcome> => {
    const outcome = await redecide(parts.clock, Math.random, once);
    if (outcome !== undefined) return outcome;
    return latest === undefined ? notFound('deployment') : versionConflict('deployment', latest);
  };
  const applyOnce = async (db: Queryable): Promise<ApplyOutcome | 'again'> => {
    const existing = await deploymentReadByName(db, grant, wanted.namespace, wanted.name);
    latest = existing;
    return existing ? updateOnce(db, grant, existing, wanted) : createOnce(db, grant, wanted);
  };
  const { database } = parts;
  const outcome =
    wanted.idempotencyKey === undefined
      ? await settled(() => database.inTransaction(applyOnce))
      : await run(parts, caller, 'applyDeployment', wanted, APPLIED_CODEC, (on) => settled(() => applyOnce(on.write)));
  if (outcome.done) parts.cache.note(outcome.value.deployment);
  return outcome;
}

type Writing = Grant<'deployment:write'>;

async function createOnce(db: Queryable, grant: Writing, wanted: ApplyDeployment): Promise<ApplyOutcome | 'again'> {
  const { namespace, name, expectedVersion, labels = {}, env = [], runtimeConfig = {} } = wanted;
  // A version can only be expected of something that is there.
  if (expectedVersion !== undefined) return notFound('deployment');
  const missing = (field: string) => ({ path: ['input', field], message: 'must be given to create a deployment' });
  const { runtime: runtimeRef, release: releaseRef } = wanted;
  if (!runtimeRef || !releaseRef) {
    return invalidInput([...(runtimeRef ? [] : [missing('runtime')]), ...(releaseRef ? [] : [missing('release')])]);
  }
  const release = await findRelease(db, grant, namespace, releaseRef, wanted.app);
  if (!release.done) return release;
  const runtime = await findRuntime(db, grant, namespace, runtimeRef, 'FOR SHARE');
  if (!runtime.done) return runtime;
  if (runtime.value.deletionRequestedAt !== null) return terminatingRuntime(runtime.value);

  const values = {
    namespace,
    name,
    app: release.value.app,
    runtimeId: runtime.value.id,
    labels,
    env,
    runtimeConfig,
    targetReleaseId: release.value.id,
  };
  const stamp = stampOf(grant, wanted.reason ?? 'Created', wanted.message);
  const deployment = await deploymentInsert(db, grant, newId('DEPLOYMENT'), values, stamp);
  // Somebody else took the name just now: what was a create is an update.
  return deployment ? done({ deployment, result: 'CREATED' }) : 'again';
}

async function updateOnce(
  db: Queryable,
  grant: Writing,
  row: DeploymentRow,
  wanted: ApplyDeployment,
): Promise<ApplyOutcome | 'again'> {
  if (wanted.expectedVersion !== undefined && wanted.expectedVersion !== row.version) {
    return versionConflict('deployment', row);
  }
  if (wanted.app !== undefined && wanted.app !== row.app) return neverChanges('app', row.app);
  const target = await findTarget(db, grant, row, wanted);
  if (!target.done) return target;
  const { runtime, releaseId } = target.value;
  const decision = applySpec(deploymentState(row), { ...wanted, releaseId });
  if (decision.kind === 'refused') return refused(decision.failure);
  if (decision.kind === 'unchanged') return done({ deployment: row, result: 'UNCHANGED' });
  if (decision.change.generation !== undefined && runtime.deletionRequestedAt !== null) {
    return terminatingRuntime(runtime);
  }
  const stamp = stampOf(grant, wanted.reason ?? decision.reason, wanted.message);
  const deployment = await deploymentChange(db, grant, row, decision.change, stamp);
  return deployment ? done({ deployment, result: 'UPDATED' }) : 'again';
}

/** Where and what an update means: the runtime it must stay on, and the release it asks for or goes on wanting. */
async function findTarget(
  db: Queryable,
  grant: Writing,
  row: DeploymentRow,
  wanted: ApplyDeployment,
): Promise<Outcome<{ runtime: RuntimeRow; releaseId: string }, Failure<never>>> {
  const own = { id: row.runtimeId } as RuntimeRef; // a stored id of a runtime
  const runtime = await findRuntime(db, grant, row.namespace, wanted.runtime ?? own);
  if (!runtime.done) return runtime;
  if (runtime.value.id !== row.runtimeId) return neverChanges('runtime', row.runtimeId);
  if (!wanted.release) {
    const releaseId = row.targetReleaseId ?? row.currentReleaseId;
    if (releaseId !== null) return done({ runtime: runtime.value, releaseId });
    return invalidInput([{ path: ['input', 'release'], message: 'must be given: the deployment has none' }]);
  }
  const release = await findRelease(db, grant, row.namespace, wanted.release, row.app);
  return release.done ? done({ runtime: runtime.value, releaseId: release.value.id }) : release;
}

async function findRuntime(
  db: Queryable,
  grant: Writing,
  namespace: string,
  ref: NonNullable<ApplyDeployment['runtime']> | RuntimeRef,
  lock?: 'FOR SHARE',
): Promise<Outcome<RuntimeRow, Failure<never>>> {
  const { id, name } = { id: undefined, name: undefined, ...ref };
  const row = await runtimeReadReferred(db, grant, namespace, id === undefined ? { name: name ?? '' } : { id }, lock);
  return row ? done(row) : notFound('runtime');
}

async function findRelease(
  db: Queryable,
  grant: Writing,
  namespace: string,
  ref: NonNullable<ApplyDeployment['release']>,
  app: string | undefined,
): Promise<Outcome<ReleaseRow, Failure<never>>> {
  const refApp = ref.app ?? app;
  if (ref.id === undefined && refApp === undefined) {
    return invalidInput([{ path: ['input', 'release', 'app'], message: 'must be given with `label`' }]);
  }
  const named: ReleaseRef = ref.id === undefined ? { app: refApp ?? '', label: ref.label ?? '' } : { id: ref.id };
  const row = await releaseReadReferred(db, grant, namespace, named);
  if (!row) return notFound('release');
  if (app === undefined || row.app === app) return done(row);
  const message = `must be of the app \`${app}\`, is of \`${row.app}\``;
  return invalidInput([{ path: ['input', 'release'], message }]);
}

function neverChanges(field: string, value: string) {
  return invalidInput([{ path: ['input', field], message: `never changes; it is \`${value}\`` }]);
}

function terminatingRuntime({ name }: RuntimeRow) {
  return refused({ kind: 'Terminating', message: `The runtime \`${name}\` is being deleted; nothing new starts on it.` });
}

// Other intents ------------------------------------------------------------------------------------------------------
interface Intent {
  readonly id: DeploymentId;
  readonly expectedVersion?: number | undefined;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly idempotencyKey?: string | undefined;
}
type Intending = Grant<'deployment:write' | 'deployment:detach' | 'deployment:forget'>;

async function intend(
  parts: Parts,
  caller: Caller,
  grant: Intending,
  operation: string,
  intent: Intent,
  decide: (state: DeploymentState, now: Date) => IntentDecision,
): Promise<DeploymentOutcome> {
  const outcome = await run(parts, caller, operation, intent, CODEC, (on) =>
    changeRow(parts.clock, {
      what: 'deployment',
      expectedVersion: intent.expectedVersion,
      read: () => deploymentRead(on.read, grant, intent.id),
      decide(row) {
        const decision = decide(deploymentState(row), parts.clock.now());
        if (decision.kind !== 'applied') return decision;
        const stamp = stampOf(grant, intent.reason ?? decision.reason, intent.message);
        return { kind: 'applied', write: () => deploymentChange(on.write, grant, row, decision.change, stamp) };
      },
    }),
  );
  return settle(parts, grant, outcome);
}

function deletion(mode: DeleteMode): (state: DeploymentState, now: Date) => IntentDecision {
  switch (mode) {
    case 'DELETE':
      return requestDelete;
    case 'DETACH':
      return (state, now) => dropRecord(state, 'Detached', now);
    case 'FORGET':
      return (state, now) => dropRecord(state, 'Forgotten', now);
  }
  return assertNever(mode, 'delete mode');
}

function deleteGrant(caller: Caller, mode: DeleteMode): Intending {
  switch (mode) {
    case 'DELETE':
      return anywhere(caller, 'deployment:write');
    case 'DETACH':
      return anywhere(caller, 'deployment:detach');
    case 'FORGET':
      return anywhere(caller, 'deployment:forget');
  }
  return assertNever(mode, 'delete mode');
}

// Shared -------------------------------------------------------------------------------------------------------------
/** Where to read and where to write: in a transaction the same connection; outside one, only writes wake the feed. */
interface On {
  readonly read: Queryable;
  readonly write: Queryable;
}

/** Runs `work` by itself or, with a key, in the transaction of its idempotency record. */
function run<T>(
  parts: Parts,
  caller: Caller,
  operation: string,
  input: { readonly idempotencyKey?: string | undefined },
  codec: ResultCodec<T>,
  work: (on: On) => Promise<Outcome<T, Failure<DeploymentRow>>>,
): Promise<Outcome<T, Failure<DeploymentRow>>> {
  const { pool, writer } = parts.database;
  if (input.idempotencyKey === undefined) return work({ read: pool, write: writer });
  const request = { principal: caller.actor.id, key: input.idempotencyKey, operation, input };
  return idempotently(parts, request, codec, (tx) => work({ read: tx, write: tx }));
}

/** After the commit: remembers the row and, with a runtime's last deployment, lets a terminating runtime go. */
async function settle(
  parts: Parts,
  grant: Grant<'deployment:report'> | Intending,
  outcome: DeploymentOutcome,
): Promise<DeploymentOutcome> {
  if (!outcome.done) return outcome;
  const row = outcome.value;
  parts.cache.note(row);
  if (row.phase === 'DELETED') {
    // A crash before this leaves the runtime to the sweep, which does the same.
    const stamp = stampOf(grant, 'LastDeploymentDeleted');
    await runtimeFinish(parts.database.writer, row.runtimeId, parts.clock.now(), stamp);
  }
  return outcome;
}

/** For an object named by its id alone: the store holds the row against the namespaces of the grant. */
function anywhere<A extends Action>(caller: Caller, action: A): Grant<A> {
  const grant = authorise(caller, action);
  if (!grant) throw new ForbiddenError('The roles of the caller do not allow this.');
  return grant;
}
