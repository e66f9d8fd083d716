import type { Failure, FailureKind, HeldLock, InputIssue, Outcome } from '../kernel/failure.js';
import type { ObjectKind } from '../kernel/ids.js';

/**
 * Failures of operations on their way into result unions: each kind is a class, because that is how the errors plugin
 * finds the member. Nothing else of an `Error` (stack, cause) is ever shown.
 */
export abstract class FailureError extends Error {
  abstract readonly code: FailureKind;
}

export class NotFoundError extends FailureError {
  readonly code = 'NotFound';
}

export class InvalidInputError extends FailureError {
  readonly code = 'InvalidInput';
  readonly issues: readonly InputIssue[];
  constructor(
    issues: readonly {
      readonly message: string;
      readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
    }[],
    message?: string,
  ) {
    const named = issues.map((issue) => ({
      path: (issue.path ?? []).map((step) => String(typeof step === 'object' ? step.key : step)),
      message: issue.message,
    }));
    const first = named[0];
    super(message ?? (first ? `\`${first.path.join('.')}\`: ${first.message}` : 'The input is invalid.'));
    this.issues = named;
  }
}

export class InvalidTransitionError extends FailureError {
  readonly code = 'InvalidTransition';
  readonly from: string;
  readonly to: string;
  readonly allowed: readonly string[];
  constructor(failure: Failure & { kind: 'InvalidTransition' }) {
    super(failure.message);
    this.from = failure.from;
    this.to = failure.to;
    this.allowed = failure.allowed;
  }
}

export class TerminatingError extends FailureError {
  readonly code = 'Terminating';
}

export class LockHeldError extends FailureError {
  readonly code = 'LockHeld';
  readonly lock: HeldLock;
  readonly phase: string | null;
  constructor(failure: Failure & { kind: 'LockHeld' }) {
    super(failure.message);
    this.lock = failure.lock;
    this.phase = failure.phase;
  }
}

export class AlreadyExistsError extends FailureError {
  readonly code = 'AlreadyExists';
  readonly existingId: string | null;
  constructor(failure: Failure & { kind: 'AlreadyExists' }) {
    super(failure.message);
    this.existingId = failure.existingId;
  }
}

export class AgentConflictError extends FailureError {
  readonly code = 'AgentConflict';
}

export class IdempotencyKeyReusedError extends FailureError {
  readonly code = 'IdempotencyKeyReused';
}

export class IncompatibleProtocolError extends FailureError {
  readonly code = 'IncompatibleProtocol';
  readonly found: number;
  readonly minimum: number;
  readonly current: number;
  constructor(failure: Failure & { kind: 'IncompatibleProtocol' }) {
    super(failure.message);
    this.found = failure.found;
    this.minimum = failure.minimum;
    this.current = failure.current;
  }
}

/** One class per kind of object, so that `current` has that object's own type in the schema. */
export abstract class VersionConflictError extends FailureError {
  readonly code = 'VersionConflict';
  readonly currentVersion: number;
  readonly current: unknown;
  constructor(failure: Failure & { kind: 'VersionConflict' }) {
    super(failure.message);
    this.currentVersion = failure.currentVersion;
    this.current = failure.current;
  }
}
export class RuntimeVersionConflictError extends VersionConflictError {}
export class DeploymentVersionConflictError extends VersionConflictError {}
export class AgentVersionConflictError extends VersionConflictError {}
export class TokenVersionConflictError extends VersionConflictError {}
export class RolloutVersionConflictError extends VersionConflictError {}

const CONFLICTS = {
  RUNTIME: RuntimeVersionConflictError,
  DEPLOYMENT: DeploymentVersionConflictError,
  AGENT: AgentVersionConflictError,
  TOKEN: TokenVersionConflictError,
  ROLLOUT: RolloutVersionConflictError,
};

type FailureClass = new (...args: never[]) => FailureError;
const CLASSES: Readonly<Record<Exclude<FailureKind, 'VersionConflict'>, FailureClass>> = {
  NotFound: NotFoundError,
  InvalidInput: InvalidInputError,
  InvalidTransition: InvalidTransitionError,
  Terminating: TerminatingError,
  LockHeld: LockHeldError,
  AlreadyExists: AlreadyExistsError,
  AgentConflict: AgentConflictError,
  IdempotencyKeyReused: IdempotencyKeyReusedError,
  IncompatibleProtocol: IncompatibleProtocolError,
};

/** The classes of a mutation's union, from the kinds of failure that it can have. */
export function failureClasses(kinds: readonly FailureKind[], object: ObjectKind): FailureClass[] {
  return kinds.map((kind) => (kind === 'VersionConflict' ? conflictClass(object) : CLASSES[kind]));
}

function conflictClass(object: ObjectKind) {
  if (object === 'RELEASE') throw new Error('a release has no version to conflict with');
  return CONFLICTS[object];
}

/** The value, or its failure thrown as the member of the union that it is. */
export function settle<T>(outcome: Outcome<T>, object: ObjectKind): T {
  if (outcome.done) return outcome.value;
  throw failureError(outcome.failure, object);
}

function failureError(failure: Failure, object: ObjectKind): FailureError {
  switch (failure.kind) {
    case 'NotFound':
      return new NotFoundError(failure.message);
    case 'VersionConflict':
      return new (conflictClass(object))(failure);
    case 'InvalidInput':
      return new InvalidInputError(failure.issues, failure.message);
    case 'InvalidTransition':
      return new InvalidTransitionError(failure);
    case 'Terminating':
      return new TerminatingError(failure.message);
    case 'LockHeld':
      return new LockHeldError(failure);
    case 'AlreadyExists':
      return new AlreadyExistsError(failure);
    case 'AgentConflict':
      return new AgentConflictError(failure.message);
    case 'IdempotencyKeyReused':
      return new IdempotencyKeyReusedError(failure.message);
    case 'IncompatibleProtocol':
      return new IncompatibleProtocolError(failure);
  }
}
