import { getOperationAST, parse } from 'graphql';
import { describe, expect, it } from 'vitest';

import { assertAffordable, keptCosts, operationCost } from '../../../src/graph/cost.js';
import { unboundSchema } from '../../../src/graph/print.js';

const schema = unboundSchema();
function cost(text: string, variables: Record<string, unknown> = {}, name?: string): number {
  const document = parse(text);
  const operation = getOperationAST(document, name);
  if (!operation) throw new Error('no such operation');
  return operationCost({ schema, document, operation, variables });
}

describe('operationCost', () => {
  it('counts what is selected of a node as often as `first` says, variables included', () => {
    const list = (first: string) =>
      `query ($n: Int) { deployments(first: ${first}) { nodes { id runtime { name } } } }`;
    expect(cost(list('1'))).toBe(3);
    expect(cost(list('100'))).toBe(201);
    expect(cost(list('$n'), { n: 10 })).toBe(21);
    expect(cost('{ deployments { nodes { id } } }')).toBe(51);
  });

  it('multiplies through lists of lists', () => {
    const nested = '{ runtimes(first: 100) { nodes { deployments(last: 100) { nodes { id } } } } }';
    expect(cost(nested)).toBe(1 + 100 * (1 + 1 + 100));
    expect(() => assertAffordable(cost(nested), 10_000)).toThrow(
      expect.objectContaining({ extensions: { code: 'TOO_COMPLEX', cost: 10_201 } }),
    );
  });

  it('measures the operation that will run, not the first of the document', () => {
    const document =
      'query Cheap { serverInfo { version } } query Dear { deployments(first: 100) { nodes { id } } }';
    expect(cost(document, {}, 'Dear')).toBe(101);
  });

  it('refuses a page size that no list takes: a negative one would make the rest free', () => {
    expect(() => cost('{ deployments(first: -5) { nodes { id } } }')).toThrow(
      '`first`: must be between 1 and 100',
    );
  });

  it('is counted once for each size, and for no other difference', () => {
    const document = parse(
      'query ($n: Int, $ids: [ID!]!, $with: Boolean = true, $name: String) { deployments(first: $n) { nodes { id } } nodes(ids: $ids) { id } runtime(name: $name) @include(if: $with) { id } }',
    );
    const operation = getOperationAST(document);
    if (!operation) throw new Error('no operation');
    const kept = keptCosts(schema);
    for (let time = 0; time < 2; time += 1) {
      for (const n of [1, 2, 100, null, undefined]) {
        for (const ids of [[], ['a'], ['b', 'c'], 'd']) {
          for (const others of [{}, { with: false }, { with: true, name: 'x' }, { name: null }]) {
            const variables = { ...(n === undefined ? {} : { n }), ids, ...others };
            const fresh = operationCost({ schema, document, operation, variables });
            expect(kept({ document, operation, variables }), JSON.stringify(variables)).toBe(fresh);
          }
        }
      }
    }
  });

  it('costs the same whatever there is: an empty account is not dearer', () => {
    expect(cost('{ viewer { name } head }')).toBe(1);
  });
});
