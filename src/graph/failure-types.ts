import type { Builder } from './graph-types.js';
import {
  AgentConflictError,
  AgentVersionConflictError,
  AlreadyExistsError,
  DeploymentVersionConflictError,
  type FailureError,
  IdempotencyKeyReusedError,
  IncompatibleProtocolError,
  InvalidInputError,
  InvalidTransitionError,
  LockHeldError,
  NotFoundError,
  RolloutVersionConflictError,
  RuntimeVersionConflictError,
  TerminatingError,
  TokenVersionConflictError,
  type VersionConflictError,
} from './failures.js';
import type { ObjectTypes } from './object-types.js';
import type { SharedTypes } from './shared-types.js';

/**
 * The schema's side of `failures.ts`. A conflict is one interface with one type per kind of object: code that treats all
 * conflicts alike reads `... on VersionConflict`, and code that knows its mutation reads the fresh object with its own
 * type, without a type condition on `current`.
 */
export function addFailureTypes(
  builder: Builder,
  types: ObjectTypes,
  shared: Pick<SharedTypes, 'lock'>,
): void {
  const failure = builder.interfaceRef<FailureError>('Failure').implement({
    description: 'Why an operation did not happen, as data. A failure of this kind changed nothing.',
    fields: (t) => ({
      code: t.exposeString('code', {
        description: 'The name of the kind of failure; does not change between releases.',
      }),
      message: t.exposeString('message', {
        description: 'What was wrong and what would be right, written for people.',
      }),
    }),
  });

  builder.objectType(NotFoundError, {
    name: 'NotFound',
    interfaces: [failure],
    description: 'There is no such object, or the caller may not see it; which of the two is not told.',
  });

  const issue = builder.objectRef<InvalidInputError['issues'][number]>('InputIssue').implement({
    description: 'One thing that is wrong with an input.',
    fields: (t) => ({
      path: t.field({
        type: ['String'],
        description: 'Where in the arguments, outermost first: `["input", "labels", "team"]`.',
        resolve: (one) => [...one.path],
      }),
      message: t.exposeString('message', { description: 'What a right value would be.' }),
    }),
  });
  builder.objectType(InvalidInputError, {
    name: 'InvalidInput',
    interfaces: [failure],
    description: 'The input breaks a rule that the schema cannot say.',
    fields: (t) => ({
      issues: t.field({
        type: [issue],
        description: 'Everything that is wrong, at least one.',
        resolve: (error) => [...error.issues],
      }),
    }),
  });

  builder.objectType(InvalidTransitionError, {
    name: 'InvalidTransition',
    interfaces: [failure],
    description: 'The move is known, but not from where the object is.',
    fields: (t) => ({
      from: t.exposeString('from', { description: 'Where the object is.' }),
      to: t.exposeString('to', { description: 'Where it was to go.' }),
      allowed: t.field({
        type: ['String'],
        description: 'Where it may go this way; empty if nowhere.',
        resolve: (error) => [...error.allowed],
      }),
    }),
  });

  builder.objectType(TerminatingError, {
    name: 'Terminating',
    interfaces: [failure],
    description: 'The object is being deleted, and its specification cannot change any more.',
  });

  builder.objectType(LockHeldError, {
    name: 'LockHeld',
    interfaces: [failure],
    description: 'Another rollout of the deployment is under way. Wait for it, or cancel it.',
    fields: (t) => ({
      lock: t.field({
        type: shared.lock,
        description: 'Who, since when and until when.',
        resolve: (error) => error.lock,
      }),
      phase: t.exposeString('phase', {
        nullable: true,
        description: 'How far that rollout is, a `RolloutPhase`; null if it cannot be told.',
      }),
    }),
  });

  builder.objectType(AlreadyExistsError, {
    name: 'AlreadyExists',
    interfaces: [failure],
    description: 'The name is taken.',
    fields: (t) => ({
      existingId: t.exposeID('existingId', {
        nullable: true,
        description: 'Who has it; null if the caller may not see that object.',
      }),
    }),
  });

  builder.objectType(AgentConflictError, {
    name: 'AgentConflict',
    interfaces: [failure],
    description: 'Another agent owns the topic.',
  });

  builder.objectType(IdempotencyKeyReusedError, {
    name: 'IdempotencyKeyReused',
    interfaces: [failure],
    description: 'The same idempotency key was used within 24 hours with another input.',
  });

  builder.objectType(IncompatibleProtocolError, {
    name: 'IncompatibleProtocol',
    interfaces: [failure],
    description: 'The other side speaks a protocol version that this server does not.',
    fields: (t) => ({
      found: t.exposeInt('found', { description: 'The version that was given.' }),
      minimum: t.exposeInt('minimum', { description: 'The lowest version that this server speaks.' }),
      current: t.exposeInt('current', { description: 'The highest version that this server speaks.' }),
    }),
  });

  const conflict = builder.interfaceRef<VersionConflictError>('VersionConflict').implement({
    interfaces: [failure],
    description: 'The object has moved on since the version that the caller expected.',
    fields: (t) => ({
      currentVersion: t.exposeInt('currentVersion', { description: 'The version to expect next time.' }),
      current: t.field({
        type: builder.nodeInterfaceRef(),
        description: 'The object as it is now, so that no second read is needed.',
        resolve: (error) => error.current as object, // the domain that refused put its own row there
      }),
    }),
  });
  const typed = [
    ['Runtime', RuntimeVersionConflictError],
    ['Deployment', DeploymentVersionConflictError],
    ['Agent', AgentVersionConflictError],
    ['Token', TokenVersionConflictError],
    ['Rollout', RolloutVersionConflictError],
  ] as const;
  for (const [model, errorClass] of typed) {
    builder.objectType(errorClass, {
      name: `${model}VersionConflict`,
      interfaces: [failure, conflict],
      description: `The ${model.toLowerCase()} has moved on since the version that the caller expected.`,
      fields: (t) => ({
        current: t.field({
          type: types[model],
          description: `The ${model.toLowerCase()} as it is now, so that no second read is needed.`,
          resolve: (error) => error.current as never, // typed by the class, see failures.ts
        }),
      }),
    });
  }
}
