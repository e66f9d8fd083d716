import { getArgumentValues, locatedError, type GraphQLError } from 'graphql';

import type { Arguments, CompiledField, CompiledSelection, ErrorSink, Path, Run } from './compiled.js';
import { FieldInfo } from './field-info.js';

export function pathTo(path: Path | undefined): (string | number)[] {
  const steps: (string | number)[] = [];
  for (let step = path; step !== undefined; step = step.prev) steps.push(step.key);
  return steps.reverse();
}

/** Errors in the order in which they happened; none of what lies below a place that an error has made null. */
export class CollectedErrors implements ErrorSink {
  readonly list: GraphQLError[] = [];
  readonly #places = new Set<Path | undefined>();

  add(error: GraphQLError, path: Path | undefined): void {
    for (let step = path; step !== undefined; step = step.prev) if (this.#places.has(step)) return;
    if (this.#places.has(undefined)) return;
    this.#places.add(path);
    this.list.push(error);
  }
}

/** Null in its place, or thrown on to the next one that can be null. */
export function fieldError(run: Run, error: GraphQLError, nullable: boolean, path: Path | undefined): null {
  if (!nullable) throw error;
  run.errors.add(error, path);
  return null;
}

type Results = Record<string, unknown>;

function emptyResults(bare: boolean): Results {
  return bare ? (Object.create(null) as Results) : {}; // it has no properties yet
}

export function executeFields(
  run: Run,
  { fields, bare }: CompiledSelection,
  source: unknown,
  path: Path | undefined,
): Results | Promise<Results> {
  const results = emptyResults(bare);
  let promised: string[] | undefined;
  try {
    for (const field of fields) {
      const value = executeField(run, field, source, path);
      results[field.key] = value;
      if (isPromise(value)) (promised ??= []).push(field.key);
    }
  } catch (error) {
    if (promised === undefined) throw error;
    // What other fields still wait for may fail as well, and somebody has to hear of it.
    return allOf(results, promised).finally(() => {
      throw error;
    });
  }
  return promised === undefined ? results : allOf(results, promised);
}

async function allOf(results: Results, promised: readonly string[]): Promise<Results> {
  const values = await Promise.all(promised.map((key) => results[key]));
  promised.forEach((key, index) => (results[key] = values[index]));
  return results;
}

/** One after the other: mutations. */
export async function executeSerially(
  run: Run,
  { fields, bare }: CompiledSelection,
  source: unknown,
): Promise<Results> {
  const results = emptyResults(bare);
  for (const field of fields) results[field.key] = await executeField(run, field, source, undefined);
  return results;
}

function executeField(run: Run, field: CompiledField, source: unknown, parent: Path | undefined): unknown {
  const path = field.hasPlaces
    ? { prev: parent, key: field.key, typename: field.parentType.name }
    : undefined;
  try {
    const value =
      field.resolve === undefined
        ? propertyOf(run, field, source, parent)
        : field.resolve(source, argumentsOf(run, field), run.context, new FieldInfo(run, field, parent));
    if (!isPromise(value)) {
      const done = field.complete(run, field, path, value);
      return isPromise(done)
        ? done.then(undefined, (error) => failed(run, field, error, { path, parent }))
        : done;
    }
    return value
      .then((resolved) => field.complete(run, field, path, resolved))
      .then(undefined, (error) => failed(run, field, error, { path, parent }));
  } catch (error) {
    return failed(run, field, error, { path, parent });
  }
}

function failed(
  run: Run,
  field: CompiledField,
  error: unknown,
  { path, parent }: { readonly path: Path | undefined; readonly parent: Path | undefined },
): null {
  const place = path ?? { prev: parent, key: field.key, typename: field.parentType.name };
  return fieldError(run, locatedError(error, field.nodes, pathTo(place)), field.nullable, place);
}

/** As `defaultFieldResolver` of graphql-js has it. */
function propertyOf(run: Run, field: CompiledField, source: unknown, parent: Path | undefined): unknown {
  if (source === null || (typeof source !== 'object' && typeof source !== 'function')) return undefined;
  const value = (source as Results)[field.definition.name]; // an object, by the line above
  if (typeof value !== 'function') return value;
  const method = value as (args: Arguments, context: unknown, info: FieldInfo) => unknown; // whoever made the object put it there for this
  return method.call(source, argumentsOf(run, field), run.context, new FieldInfo(run, field, parent));
}

function argumentsOf(run: Run, field: CompiledField): Arguments {
  if (field.fixedArguments !== undefined) return field.fixedArguments;
  let values = run.arguments.get(field);
  if (values === undefined) {
    const [node] = field.nodes;
    if (!node) throw new Error('a field without a node');
    values = getArgumentValues(field.definition, node, run.variables);
    run.arguments.set(field, values);
  }
  return values;
}

export function isPromise(value: unknown): value is Promise<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
