import {
  GraphQLBoolean,
  GraphQLEnumType,
  GraphQLError,
  GraphQLFloat,
  GraphQLID,
  GraphQLInt,
  GraphQLInterfaceType,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLScalarType,
  GraphQLSchema,
  GraphQLString,
  GraphQLUnionType,
  parse,
  type GraphQLOutputType,
  type OperationDefinitionNode,
} from 'graphql';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { compileOperation } from '../../../src/graph/execution/executor.js';
import { byBoth } from '../../support/executors.js';

const later = async <T>(value: T): Promise<T> => {
  await Promise.resolve();
  return value;
};
const nonNull = (type: GraphQLScalarType | GraphQLObjectType | GraphQLList<GraphQLOutputType>) =>
  new GraphQLNonNull(type);
const fails = (message: string) => () => {
  throw new Error(message);
};

const colour = new GraphQLEnumType({
  name: 'Colour',
  values: { RED: { value: 'red' }, BLUE: { value: 'blue' } },
});
const odd = new GraphQLScalarType({
  name: 'Odd',
  serialize: (value) => (Number(value) % 2 === 1 ? value : undefined),
});
const named = new GraphQLInterfaceType({
  name: 'Named',
  fields: { name: { type: GraphQLString } },
  resolveType: (value: { kind: string }) => (value.kind === 'slow' ? later('Slow') : value.kind),
});
/** Every way for a field to end: a value, a promise, null, an error, in a place that may be null or may not. */
const outcomes = {
  text: { type: GraphQLString, resolve: () => 'text' },
  must: { type: nonNull(GraphQLString), resolve: () => 'must' },
  soon: { type: GraphQLString, resolve: () => later('soon') },
  none: { type: GraphQLString, resolve: () => null },
  absent: { type: GraphQLString },
  fails: { type: GraphQLString, resolve: fails('it failed') },
  failsSoon: { type: GraphQLString, resolve: () => later(0).then(fails('it failed soon')) },
  isError: { type: GraphQLString, resolve: () => new Error('a value that is an error') },
  mustNone: { type: nonNull(GraphQLString), resolve: () => null },
  mustNoneSoon: { type: nonNull(GraphQLInt), resolve: () => later(undefined) },
  mustFail: { type: nonNull(GraphQLString), resolve: fails('it must not fail') },
  mustFailSoon: {
    type: nonNull(GraphQLString),
    resolve: () => later(0).then(fails('it must not fail soon')),
  },
  int: { type: GraphQLInt, resolve: () => 2_147_483_648 },
  wrong: { type: GraphQLBoolean, resolve: () => 'yes' },
  number: { type: GraphQLFloat, resolve: () => 0.5 },
  id: { type: GraphQLID, resolve: () => 7 },
  colour: { type: colour, resolve: () => 'red' },
  noColour: { type: colour, resolve: () => 'green' },
  odd: { type: new GraphQLList(odd), resolve: () => [1, 3] },
  odds: { type: new GraphQLList(odd), resolve: () => [1, 2, later(3), later(4)] },
  method: { type: GraphQLString, args: { to: { type: GraphQLString, defaultValue: 'you' } } },
  echo: {
    type: GraphQLString,
    args: {
      a: { type: GraphQLInt },
      b: { type: colour, defaultValue: 'blue' },
      c: { type: new GraphQLList(GraphQLInt) },
    },
    resolve: (_source: unknown, args: object) => JSON.stringify(args),
  },
  place: {
    type: GraphQLString,
    resolve: (...[, , , info]: unknown[]) => {
      const { path, fieldName, parentType, returnType, fieldNodes, variableValues, operation } = info as Info;
      const steps: unknown[] = [];
      for (let step = path; step; step = step.prev) steps.unshift([step.key, step.typename]);
      return JSON.stringify([
        steps,
        fieldName,
        String(parentType),
        String(returnType),
        fieldNodes.length,
        variableValues,
        operation.kind,
      ]);
    },
  },
};
interface Step {
  readonly prev: Step | undefined;
  readonly key: unknown;
  readonly typename: unknown;
}
interface Info {
  readonly path: Step | undefined;
  readonly fieldName: string;
  readonly parentType: unknown;
  readonly returnType: unknown;
  readonly fieldNodes: readonly unknown[];
  readonly variableValues: object;
  readonly operation: { readonly kind: string };
}

