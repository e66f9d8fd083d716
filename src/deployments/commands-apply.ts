import { authorise } from '../access/authorise.js';
import type { Caller } from '../access/caller.js';
import type { Grant } from '../access/grant.js';
import { stampOf } from '../access/stamp.js';
import {
  done,
  invalidInput,
  notFound,
  refused,
  versionConflict,
  type Failure,
  type Outcome,
} from '../kernel/failure.js';
import { newId, type RolloutId } from '../kernel/ids.js';
import { validated } from '../kernel/validate.js';
import { releaseReadReferred, type ReleaseRef } from '../releases/index.js';
import { newRolloutId, type RolloutOperation } from '../rollouts/index.js';
import { runtimeReadReferred, type RuntimeRef } from '../runtimes/index.js';
import type { Queryable, Transaction } from '../store/database.js';
import type { ResultCodec } from '../store/idempotency.js';
import { rowFromJson, rowToJson } from '../store/row-json.js';
import type { DeploymentRow, ReleaseRow, RuntimeRow } from '../store/rows.js';
import { transactionally, type Parts } from './commands-parts.js';
import { beginRollout, changeUnderLock, takeLock } from './commands-rolling.js';
import { applyDeploymentSchema, type ApplyDeployment, type ApplyDeploymentInput } from './input.js';
import { planOf, type DeploymentPlan } from './plan.js';
import { applyLabels, applySpec, type DeploymentChange, type IntentDecision } from './intents.js';
import { desiredReleaseId } from './model.js';
import { deploymentChange, deploymentInsert, deploymentReadByName, deploymentState } from './store.js';

/**
 * Create or update by name. Whoever loses a race decides again on what the winner left: of two creates one is a create
 * and the other an update, or nothing.
 */
export type ApplyResult = 'CREATED' | 'UPDATED' | 'UNCHANGED';
export interface AppliedDeployment {
  readonly deployment: DeploymentRow;
  readonly result: ApplyResult;
  /** Only of a dry run: `deployment` is what it would be then. */
  readonly plan?: DeploymentPlan;
}
export type ApplyOutcome = Outcome<AppliedDeployment, Failure<DeploymentRow>>;

const CODEC: ResultCodec<AppliedDeployment> = {
  what: 'deployment',
  namespaceOf: ({ deployment }) => deployment.namespace,
  objectId: ({ deployment }) => deployment.id,
  toJson: ({ deployment, result }) => ({ deployment: rowToJson(deployment), result }),
  fromJson: ({ deployment, result }) => ({
    deployment: rowFromJson('deployment', deployment as ReturnType<typeof rowToJson>), // as toJson wrote it
    result: result as ApplyResult, // as toJson wrote it
  }),
};

export async function applyDeployment(
  parts: Parts,
  caller: Caller,
  input: ApplyDeploymentInput,
): Promise<ApplyOutcome> {
  const parsed = validated(applyDeploymentSchema, input);
  if (!parsed.done) return parsed;
  const wanted = parsed.value;
  const grant = authorise(caller, 'deployment:write', { namespace: wanted.namespace });
  if (!grant) return notFound('namespace');

  const rolloutId = newRolloutId();
  let latest: DeploymentRow | undefined;
  const outcome = await transactionally<AppliedDeployment, DeploymentRow>(parts, caller, {
    operation: 'applyDeployment',
    input: wanted,
    codec: CODEC,
    async once(tx) {
      const existing = await deploymentReadByName(tx, grant, wanted.namespace, wanted.name);
      latest = existing;
      const applying = { tx, grant, wanted, rolloutId, now: parts.clock.now() };
      return existing ? updateOnce(applying, existing) : createOnce(applying);
    },
    exhausted: () => Promise.resolve(latest ? versionConflict('deployment', latest) : notFound('deployment')),
  });
  if (!outcome.done) return outcome;
  if (wanted.dryRun) {
    const { deployment } = outcome.value;
    return done({ ...outcome.value, plan: planOf(latest ?? null, deployment) });
  }
  parts.cache.note(outcome.value.deployment);
  return outcome;
}

type Writing = Grant<'deployment:write'>;

interface Applying {
  readonly tx: Transaction;
  readonly grant: Writing;
  readonly wanted: ApplyDeployment;
  readonly rolloutId: RolloutId;
  readonly now: Date;
}

