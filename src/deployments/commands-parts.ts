import { authorise } from '../access/authorise.js';
import type { Action } from '../access/actions.js';
import type { Caller } from '../access/caller.js';
import { ForbiddenError } from '../access/errors.js';
import type { Grant } from '../access/grant.js';
import { idempotentRequest } from '../access/idempotent-request.js';
import type { Feed } from '../changes/feed.js';
import type { Clock } from '../kernel/clock.js';
import type { Failure, Outcome } from '../kernel/failure.js';
import { redecide } from '../kernel/redecide.js';
import { commitIfDone, takeBack } from '../store/commit-if-done.js';
import type { Database, Queryable, Transaction } from '../store/database.js';
import { idempotently, idempotentTry, type ResultCodec } from '../store/idempotency.js';
import type { ObjectCache } from '../store/object-cache.js';
import type { DeploymentRow } from '../store/rows.js';

/** What the use cases of deployments share. */
export interface DeploymentDeps {
  readonly database: Database;
  readonly clock: Clock;
  /** Tells of versions that others wrote, so that the next patch is decided without a read. */
  readonly feed: Pick<Feed, 'listen' | 'onNewHistory'>;
}

export interface Parts extends DeploymentDeps {
  readonly cache: ObjectCache<DeploymentRow>;
  readonly runtimeType: (db: Queryable, id: string) => Promise<string | undefined>;
}

/** Where to read and where to write: in a transaction the same connection; outside one, only writes wake the feed. */
export interface On {
  readonly read: Queryable;
  readonly write: Queryable;
  /** Several writes as one: in a transaction that is open already, a part of it. */
  inTransaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
}

/** Runs `work` by itself or, with a key, in the transaction of its idempotency record. */
export function run<T>(
  parts: Parts,
  caller: Caller,
  operation: string,
  input: { readonly idempotencyKey?: string | undefined },
  codec: ResultCodec<T>,
  work: (on: On) => Promise<Outcome<T, Failure<DeploymentRow>>>,
): Promise<Outcome<T, Failure<DeploymentRow>>> {
  const { database } = parts;
  if (input.idempotencyKey === undefined) {
    return work({
      read: database.pool,
      write: database.writer,
      inTransaction: (inside) => database.inTransaction(inside),
    });
  }
  const request = idempotentRequest(caller, operation, input.idempotencyKey, input);
  return idempotently(parts, request, codec, (tx) =>
    work({ read: tx, write: tx, inTransaction: (inside) => inside(tx) }),
  );
}

/** For an object named by its id alone: the store holds the row against the namespaces of the grant. */
export function anywhere<A extends Action>(caller: Caller, action: A): Grant<A> {
  const grant = authorise(caller, action);
  if (!grant) throw new ForbiddenError('The roles of the caller do not allow this.');
  return grant;
}

/** A use case whose writes stand or fall together. `Row`: the object whose version may be in conflict. */
export interface Transactional<T, Row> {
  readonly operation: string;
  readonly input: {
    readonly idempotencyKey?: string | undefined;
    /** Everything is done and taken back: the answer is what would have been. */
    readonly dryRun?: boolean | undefined;
  };
  readonly codec: ResultCodec<T>;
  /** Decides and writes once; what it reads is as it is now. */
  once(tx: Transaction): Promise<Outcome<T, Failure<Row>> | 'again'>;
  /** What to say when it was decided again so often that somebody else must have won each time. */
  exhausted(): Promise<Outcome<T, Failure<Row>>>;
}

/** Commits what is done and nothing of what is refused; with a key, in the transaction of its idempotency record. */
export async function transactionally<T, Row>(
  parts: Pick<Parts, 'database' | 'clock'>,
  caller: Caller,
  work: Transactional<T, Row>,
): Promise<Outcome<T, Failure<Row>>> {
  const { operation, input, codec } = work;
  const again = async (attempt: () => Promise<Outcome<T, Failure<Row>> | 'again'>) =>
    (await redecide(parts.clock, Math.random, attempt)) ?? (await work.exhausted());
  if (input.dryRun) return again(() => takeBack(parts.database, (tx) => work.once(tx)));
  if (input.idempotencyKey === undefined) {
    return again(() => commitIfDone(parts.database, (tx) => work.once(tx)));
  }
  const request = idempotentRequest(caller, operation, input.idempotencyKey, input);
  // Each try in a transaction of its own: what one took before it was to be decided again must not be there for the next.
  return again(() => idempotentTry(parts, request, codec, (tx) => work.once(tx)));
}