const source = (name: string) => ({ name, method: (args: { to: string }) => `hello ${args.to}` });
const thing: GraphQLObjectType = new GraphQLObjectType<object>({
  name: 'Thing',
  interfaces: [named],
  fields: () => ({
    name: { type: GraphQLString },
    ...outcomes,
    me: { type: thing, resolve: (one: unknown) => one },
    mustMe: { type: nonNull(thing), resolve: (one: unknown) => one },
    meSoon: { type: thing, resolve: (one: unknown) => later(one) },
    mustMeSoon: { type: nonNull(thing), resolve: (one: unknown) => later(one) },
    things: {
      type: new GraphQLList(thing),
      resolve: () => [source('a'), null, later(source('b')), new Error('no thing')],
    },
    mustThings: { type: new GraphQLList(nonNull(thing)), resolve: () => new Set([source('a'), source('b')]) },
    mustList: { type: nonNull(new GraphQLList(nonNull(thing))), resolve: () => [source('a'), later(null)] },
    hasty: { type: new GraphQLList(nonNull(thing)), resolve: () => [source('a'), null] },
    noList: { type: new GraphQLList(GraphQLString), resolve: () => 'abc' },
    texts: { type: new GraphQLList(nonNull(GraphQLString)), resolve: () => ['a', later('b')] },
    brokenTexts: { type: new GraphQLList(nonNull(GraphQLString)), resolve: () => ['a', null, later(null)] },
    one: {
      type: named,
      args: { kind: { type: GraphQLString } },
      resolve: (one: object, { kind }: { kind: string }) => ({ ...one, kind }),
    },
    any: {
      type: any,
      args: { kind: { type: GraphQLString } },
      resolve: (one: object, { kind }: { kind: string }) => ({ ...one, __typename: kind }),
    },
    checked: {
      type: checked,
      args: { is: { type: GraphQLBoolean } },
      resolve: (_one: unknown, { is }: { is: boolean }) => ({ is }),
    },
  }),
});
const slow = new GraphQLObjectType({
  name: 'Slow',
  interfaces: [named],
  fields: { name: { type: GraphQLString }, pace: { type: GraphQLInt, resolve: () => 1 } },
});
const any = new GraphQLUnionType({ name: 'Any', types: [thing, slow] });
const checked = new GraphQLObjectType({
  name: 'Checked',
  isTypeOf: (value: { is: boolean | null }) => (value.is === null ? later(true) : value.is),
  fields: { is: { type: GraphQLBoolean } },
});
const schema = new GraphQLSchema({
  query: thing,
  mutation: new GraphQLObjectType({
    name: 'Mutation',
    fields: {
      count: {
        type: GraphQLInt,
        resolve: async (_root: unknown, _args: unknown, { order }: { order: string[] }) => {
          order.push('begins');
          await later(0);
          return order.push('ends');
        },
      },
      broken: {
        type: GraphQLInt,
        resolve: () =>
          later(0).then(() => Promise.reject(new GraphQLError('refused', { extensions: { code: 'X' } }))),
      },
      must: { type: nonNull(GraphQLInt), resolve: () => later(null) },
    },
  }),
  types: [thing, slow],
});

