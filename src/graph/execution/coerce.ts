import {
  GraphQLBoolean,
  GraphQLID,
  GraphQLInt,
  GraphQLString,
  getVariableValues,
  isInputObjectType,
  isInputType,
  isLeafType,
  isListType,
  isNonNullType,
  typeFromAST,
  valueFromAST,
  type GraphQLError,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLLeafType,
  type GraphQLSchema,
  type VariableDefinitionNode,
} from 'graphql';

import type { Variables } from './compiled.js';

/**
 * From variables as they were sent to values of their types. What a type does with a value is found out once for each type, and only
 * the way of values that fit is here: for any other, graphql-js coerces again from the start, and its errors are the answer.
 */
export type CoerceVariables = (
  inputs: Variables,
) =>
  | { readonly coerced: Variables; readonly errors?: undefined }
  | { readonly errors: readonly GraphQLError[]; readonly coerced?: undefined };

/** Stands for whatever graphql-js has an error for. */
const MISFIT = Symbol('misfit');
type Coerce = (value: unknown) => unknown;

export function compileVariables(
  schema: GraphQLSchema,
  definitions: readonly VariableDefinitionNode[],
  maxErrors: number,
): CoerceVariables {
  const variables = definitions.map((definition) => compileVariable(schema, definition));
  // A name that an object literal would lose is left to graphql-js.
  const compiled = variables.some(({ name }) => name === '__proto__')
    ? () => undefined
    : (inputs: Variables) => fitting(variables, inputs);
  return (inputs) => {
    const coerced = compiled(inputs);
    if (coerced !== undefined) return { coerced };
    const found = getVariableValues(schema, definitions, inputs, { maxErrors });
    return found.errors ? { errors: found.errors } : { coerced: found.coerced };
  };
}

interface Variable {
  readonly name: string;
  readonly coerce: Coerce;
  /** Of a variable that is left out: absent, undefined or a value of its own for each request. */
  readonly absent: () => unknown;
}

const NONE = Symbol('none');

function compileVariable(schema: GraphQLSchema, node: VariableDefinitionNode): Variable {
  const name = node.variable.name.value;
  const type = typeFromAST(schema, node.type);
  const { defaultValue } = node;
  if (!isInputType(type)) return { name, coerce: () => MISFIT, absent: () => MISFIT };
  const absent =
    defaultValue !== undefined
      ? () => valueFromAST(defaultValue, type)
      : () => (isNonNullType(type) ? MISFIT : NONE);
  return { name, coerce: coercerOf(type), absent };
}

function fitting(variables: readonly Variable[], inputs: Variables): Variables | undefined {
  const coerced: Record<string, unknown> = {};
  for (const { name, coerce, absent } of variables) {
    const value = Object.hasOwn(inputs, name) ? coerce(inputs[name]) : absent();
    if (value === MISFIT) return undefined;
    if (value !== NONE) coerced[name] = value;
  }
  return coerced;
}

const known = new WeakMap<GraphQLInputType, Coerce>();

function coercerOf(type: GraphQLInputType): Coerce {
  let coerce = known.get(type);
  if (coerce === undefined) {
    coerce = makeCoercer(type);
    known.set(type, coerce);
  }
  return coerce;
}

function makeCoercer(type: GraphQLInputType): Coerce {
  if (isNonNullType(type)) {
    const coerce = valueOf(type.ofType);
    return (value) => (value === null || value === undefined ? MISFIT : coerce(value));
  }
  const coerce = valueOf(type);
  return (value) => (value === null || value === undefined ? null : coerce(value));
}

/** For values that are neither null nor undefined. */
function valueOf(type: GraphQLInputType): Coerce {
  if (isListType(type)) return list(type.ofType);
  if (isInputObjectType(type)) return object(type);
  if (isLeafType(type)) return leaf(type);
  return () => MISFIT;
}

function list(itemType: GraphQLInputType): Coerce {
  const coerce = coercerOf(itemType);
  return (value) => {
    if (!Array.isArray(value)) {
      if (typeof value === 'object' && value !== null && Symbol.iterator in value) return MISFIT;
      const only = coerce(value);
      return only === MISFIT ? MISFIT : [only];
    }
    const items: unknown[] = [];
    // Whatever they are.
    for (const item of value as readonly unknown[]) {
      const coerced = coerce(item);
      if (coerced === MISFIT) return MISFIT;
      items.push(coerced);
    }
    return items;
  };
}

interface InputField {
  readonly name: string;
  readonly coerce: Coerce;
  readonly absent: unknown;
}

function object(type: GraphQLInputObjectType): Coerce {
  if (type.isOneOf) return () => MISFIT;
  // Made when a value first comes: types may contain each other.
  let fields: readonly InputField[] | undefined;
  const names = new Set<string>();
  return (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return MISFIT;
    fields ??= fieldsOf(type, names);
    const given = value as Readonly<Record<string, unknown>>; // an object, by the line above
    for (const key of Object.keys(given)) if (!names.has(key)) return MISFIT;
    const coerced: Record<string, unknown> = {};
    for (const { name, coerce, absent } of fields) {
      const of = given[name];
      const field = of === undefined ? absent : coerce(of);
      if (field === MISFIT) return MISFIT;
      if (field !== NONE) coerced[name] = field;
    }
    return coerced;
  };
}

function fieldsOf(type: GraphQLInputObjectType, names: Set<string>): readonly InputField[] {
  return Object.values(type.getFields()).map(({ name, type: fieldType, defaultValue }) => {
    names.add(name);
    const absent = defaultValue !== undefined ? defaultValue : isNonNullType(fieldType) ? MISFIT : NONE;
    return { name, coerce: coercerOf(fieldType), absent };
  });
}

function leaf(type: GraphQLLeafType): Coerce {
  const parse = (value: unknown): unknown => {
    try {
      const parsed: unknown = type.parseValue(value);
      return parsed === undefined ? MISFIT : parsed;
    } catch {
      return MISFIT;
    }
  };
  // What most values are is not worth a call.
  if (type === GraphQLString || type === GraphQLID) {
    return (value) => (typeof value === 'string' ? value : parse(value));
  }
  if (type === GraphQLBoolean) return (value) => (typeof value === 'boolean' ? value : parse(value));
  if (type === GraphQLInt) {
    return (value) => (typeof value === 'number' && (value | 0) === value ? value : parse(value));
  }
  return parse;
}
