import { complexityFromQuery } from '@pothos/plugin-complexity';
import { Kind, type DocumentNode, type GraphQLSchema, type OperationDefinitionNode } from 'graphql';

import { operationError } from './errors.js';

/**
 * What an operation may cost, known before it runs. Counted from what is asked, never from what there is:
 * - a field that is a scalar or an enum costs nothing, a field that is an object or a list of embedded values 1;
 * - a connection costs 1, and what is selected of each node as often as `first` or `last` says (50 if neither does);
 * - `totalCount` and `asOf` cost as much as one object for each node that the page may have;
 * - a mutation costs 10.
 */
export const COST_MAX = 20_000;
export const MUTATION_COST = 10;

export interface CostQuestion {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  readonly variables: Readonly<Record<string, unknown>> | null | undefined;
}

/** The cost, for `extensions.cost`. Variables that do not fit their types throw graphql-js' own error. */
export function operationCost({ schema, document, operation, variables }: CostQuestion): number {
  // The plugin measures the first operation of a document; a client may run another one.
  const definitions = [
    operation,
    ...document.definitions.filter((one) => one.kind === Kind.FRAGMENT_DEFINITION),
  ];
  return complexityFromQuery({ kind: Kind.DOCUMENT, definitions }, { schema, variables: { ...variables } })
    .complexity;
}

/** Costs kept for one operation; with more sizes than that, counting begins anew. */
const COSTS_KEPT = 64;

/**
 * Counts each operation once for each combination of sizes in its variables. What fields cost depends on how much they
 * are asked for and on nothing else: numbers, lengths of lists, and what `@skip` and `@include` say.
 */
export function keptCosts(schema: GraphQLSchema): (question: Omit<CostQuestion, 'schema'>) => number {
  const kept = new WeakMap<OperationDefinitionNode, Map<string, number>>();
  return (question) => {
    let costs = kept.get(question.operation);
    if (costs === undefined) kept.set(question.operation, (costs = new Map<string, number>()));
    const key = sizesIn(question);
    let cost = costs.get(key);
    if (cost === undefined) {
      cost = operationCost({ ...question, schema });
      if (costs.size >= COSTS_KEPT) costs.clear();
      costs.set(key, cost);
    }
    return cost;
  };
}

function sizesIn({ operation, variables }: Omit<CostQuestion, 'schema'>): string {
  let sizes = '';
  for (const { variable } of operation.variableDefinitions ?? []) {
    const value = variables?.[variable.name.value];
    if (Array.isArray(value)) sizes += `[${value.length}],`;
    else sizes += typeof value === 'number' || typeof value === 'boolean' ? `${value},` : `${typeof value},`;
  }
  return sizes;
}

/** Refuses what costs too much; the limit itself is not told. */
export function assertAffordable(cost: number, maximum: number = COST_MAX): void {
  if (cost > maximum) {
    throw operationError(
      'TOO_COMPLEX',
      'This operation asks for too much at once: ask for smaller pages or fewer levels.',
      { cost },
    );
  }
}