/** Three texts of graphql-js quote the value; nobody outside ever sees them. */
function told(answer: unknown): string {
  return JSON.stringify(answer)
    .replaceAll(/(?<=Expected `Odd\.serialize)[^"]*/g, '')
    .replaceAll(/(?<=Abstract type \\"\w+\\" )[^,]*?(?=","locations)/g, '')
    .replaceAll(/(?<=Expected value of type \\"\w+\\")[^,]*?(?=","locations)/g, '')
    .replaceAll(/, and got another\./g, '');
}

async function expectSame(text: string, variables: Record<string, unknown> = {}): Promise<unknown> {
  const { stock, compiled } = await byBoth({ schema, text, variables, rootValue: source('root') });
  expect(told(compiled), text).toBe(told(stock));
  return stock;
}

describe('the compiled executor, against graphql-js', () => {
  it.each(Object.keys(outcomes))('gives the same for `%s`, wherever it stands', async (field) => {
    for (const around of [
      'X',
      'text X number',
      'me { X }',
      'mustMe { X text }',
      'meSoon { text X }',
      'mustMeSoon { X }',
    ]) {
      await expectSame(`{ name ${around.replace('X', field)} }`);
      await expectSame(`{ me { mustMe { ${around.replace('X', field)} } } }`);
    }
    for (const list of ['things', 'mustThings', 'mustList']) {
      await expectSame(`{ me { ${list} { name ${field} } } a: ${list} { b: ${field} } }`);
    }
  });

  it.each([
    '{ texts brokenTexts noList }',
    '{ me { brokenTexts } mustMe { noList } }',
    '{ __typename a: __typename me { __typename } __proto__: name }',
    '{ one(kind: "Thing") { __typename name ... on Thing { text } } slow: one(kind: "slow") { name ... on Slow { pace } } }',
    '{ one(kind: "Checked") { name } none: one(kind: "Nobody") { name } mustMe { one { name } } }'.replace(
      /"(Checked|Nobody)"/g,
      '"Thing"',
    ),
    '{ any(kind: "Slow") { ... on Slow { pace } ... on Thing { name } } t: any(kind: "Thing") { ...F } } fragment F on Thing { name me { ...G } } fragment G on Named { name ... { __typename } }',
    '{ checked(is: true) { is } soon: checked { is } }',
    '{ name me { name } me { text me { name } } ...T ...T } fragment T on Thing { me { me { text } number } }',
    '{ me { method place } a: method(to: "me") things { place } }',
    '{ echo a: echo(a: 1, b: RED) c: echo(c: [1, 2]) d: echo(c: 3) e: echo(a: null, b: null) }',
    '{ __schema { queryType { name fields(includeDeprecated: true) { name type { kind ofType { name } } args { name defaultValue } } } } __type(name: "Colour") { enumValues { name } } }',
  ])('gives the same for %s', async (text) => {
    await expectSame(text);
  });

  it.each([{}, { a: null }, { a: 5 }, { s: true }, { s: false, i: false }, { i: true, a: 2 }])(
    'takes the variables %j as graphql-js does, defaults included',
    async (variables) => {
      await expectSame(
        `query ($a: Int, $b: Colour = RED, $s: Boolean = false, $i: Boolean! = true, $list: [Int] = [1]) {
          echo(a: $a, b: $b, c: $list) place things { echo(c: [1, $a]) }
          text @skip(if: $s) me @include(if: $i) { name text @skip(if: true) ...F @include(if: $s) ... @skip(if: $i) { number } }
        } fragment F on Thing { id }`,
        variables,
      );
    },
  );

  it('carries mutations out one after the other, to the first that must not fail', async () => {
    for (const text of [
      'mutation { a: count broken b: count c: count }',
      'mutation { a: count must b: count }',
    ]) {
      const orders: string[][] = [];
      const contextOf = () => {
        const order: string[] = [];
        orders.push(order);
        return { order };
      };
      const { stock, compiled } = await byBoth({ schema, text, contextOf });
      expect(JSON.stringify(compiled)).toBe(JSON.stringify(stock));
      for (const order of orders) {
        expect(order).toEqual(order.map((_, index) => (index % 2 === 0 ? 'begins' : 'ends')));
      }
    }
  });

  it('leaves nothing behind that fails unheard, where graphql-js does', async () => {
    const unheard: unknown[] = [];
    const hear = (error: unknown) => unheard.push(error);
    process.on('unhandledRejection', hear);
    const document = parse('{ hasty { mustFailSoon } }');
    const [operation] = document.definitions as [OperationDefinitionNode]; // the only one
    const compiled = compileOperation(schema, document, operation);
    const answer = await compiled.execute({ variables: {}, context: {} as never });
    await new Promise(setImmediate);
    process.off('unhandledRejection', hear);
    expect(answer).toMatchObject({ data: { hasty: null }, errors: [{ path: ['hasty', 1] }] });
    expect(unheard).toEqual([]);
  });

  it('gives the same for documents put together at random', async () => {
    const leaves = fc.constantFrom(...Object.keys(outcomes));
    const objects = fc.constantFrom(
      'me',
      'mustMe',
      'meSoon',
      'mustMeSoon',
      'things',
      'mustThings',
      'mustList',
    );
    const { selection } = fc.letrec<{ selection: string; field: string }>((tie) => ({
      field: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        leaves,
        fc.tuple(objects, tie('selection')).map(([name, below]) => `${name} ${below}`),
        tie('selection').map((below) => `... on Thing ${below}`),
        tie('selection').map((below) => `... @include(if: true) ${below}`),
      ),
      selection: fc
        .array(tie('field'), { minLength: 1, maxLength: 4 })
        .map((fields) => `{ ${fields.join(' ')} }`),
    }));
    await fc.assert(
      fc.asyncProperty(selection, async (text) => {
        await expectSame(text);
      }),
      { numRuns: 400 },
    );
  });
});
