import type { InputRef, ObjectRef } from '@pothos/core';

import type { Caller } from '../access/caller.js';
import type { Failure, FailureKind, Outcome } from '../kernel/failure.js';
import type { ObjectKind } from '../kernel/ids.js';
import { MUTATION_COST } from './cost.js';
import { failureClasses, settle } from './failures.js';
import type { Builder, Types } from './graph-types.js';

/**
 * Every mutation has one `input` and one result: `XResult`, the union of `XPayload` and the failures that it can have.
 * Bad input in the sense of the domain is one of them; what does not fit the schema at all is an operation error.
 */
export interface MutationOptions<Input, Payload> {
  readonly description: string;
  readonly input: InputRef<Input>;
  readonly payload: ObjectRef<Types, Payload>;
  /** What the mutation is about: the type of `current` in its version conflict. */
  readonly object: ObjectKind;
  /** A failure of another kind is a bug, and is masked as one. */
  readonly failures: readonly FailureKind[];
  run(caller: Caller, input: Input): Promise<Outcome<Payload, Failure>>;
}

export function addMutation<Input extends object, Payload>(
  builder: Builder,
  name: string,
  options: MutationOptions<Input, Payload>,
): void {
  const typeName = `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`;
  const types = failureClasses(options.failures, options.object);
  builder.mutationField(name, (t) =>
    t.field({
      // Pothos cannot compute with a payload type that is still open; it is an object.
      type: options.payload as unknown as ObjectRef<Types, object>,
      description: options.description,
      complexity: MUTATION_COST,
      args: {
        input: t.arg({ type: options.input, required: true, description: 'What to do, and with what.' }),
      },
      errors: {
        types,
        directResult: true,
        union: { name: `${typeName}Result`, description: `What \`${name}\` did, or why it did not.` },
      },
      resolve: async (_root, args, context) => {
        const { input } = args as { input: Input }; // `args` above says so
        const outcome = await options.run(context.caller, input);
        if (!outcome.done) context.failed(outcome.failure.kind);
        return settle(outcome, options.object) as object; // a payload, as above
      },
    }),
  );
}

/** The payload of most mutations: the object as it is afterwards. */
export function addPayload<Row>(
  builder: Builder,
  mutation: string,
  field: string,
  type: ObjectRef<Types, Row>,
  description: string,
): ObjectRef<Types, Row> {
  const name = `${mutation.slice(0, 1).toUpperCase()}${mutation.slice(1)}Payload`;
  const payload = builder.objectRef<object>(name).implement({
    description: `\`${mutation}\` was carried out.`,
    fields: (t) => ({
      [field]: t.field({
        type: type as unknown as ObjectRef<Types, object>, // as above: an object, whatever its columns
        description,
        resolve: (row) => row,
      }),
    }),
  });
  return payload as unknown as ObjectRef<Types, Row>; // resolves to the row itself
}
