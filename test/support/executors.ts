/** One operation by graphql-js and by the compiled executor: what each of them answers, as JSON would carry it. */
import {
  execute,
  getVariableValues,
  parse,
  validate,
  type ExecutionResult,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';

import type { Context } from '../../src/graph/context.js';
import { compileOperation } from '../../src/graph/execution/executor.js';

export interface BothAnswers {
  readonly stock: unknown;
  readonly compiled: unknown;
}

export interface Asked {
  readonly schema: GraphQLSchema;
  readonly text: string;
  readonly variables?: Record<string, unknown>;
  readonly rootValue?: unknown;
  /** One for each execution: what a context remembers of one must not help the other. */
  readonly contextOf?: () => unknown;
}

export async function byBoth(asked: Asked): Promise<BothAnswers> {
  const { schema, text, variables = {}, rootValue, contextOf = () => ({}) } = asked;
  const document = parse(text);
  const problems = validate(schema, document);
  if (problems.length > 0) throw new Error(problems.map(({ message }) => message).join('\n'));
  const operation = document.definitions.find(({ kind }) => kind === 'OperationDefinition');
  const { coerced, errors } = getVariableValues(
    schema,
    (operation as OperationDefinitionNode).variableDefinitions ?? [],
    variables,
  );
  if (errors) throw new Error(errors.map(({ message }) => message).join('\n'));
  const compiled = compileOperation(schema, document, operation as OperationDefinitionNode);
  const run = () => compiled.execute({ variables: coerced, context: contextOf() as Context, rootValue });
  const first = plain(await run());
  const again = plain(await run());
  if (first !== again) throw new Error(`The second execution differs:\n${first}\n${again}`);
  const stock = await execute({
    schema,
    document,
    variableValues: variables,
    rootValue,
    contextValue: contextOf(),
  });
  return { stock: JSON.parse(plain(stock)), compiled: JSON.parse(first) };
}

/** Keys in their order: it belongs to the answer. */
function plain(result: ExecutionResult): string {
  return JSON.stringify(result);
}
