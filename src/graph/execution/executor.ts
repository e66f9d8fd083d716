import {
  Kind,
  type DocumentNode,
  type ExecutionResult,
  type FragmentDefinitionNode,
  type GraphQLError,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';

import type { Context } from '../context.js';
import { compileVariables, type CoerceVariables } from './coerce.js';
import { compileRoot, directiveVariables } from './compile.js';
import type { CompiledSelection, Run, Variables, Variant } from './compiled.js';
import { CollectedErrors, executeFields, executeSerially, isPromise } from './run.js';

/**
 * Executes operations that are valid, with variables that are coerced, as graphql-js does: a test compares both, errors
 * included. What is left out is what was done before (validation, coercion), and what is found out once is kept.
 */
export interface CompiledOperation {
  readonly coerce: CoerceVariables;
  execute(request: ExecutionRequest): ExecutionResult | Promise<ExecutionResult>;
}

export interface ExecutionRequest {
  /** As `coerce` gave them. */
  readonly variables: Variables;
  readonly context: Context;
  readonly rootValue?: unknown;
}

/** Combinations of values that `@skip` and `@include` had; with more, compiling begins anew. */
const VARIANTS_MAX = 16;
/** Of the variables of one request. */
const COERCION_ERRORS_MAX = 10;

/** `document`: this operation and the fragments that it uses. */
export function compileOperation(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): CompiledOperation {
  const fragments: Record<string, FragmentDefinitionNode> = {};
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments[definition.name.value] = definition;
  }
  const deciding = directiveVariables(document);
  const variants = new Map<string, CompiledSelection>();
  const rootOf = (variables: Variables): CompiledSelection => {
    const key = deciding.map((name) => String(variables[name])).join();
    let root = variants.get(key);
    if (root === undefined) {
      if (variants.size >= VARIANTS_MAX) variants.clear();
      const directiveValues = Object.fromEntries(deciding.map((name) => [name, variables[name]]));
      const variant: Variant = { schema, operation, fragments, directiveVariables: directiveValues };
      root = compileRoot(variant);
      variants.set(key, root);
    }
    return root;
  };
  return {
    coerce: compileVariables(schema, operation.variableDefinitions ?? [], COERCION_ERRORS_MAX),
    execute({ variables, context, rootValue }) {
      const errors = new CollectedErrors();
      const run: Run = { schema, variables, context, rootValue, errors, arguments: new Map() };
      const failed = (error: unknown) => {
        errors.add(error as GraphQLError, undefined); // what reaches the root was located on its way
        return resultOf(errors, null);
      };
      try {
        const root = rootOf(variables);
        const data =
          operation.operation === 'mutation'
            ? executeSerially(run, root, rootValue)
            : executeFields(run, root, rootValue, undefined);
        return isPromise(data) ? data.then((all) => resultOf(errors, all), failed) : resultOf(errors, data);
      } catch (error) {
        return failed(error);
      }
    },
  };
}

function resultOf(errors: CollectedErrors, data: Record<string, unknown> | null): ExecutionResult {
  return errors.list.length === 0 ? { data } : { errors: errors.list, data };
}
