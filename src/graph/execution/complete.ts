import {
  GraphQLBoolean,
  GraphQLError,
  GraphQLID,
  GraphQLInt,
  GraphQLString,
  defaultTypeResolver,
  isAbstractType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  locatedError,
  type GraphQLAbstractType,
  type GraphQLLeafType,
  type GraphQLObjectType,
  type GraphQLOutputType,
} from 'graphql';

import type { CompiledField, Complete, Path, Run } from './compiled.js';
import { FieldInfo } from './field-info.js';
import { executeFields, fieldError, isPromise, pathTo } from './run.js';

/** Whether places lie below a value of this type; a leaf needs a path only when it fails. */
export function hasPlaces(type: GraphQLOutputType): boolean {
  return !isLeafType(isNonNullType(type) ? type.ofType : type);
}

const known = new WeakMap<GraphQLOutputType, Complete>();

/** One for each type: what differs between fields comes as an argument. */
export function completerOf(type: GraphQLOutputType): Complete {
  let complete = known.get(type);
  if (complete === undefined) {
    complete = makeCompleter(type);
    known.set(type, complete);
  }
  return complete;
}

function makeCompleter(type: GraphQLOutputType): Complete {
  if (isNonNullType(type)) return nonNull(valueOf(type.ofType));
  const complete = valueOf(type);
  return (run, field, path, value) => {
    if (value === null || value === undefined) return null;
    return complete(run, field, path, value);
  };
}

/** For values that are neither null nor undefined. */
function valueOf(type: GraphQLOutputType): Complete {
  if (isListType(type)) return list(type.ofType);
  if (isLeafType(type)) return leaf(type);
  if (isAbstractType(type)) return abstract(type);
  if (isObjectType(type)) return (run, field, path, value) => object(run, field, path, { type, value });
  throw new Error(`${String(type)} is no type of an answer`);
}

function nonNull(complete: Complete): Complete {
  return (run, field, path, value) => {
    if (value !== null && value !== undefined) return complete(run, field, path, value);
    const { parentType, definition } = field;
    throw new Error(`Cannot return null for non-nullable field ${parentType.name}.${definition.name}.`);
  };
}

function leaf(type: GraphQLLeafType): Complete {
  const serialize = (value: unknown): unknown => {
    if (value instanceof Error) throw value;
    const serialized = type.serialize(value);
    if (serialized === null || serialized === undefined) {
      throw new Error(`Expected \`${type.name}.serialize\` to return non-nullable value.`);
    }
    return serialized;
  };
  // What most values are is not worth a call.
  if (type === GraphQLString || type === GraphQLID) {
    return (_run, _field, _path, value) => (typeof value === 'string' ? value : serialize(value));
  }
  if (type === GraphQLBoolean) {
    return (_run, _field, _path, value) => (typeof value === 'boolean' ? value : serialize(value));
  }
  if (type === GraphQLInt) {
    return (_run, _field, _path, value) =>
      typeof value === 'number' && (value | 0) === value ? value : serialize(value);
  }
  return (_run, _field, _path, value) => serialize(value);
}

function list(itemType: GraphQLOutputType): Complete {
  const complete = completerOf(itemType);
  const nullable = !isNonNullType(itemType);
  const deep = hasPlaces(itemType);
  return (run, field, path, value) => {
    if (value instanceof Error) throw value;
    const items = arrayOf(value, field);
    const completed: unknown[] = new Array<unknown>(items.length);
    let promised = false;
    for (let index = 0; index < items.length; index += 1) {
      const place = deep ? { prev: path, key: index, typename: undefined } : undefined;
      const failed = (error: unknown) => {
        const at = place ?? { prev: path, key: index, typename: undefined };
        return fieldError(run, locatedError(error, field.nodes, pathTo(at)), nullable, at);
      };
      try {
        const item = items[index];
        const done = isPromise(item)
          ? item.then((resolved) => complete(run, field, place, resolved))
          : complete(run, field, place, item);
        if (isPromise(done)) {
          promised = true;
          completed[index] = done.then(undefined, failed);
        } else completed[index] = done;
      } catch (error) {
        completed[index] = promised ? settling(completed, () => failed(error)) : failed(error);
      }
    }
    return promised ? Promise.all(completed) : completed;
  };
}

/** What fails at once leaves items behind that may still fail: nobody else would hear of it, and Node ends the process. */
function settling<T>(items: readonly unknown[], work: () => T): T {
  try {
    return work();
  } catch (error) {
    for (const item of items) if (isPromise(item)) item.catch(() => undefined);
    throw error;
  }
}

function arrayOf(value: unknown, { parentType, definition }: CompiledField): readonly unknown[] {
  if (Array.isArray(value)) return value;
  if (typeof value === 'object' && value !== null && Symbol.iterator in value) {
    return [...(value as Iterable<unknown>)]; // it has an iterator
  }
  throw new GraphQLError(
    `Expected Iterable, but did not find one for field "${parentType.name}.${definition.name}".`,
  );
}

function abstract(type: GraphQLAbstractType): Complete {
  const resolveType = type.resolveType ?? defaultTypeResolver;
  return (run, field, path, value) => {
    if (value instanceof Error) throw value;
    const finish = (name: unknown) =>
      object(run, field, path, { type: concreteType(run, type, field, name), value });
    const name = resolveType(value, run.context, new FieldInfo(run, field, path?.prev), type);
    return isPromise(name) ? name.then(finish) : finish(name);
  };
}

function concreteType(
  { schema }: Run,
  type: GraphQLAbstractType,
  { nodes }: CompiledField,
  name: unknown,
): GraphQLObjectType {
  const concrete = typeof name === 'string' ? schema.getType(name) : undefined;
  if (isObjectType(concrete) && schema.isSubType(type, concrete)) return concrete;
  throw new GraphQLError(`Abstract type "${type.name}" was resolved to no type that it can be.`, { nodes });
}

function object(
  run: Run,
  field: CompiledField,
  path: Path | undefined,
  { type, value }: { readonly type: GraphQLObjectType; readonly value: unknown },
): unknown {
  if (value instanceof Error) throw value;
  const execute = () => executeFields(run, field.below(type), value, path);
  if (!type.isTypeOf) return execute();
  const checked = (is: boolean) => {
    if (is) return execute();
    throw new GraphQLError(`Expected value of type "${type.name}", and got another.`, { nodes: field.nodes });
  };
  const is = type.isTypeOf(value, run.context, new FieldInfo(run, field, path?.prev));
  return isPromise(is) ? is.then(checked) : checked(is);
}
