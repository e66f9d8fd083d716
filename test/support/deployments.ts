import type { Caller } from '../../src/access/caller.js';
import type { Change } from '../../src/changes/types.js';
import { deploymentCommands, type DeploymentCommands } from '../../src/deployments/index.js';
import type { DeploymentPhase } from '../../src/deployments/lifecycle.js';
import { systemClock, type Clock } from '../../src/kernel/clock.js';
import type { Failure, Outcome } from '../../src/kernel/failure.js';
import { newId } from '../../src/kernel/ids.js';
import { releaseCommands, type ReleaseCommands } from '../../src/releases/index.js';
import { runtimeCommands, type RuntimeCommands } from '../../src/runtimes/index.js';
import type { Database, Statement } from '../../src/store/database.js';
import type { DeploymentRow, ReleaseRow, RuntimeRow } from '../../src/store/rows.js';
import { local } from './callers.js';

export interface Domain extends DeploymentCommands, RuntimeCommands, ReleaseCommands {
  readonly database: Database;
  /** Tells this server's caches of a change, as its feed does. */
  tell(change: Change): void;
}

/** The commands of one server on that database; nobody tells it of the changes of others unless the test does. */
export function domainOf(database: Database, clock: Clock = systemClock): Domain {
  const listeners = new Set<(change: Change) => void>();
  const feed = {
    listen(_kinds: readonly string[], listener: (change: Change) => void) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    onNewHistory: () => () => undefined,
  };
  return {
    database,
    tell: (change) => {
      for (const listener of listeners) listener(change);
    },
    ...runtimeCommands({ database, clock }),
    ...releaseCommands({ database, clock }),
    ...deploymentCommands({ database, clock, feed }),
  };
}

export function valueOf<T>(outcome: Outcome<T>): T {
  if (!outcome.done) throw new Error(`refused: ${JSON.stringify(outcome.failure)}`);
  return outcome.value;
}

export function failureOf<C>(outcome: Outcome<unknown, Failure<C>>): Failure<C> {
  if (outcome.done) throw new Error(`not refused: ${JSON.stringify(outcome.value)}`);
  return outcome.failure;
}

let count = 0;
/** A name that no other object of this test file has. */
export function freshName(prefix: string): string {
  count += 1;
  return `${prefix}-${count}`;
}

export async function aRuntime(domain: Domain, more: object = {}): Promise<RuntimeRow> {
  return valueOf(await domain.createRuntime(local, { name: freshName('rt'), type: 'external', ...more }));
}

export async function aRelease(domain: Domain, app = 'shop', more: object = {}): Promise<ReleaseRow> {
  const resources = [{ name: 'web', serviceType: 'process' }];
  return valueOf(await domain.createRelease(local, { app, label: freshName('v'), resources, ...more }));
}

export interface Seeded {
  readonly runtime: RuntimeRow;
  readonly release: ReleaseRow;
  readonly deployment: DeploymentRow;
}

export async function aDeployment(domain: Domain, more: object = {}): Promise<Seeded> {
  const runtime = await aRuntime(domain);
  const release = await aRelease(domain);
  const input = { name: freshName('dep'), runtime: { id: runtime.id }, release: { id: release.id }, ...more };
  const { deployment } = valueOf(await domain.applyDeployment(local, input));
  return { runtime, release, deployment };
}

/** Reports the phases one after the other; the row after the last. */
export async function report(
  domain: Domain,
  row: DeploymentRow,
  phases: readonly DeploymentPhase[],
  caller: Caller = local,
): Promise<DeploymentRow> {
  let current = row;
  for (const phase of phases) {
    const patch = { id: current.id, expectedVersion: current.version, phase };
    current = valueOf(await domain.patchDeploymentStatus(caller, patch));
  }
  return current;
}

export const TO_RUNNING = ['INITIAL_SETUP', 'PROVISIONING', 'RUNNING'] as const;

/** A deployment written past the server in that phase. */
export async function inPhase(
  domain: Domain,
  seeded: Seeded,
  phase: DeploymentPhase,
): Promise<DeploymentRow> {
  const id = newId('DEPLOYMENT');
  const { runtime, release } = seeded;
  const leaving = /^(DELET|TEARDOWN)/.test(phase);
  await domain.database.pool.query(
    `INSERT INTO deployment (id, namespace, name, app, runtime_id, phase, desired_state, target_release_id, deletion_requested_at, deleted_at)
     VALUES ($1, 'default', $2, 'shop', $3, $4::"DeploymentPhase", $5::"DesiredState", $6, $7, $8)`,
    [
      id,
      freshName('dep'),
      runtime.id,
      phase,
      /^UNDEPLOY/.test(phase) ? 'UNDEPLOYED' : 'DEPLOYED',
      release.id,
      leaving ? systemClock.now() : null,
      phase === 'DELETED' ? systemClock.now() : null,
    ],
  );
  return stored(domain.database, id);
}

/** The row as the database has it. */
export async function stored(database: Database, id: string): Promise<DeploymentRow> {
  const row = await database.prisma.deployment.findUnique({ where: { id }, omit: BOOKKEEPING });
  if (!row) throw new Error(`no deployment ${id}`);
  return row;
}
const BOOKKEEPING = {
  exceptional: true,
  changedBy: true,
  changeReason: true,
  changeMessage: true,
  traceId: true,
  changeToken: true,
} as const;

export interface LoggedChange {
  readonly version: number;
  readonly op: string;
  readonly from: string | null;
  readonly to: string | null;
  readonly reason: string | null;
  readonly message: string | null;
  readonly actor: string;
}

export async function changesOf(database: Database, id: string): Promise<LoggedChange[]> {
  const { rows } = await database.pool.query<LoggedChange>(
    `SELECT version, op::text, from_state AS "from", to_state AS "to", reason, message, actor
       FROM change WHERE object_id = $1 ORDER BY seq`,
    [id],
  );
  return rows;
}

/** The same database, whose statements are written down as they go by: on the pool, the writer and in transactions. */
export function watched(database: Database): { readonly database: Database; readonly statements: string[] } {
  const statements: string[] = [];
  const noting = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(owner, key) {
        const member: unknown = Reflect.get(owner, key);
        if (typeof member !== 'function') return member;
        if (key !== 'query') return member.bind(owner) as unknown; // the pool's own methods, unchanged
        return (statement: Statement | string, ...rest: unknown[]) => {
          statements.push(typeof statement === 'string' ? statement : (statement.name ?? statement.text));
          return member.call(owner, statement, ...rest) as unknown; // whatever the real one answers
        };
      },
    });
  return {
    statements,
    database: {
      ...database,
      pool: noting(database.pool),
      writer: noting(database.writer),
      inTransaction: (work, isolation) => database.inTransaction((tx) => work(noting(tx)), isolation),
    },
  };
}
