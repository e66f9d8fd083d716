import fc from 'fast-check';
import { buildSchema, getVariableValues, GraphQLScalarType, parse, Kind } from 'graphql';
import { describe, expect, it } from 'vitest';

import { compileVariables } from '../../../src/graph/execution/coerce.js';

const schema = buildSchema(`
  scalar Even
  enum Colour { RED BLUE }
  input Point { x: Int! y: Int = 7 z: Float label: String next: Point tags: [String!] even: Even }
  input Either @oneOf { a: Int b: String }
  type Query { ok: Boolean }
`);
const even = schema.getType('Even');
if (!(even instanceof GraphQLScalarType)) throw new Error('the schema has no such scalar');
even.parseValue = (value) => {
  if (value === 13) throw new Error('no luck');
  return Number(value) % 2 === 0 ? Number(value) * 10 : undefined;
};

const TYPES = [
  ...['Int', 'Int!', 'Float', 'String', 'String!', 'Boolean', 'ID', 'Colour', 'Colour!', 'Even', 'Even!'],
  ...['Point', 'Point!', '[Point]', '[Point!]!', '[Int]', '[[Int!]]', '[Colour!]', 'Either', 'Either!'],
];
const DEFAULTS: Readonly<Record<string, string>> = {
  Int: '3',
  Colour: 'RED',
  Point: '{ x: 1 }',
  '[Int]': '[1, null]',
  String: 'null',
};

const leaves = fc.oneof(
  fc.constantFrom(null, undefined, 0, 1, -0, 13, 14, 2_147_483_647, 2_147_483_648, 0.5, Number.NaN),
  fc.constantFrom('', 'RED', 'red', 'text', '7', true, false),
);
const keys = fc.constantFrom(
  'x',
  'y',
  'z',
  'label',
  'next',
  'tags',
  'even',
  'a',
  'b',
  'constructor',
  '__proto__',
);
const { value: values } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    leaves,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.array(fc.tuple(keys, tie('value')), { maxLength: 5 }).map((entries) => Object.fromEntries(entries)),
    // A point that mostly fits, so that what lies deeper is reached.
    fc.record(
      {
        x: fc.constantFrom(1, 2, null),
        y: leaves,
        label: fc.constantFrom('a', null, 5),
        tags: fc.oneof(fc.array(fc.constantFrom('t', 'u')), tie('value')),
        next: tie('value'),
        even: leaves,
      },
      { requiredKeys: ['x'] },
    ),
  ),
}));
const points = fc.record(
  {
    x: fc.integer({ max: 9 }),
    z: fc.double(),
    tags: fc.array(fc.constantFrom('t', 'u')),
    even: fc.constant(2),
    unknown: fc.constant(1),
  },
  { requiredKeys: ['x'] },
);
const FITTING: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  Int: fc.integer({ min: -5, max: 5 }),
  Colour: fc.constantFrom('RED', 'BLUE'),
  Even: fc.constantFrom(2, 4),
  String: fc.string(),
  Boolean: fc.boolean(),
  ID: fc.constantFrom('id', 7),
  Float: fc.double(),
  Point: fc.oneof(
    points,
    fc.tuple(points, points).map(([point, next]) => ({ ...point, next })),
  ),
  Either: fc.constantFrom({ a: 1 }, { b: 'text' }),
};
function fitting(type: string): fc.Arbitrary<unknown> {
  const value = FITTING[type.replace(/[[\]!]/g, '')] ?? leaves;
  return type.startsWith('[[')
    ? fc.array(fc.array(value, { maxLength: 2 }), { maxLength: 2 })
    : type.startsWith('[')
      ? fc.array(value, { maxLength: 3 })
      : value;
}
const variable = fc
  .tuple(fc.constantFrom('a', 'b', 'c', '__proto__', 'toString'), fc.constantFrom(...TYPES))
  .chain(([name, type]) =>
    fc.tuple(
      fc.constant(name),
      fc.constant(type),
      fc.boolean(),
      fc.oneof(values, fc.constant('absent'), { weight: 3, arbitrary: fitting(type) }),
    ),
  );
const variables = fc
  .array(variable, { minLength: 1, maxLength: 3 })
  .map((some) => [...new Map(some.map((one) => [one[0], one])).values()]);

function definitionsOf(list: readonly (readonly [string, string, boolean, unknown])[]) {
  const parts = list.map(([name, type, hasDefault]) => {
    const given = hasDefault ? DEFAULTS[type] : undefined;
    return `$${name}: ${type}${given === undefined ? '' : ` = ${given}`}`;
  });
  const [operation] = parse(`query (${parts.join(', ')}) { ok }`).definitions;
  if (operation?.kind !== Kind.OPERATION_DEFINITION) throw new Error('no operation');
  return operation.variableDefinitions ?? [];
}

/** What can be told of either: order and places of errors included. */
function told({ coerced, errors }: ReturnType<typeof getVariableValues>) {
  return {
    coerced,
    errors: errors?.map((error) => ({ ...error.toJSON(), original: error.originalError?.message })),
  };
}

describe('compileVariables', () => {
  it('gives what graphql-js gives, errors included', () => {
    let fitted = 0;
    fc.assert(
      fc.property(variables, (list) => {
        const definitions = definitionsOf(list);
        const inputs = Object.fromEntries(
          list.filter(([, , , value]) => value !== 'absent').map(([name, , , value]) => [name, value]),
        );
        const expected = getVariableValues(schema, definitions, inputs, { maxErrors: 3 });
        const found = compileVariables(schema, definitions, 3)(inputs);
        if (expected.coerced) fitted += 1;
        expect(told(found as typeof expected)).toStrictEqual(told(expected));
        // JSON tells the order of keys as well, in which resolvers and errors may come upon them.
        expect(JSON.stringify(found.coerced)).toBe(JSON.stringify(expected.coerced));
      }),
      { numRuns: 3_000 },
    );
    expect(fitted).toBeGreaterThan(500);
  });

  it('makes what a default holds anew for each request', () => {
    const compiled = compileVariables(schema, definitionsOf([['a', '[Int]', true, null]]), 3);
    expect(compiled({}).coerced?.['a']).not.toBe(compiled({}).coerced?.['a']);
  });
});
