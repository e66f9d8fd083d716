import type {
  FieldNode,
  FragmentDefinitionNode,
  GraphQLError,
  GraphQLField,
  GraphQLFieldResolver,
  GraphQLObjectType,
  GraphQLSchema,
  OperationDefinitionNode,
} from 'graphql';

import type { Context } from '../context.js';

/**
 * What does not depend on a request is found out once for each operation: which fields are selected of which type, how each
 * is resolved and completed, arguments without variables. Selections below a field are compiled when a value of their
 * type first comes.
 */
export type Variables = Readonly<Record<string, unknown>>;
export type Arguments = Readonly<Record<string, unknown>>;
export type Field = GraphQLField<unknown, unknown>;

/** One operation as `@skip` and `@include` leave it. */
export interface Variant {
  readonly schema: GraphQLSchema;
  readonly operation: OperationDefinitionNode;
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
  /** Those that decide over the directives are equal wherever this variant is used. */
  readonly directiveVariables: Variables;
}

export interface CompiledSelection {
  readonly fields: readonly CompiledField[];
  /** A response key that an object literal would lose. */
  readonly bare: boolean;
}

export interface CompiledField {
  /** Its name in the answer. */
  readonly key: string;
  readonly nodes: readonly FieldNode[];
  readonly definition: Field;
  readonly parentType: GraphQLObjectType;
  /** Undefined: the property of the field's name is its value. */
  readonly resolve: GraphQLFieldResolver<unknown, unknown> | undefined;
  readonly hasPlaces: boolean;
  readonly nullable: boolean;
  /** Undefined where a variable stands in them. */
  readonly fixedArguments: Arguments | undefined;
  readonly complete: Complete;
  readonly variant: Variant;
  /** What is selected of a value of this type. */
  below(type: GraphQLObjectType): CompiledSelection;
}

/** From what a resolver gave to what stands in the answer: the value, a promise of it, or an error thrown. */
export type Complete = (run: Run, field: CompiledField, path: Path | undefined, value: unknown) => unknown;

/** One execution of a compiled operation. */
export interface Run {
  readonly schema: GraphQLSchema;
  readonly variables: Variables;
  readonly context: Context;
  readonly rootValue: unknown;
  readonly errors: ErrorSink;
  /** Of fields whose arguments name variables: the same for every object of a list. */
  readonly arguments: Map<CompiledField, Arguments>;
}

export interface ErrorSink {
  add(error: GraphQLError, path: Path | undefined): void;
}

export interface Path {
  readonly prev: Path | undefined;
  readonly key: string | number;
  readonly typename: string | undefined;
}