async function createOnce(applying: Applying): Promise<ApplyOutcome | 'again'> {
  const { tx: db, grant, wanted, rolloutId, now } = applying;
  const { namespace, name, expectedVersion, labels = {}, env = [], runtimeConfig = {} } = wanted;
  // A version can only be expected of something that is there.
  if (expectedVersion !== undefined) return notFound('deployment');
  const missing = (field: string) => ({
    path: ['input', field],
    message: 'must be given to create a deployment',
  });
  const { runtime: runtimeRef, release: releaseRef } = wanted;
  if (!runtimeRef || !releaseRef) {
    return invalidInput([
      ...(runtimeRef ? [] : [missing('runtime')]),
      ...(releaseRef ? [] : [missing('release')]),
    ]);
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
  if (!deployment) return 'again';
  const attempt = { rolloutId, operation: 'DEPLOY', message: wanted.message } as const;
  // Nobody else knows of it yet: the lock is free.
  await takeLock(db, grant, deployment, attempt);
  await beginRollout(db, grant, { before: null, after: deployment }, { ...attempt, active: true, now });
  return done({ deployment, result: 'CREATED' });
}

async function updateOnce(applying: Applying, row: DeploymentRow): Promise<ApplyOutcome | 'again'> {
  const { tx: db, grant, wanted, rolloutId, now } = applying;
  if (wanted.expectedVersion !== undefined && wanted.expectedVersion !== row.version) {
    return versionConflict('deployment', row);
  }
  if (wanted.app !== undefined && wanted.app !== row.app) return neverChanges('app', row.app);
  const runtime = await findOwnRuntime(db, grant, row, wanted);
  if (!runtime.done) return runtime;
  const decided = await decideUpdate(db, grant, row, wanted);
  if (!decided.done) return decided;
  const decision = decided.value;
  if (decision.kind === 'refused') return refused(decision.failure);
  if (decision.kind === 'unchanged') return done({ deployment: row, result: 'UNCHANGED' });
  if (decision.change.generation !== undefined && runtime.value.deletionRequestedAt !== null) {
    return terminatingRuntime(runtime.value);
  }
  const stamp = stampOf(grant, wanted.reason ?? decision.reason, wanted.message);
  if (decision.change.generation === undefined) {
    const deployment = await deploymentChange(db, grant, row, decision.change, stamp);
    return deployment ? done({ deployment, result: 'UPDATED' }) : 'again';
  }
  const changed = await changeUnderLock(db, grant, row, decision.change, {
    rolloutId,
    operation: operationOf(row, decision.change),
    message: wanted.message,
    stamp,
    now,
  });
  if (changed === 'again' || !changed.done) return changed;
  return done({ deployment: changed.value.deployment, result: 'UPDATED' });
}

/** What a new spec is as an attempt. */
function operationOf(row: DeploymentRow, change: DeploymentChange): RolloutOperation {
  if (row.currentReleaseId === null) return 'DEPLOY';
  return (change.targetReleaseId ?? row.currentReleaseId) === row.currentReleaseId
    ? 'CONFIG_CHANGE'
    : 'UPDATE';
}

/** Only an update that names a part of the spec asks for one: the runtime and the app never change and are only checked. */
async function decideUpdate(
  db: Queryable,
  grant: Writing,
  row: DeploymentRow,
  wanted: ApplyDeployment,
): Promise<Outcome<IntentDecision, Failure<never>>> {
  const state = deploymentState(row);
  const { release, env, runtimeConfig, labels } = wanted;
  if (release === undefined && env === undefined && runtimeConfig === undefined) {
    return done(applyLabels(state, labels));
  }
  const releaseId = await findTarget(db, grant, row, release);
  return releaseId.done ? done(applySpec(state, { ...wanted, releaseId: releaseId.value })) : releaseId;
}

/** The runtime that an update must stay on. */
async function findOwnRuntime(
  db: Queryable,
  grant: Writing,
  row: DeploymentRow,
  wanted: ApplyDeployment,
): Promise<Outcome<RuntimeRow, Failure<never>>> {
  const own = { id: row.runtimeId } as RuntimeRef; // a stored id of a runtime
  const runtime = await findRuntime(db, grant, row.namespace, wanted.runtime ?? own);
  if (!runtime.done || runtime.value.id === row.runtimeId) return runtime;
  return neverChanges('runtime', row.runtimeId);
}

/** The release that an update asks for, or goes on wanting. */
async function findTarget(
  db: Queryable,
  grant: Writing,
  row: DeploymentRow,
  wanted: ApplyDeployment['release'],
): Promise<Outcome<string, Failure<never>>> {
  if (!wanted) {
    const releaseId = desiredReleaseId(row);
    if (releaseId !== null) return done(releaseId);
    return invalidInput([{ path: ['input', 'release'], message: 'must be given: the deployment has none' }]);
  }
  const release = await findRelease(db, grant, row.namespace, wanted, row.app);
  return release.done ? done(release.value.id) : release;
}

async function findRuntime(
  db: Queryable,
  grant: Writing,
  namespace: string,
  ref: NonNullable<ApplyDeployment['runtime']> | RuntimeRef,
  lock?: 'FOR SHARE',
): Promise<Outcome<RuntimeRow, Failure<never>>> {
  const { id, name } = { id: undefined, name: undefined, ...ref };
  const row = await runtimeReadReferred(
    db,
    grant,
    namespace,
    id === undefined ? { name: name ?? '' } : { id },
    lock,
  );
  return row ? done(row) : notFound('runtime');
}

export async function findRelease(
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
  const named: ReleaseRef =
    ref.id === undefined ? { app: refApp ?? '', label: ref.label ?? '' } : { id: ref.id };
  const row = await releaseReadReferred(db, grant, namespace, named);
  if (!row) return notFound('release');
  if (app === undefined || row.app === app) return done(row);
  const message = `must be of the app \`${app}\`, is of \`${row.app}\``;
  return invalidInput([{ path: ['input', 'release'], message }]);
}

function neverChanges(field: string, value: string) {
  return invalidInput([{ path: ['input', field], message: `never changes; it is \`${value}\`` }]);
}

/** Why nothing new starts on the runtime of a deployment; undefined if it may. */
export async function refusesStart(
  db: Queryable,
  grant: Writing,
  row: DeploymentRow,
): Promise<Outcome<never, Failure<never>> | undefined> {
  const own = { id: row.runtimeId } as RuntimeRef; // a stored id of a runtime
  const runtime = await findRuntime(db, grant, row.namespace, own);
  if (!runtime.done) return runtime;
  return runtime.value.deletionRequestedAt === null ? undefined : terminatingRuntime(runtime.value);
}

function terminatingRuntime({ name }: RuntimeRow) {
  return refused({
    kind: 'Terminating',
    message: `The runtime \`${name}\` is being deleted; nothing new starts on it.`,
  });
}
