/**
 * Expected failures of an operation, as data. A bug is thrown; these are returned, and the graph turns each into a
 * member of the operation's result union. `message` is written for the caller: it names the field and the bound,
 * and never an internal fact.
 */
export type Failure<Current = unknown> =
  | { readonly kind: 'NotFound'; readonly message: string }
  | {
      readonly kind: 'VersionConflict';
      readonly message: string;
      readonly currentVersion: number;
      /** The object as it is now, so that no second read is needed. */
      readonly current: Current;
    }
  | { readonly kind: 'InvalidInput'; readonly message: string; readonly issues: readonly InputIssue[] }
  | {
      readonly kind: 'InvalidTransition';
      readonly message: string;
      readonly from: string;
      readonly to: string;
      readonly allowed: readonly string[];
    }
  | { readonly kind: 'Terminating'; readonly message: string }
  | {
      readonly kind: 'LockHeld';
      readonly message: string;
      readonly lock: HeldLock;
      readonly phase: string | null;
    }
  | { readonly kind: 'AlreadyExists'; readonly message: string; readonly existingId: string | null }
  | { readonly kind: 'AgentConflict'; readonly message: string }
  | { readonly kind: 'IdempotencyKeyReused'; readonly message: string }
  | {
      readonly kind: 'IncompatibleProtocol';
      readonly message: string;
      readonly found: number;
      readonly minimum: number;
      readonly current: number;
    };

/** Who holds a deploy lock, since when and until when. */
export interface HeldLock {
  readonly deploymentId: string;
  readonly rolloutId: string;
  readonly startedBy: string;
  readonly acquiredAt: Date;
  readonly expiresAt: Date;
}

export type FailureKind = Failure['kind'];

export interface InputIssue {
  /** Where in the input, outermost first: `['input', 'labels', 'team']`. */
  readonly path: readonly string[];
  readonly message: string;
}

export type Outcome<T, F extends Failure = Failure> =
  { readonly done: true; readonly value: T } | { readonly done: false; readonly failure: F };

export function done<T>(value: T): { readonly done: true; readonly value: T } {
  return { done: true, value };
}

export function refused<F extends Failure>(failure: F): { readonly done: false; readonly failure: F } {
  return { done: false, failure };
}

/** One sentence for all absent things: whether it never was, was deleted, or may not be seen is not told. */
export function notFound(what: string): {
  readonly done: false;
  readonly failure: Failure<never> & { kind: 'NotFound' };
} {
  return refused({ kind: 'NotFound', message: `No such ${what}, or you may not see it.` });
}

export function invalidInput(issues: readonly InputIssue[]): {
  readonly done: false;
  readonly failure: Failure<never> & { kind: 'InvalidInput' };
} {
  const first = issues[0];
  return refused({
    kind: 'InvalidInput',
    message: first ? `\`${first.path.join('.')}\`: ${first.message}` : 'The input is invalid.',
    issues,
  });
}

/** The version that was expected is not the current one; carries the object as it is, so that no second read is needed. */
export function versionConflict<T extends { readonly version: number }>(
  what: string,
  current: T,
): { readonly done: false; readonly failure: Failure<T> & { kind: 'VersionConflict' } } {
  const message = `\`expectedVersion\` is not the current one: the ${what} has version ${current.version}.`;
  return refused({ kind: 'VersionConflict', message, currentVersion: current.version, current });
}
