import { z } from 'zod';

import {
  labelKeySchema,
  labelsMatch,
  labelValueSchema,
  type LabelRequirement,
  type Labels,
} from './labels.js';
import { textSchema } from './text.js';

/**
 * Filters of lists and streams: `{ and, or, not, labels, <field>: { equals, in, notIn, startsWith } }`. What stands
 * side by side must all hold. One meaning in memory (streams) and in SQL (lists): two-valued, an absent value equals
 * nothing, starts with nothing and is in no list, so `notIn` and `not` hold for it. `store/filter-sql.ts` is the
 * SQL half; a property test holds both against each other.
 */
export const FILTER_DEPTH_MAX = 5;
export const FILTER_LEAVES_MAX = 50;
export const FILTER_VALUES_MAX = 100;
const VALUE_MAX = 512;

export interface FieldFilter {
  readonly equals?: string | null | undefined;
  readonly in?: readonly string[] | null | undefined;
  readonly notIn?: readonly string[] | null | undefined;
  /** For text fields only, not for enumerations and ids. */
  readonly startsWith?: string | null | undefined;
}

export interface LabelFilter {
  readonly key: string;
  readonly operator: LabelRequirement['operator'];
  readonly values?: readonly string[] | null | undefined;
}

export type Filter<F extends string> = {
  readonly and?: readonly Filter<F>[] | null | undefined;
  readonly or?: readonly Filter<F>[] | null | undefined;
  readonly not?: Filter<F> | null | undefined;
  readonly labels?: readonly LabelFilter[] | null | undefined;
} & { readonly [K in F]?: FieldFilter | null | undefined };

/** Which fields of which rows can be filtered. */
export interface FilterSpec<F extends string> {
  readonly fields: {
    readonly [K in F]: { readonly kind: 'text' | 'exact'; readonly values?: readonly string[] };
  };
  readonly labels: boolean;
}
/** A row as a filter sees it: strings by field name, and labels. */
export type FilteredRow<F extends string> = { readonly [K in F]?: unknown } & { readonly labels?: unknown };

/** A filter, parsed: one shape, so that memory and SQL cannot read it differently. */
export type Predicate<F extends string> =
  | { readonly kind: 'all'; readonly of: readonly Predicate<F>[] }
  | { readonly kind: 'any'; readonly of: readonly Predicate<F>[] }
  | { readonly kind: 'not'; readonly of: Predicate<F> }
  | { readonly kind: 'in'; readonly field: F; readonly values: readonly string[] }
  | { readonly kind: 'startsWith'; readonly field: F; readonly prefix: string }
  | { readonly kind: 'label'; readonly requirement: LabelRequirement };

export function matches<F extends string>(predicate: Predicate<F>, row: FilteredRow<F>): boolean {
  switch (predicate.kind) {
    case 'all':
      return predicate.of.every((part) => matches(part, row));
    case 'any':
      return predicate.of.some((part) => matches(part, row));
    case 'not':
      return !matches(predicate.of, row);
    case 'in': {
      const value = row[predicate.field];
      return typeof value === 'string' && predicate.values.includes(value);
    }
    case 'startsWith': {
      const value = row[predicate.field];
      return typeof value === 'string' && value.startsWith(predicate.prefix);
    }
    case 'label':
      return labelsMatch((row.labels ?? {}) as Labels, predicate.requirement); // labels were checked when written
  }
}

/** The schema of a filter with these fields, giving its predicate. Null or nothing holds for everything. */
export function filterSchema<F extends string>(
  spec: FilterSpec<F>,
): z.ZodType<Predicate<F>, Filter<F> | null | undefined> {
  const value = textSchema(VALUE_MAX);
  const fieldSchema = (field: FilterSpec<F>['fields'][F]) => {
    const one = field.values ? z.enum(field.values) : value;
    const many = z
      .array(one)
      .max(FILTER_VALUES_MAX, { error: `must have at most ${FILTER_VALUES_MAX} values` });
    const exact = { equals: one.nullish(), in: many.nullish(), notIn: many.nullish() };
    return field.kind === 'text'
      ? z.strictObject({ ...exact, startsWith: value.nullish() })
      : z.strictObject({ ...exact });
  };
  const fields = Object.fromEntries(
    Object.entries<FilterSpec<F>['fields'][F]>(spec.fields).map(([name, field]) => [
      name,
      fieldSchema(field).nullish(),
    ]),
  );
  const atDepth = (depth: number): z.ZodType => {
    if (depth > FILTER_DEPTH_MAX) return z.never({ error: `must nest at most ${FILTER_DEPTH_MAX} levels` });
    const deeper = z.lazy(() => atDepth(depth + 1));
    const some = z
      .array(deeper)
      .min(1, { error: 'must have at least 1 filter' })
      .max(FILTER_LEAVES_MAX)
      .nullish();
    return z.strictObject({
      ...fields,
      ...(spec.labels ? { labels: z.array(labelFilterSchema).max(FILTER_LEAVES_MAX).nullish() } : {}),
      and: some,
      or: some,
      not: deeper.nullish(),
    });
  };
  const names = Object.keys(spec.fields) as F[]; // its own keys
  return atDepth(1)
    .nullish()
    .transform((filter, context): Predicate<F> => {
      const predicate = predicateOf((filter ?? {}) as Filter<F>, names); // just checked against that shape
      if (leaves(predicate) <= FILTER_LEAVES_MAX) return predicate;
      context.issues.push({
        code: 'custom',
        message: `must have at most ${FILTER_LEAVES_MAX} leaves`,
        input: undefined,
      });
      return z.NEVER;
    }) as z.ZodType<Predicate<F>, Filter<F> | null | undefined>; // built per field, which loses the names
}

const labelFilterSchema = z
  .strictObject({
    key: labelKeySchema,
    operator: z.enum(['IN', 'NOT_IN', 'EXISTS', 'NOT_EXISTS']),
    values: z.array(labelValueSchema).max(FILTER_VALUES_MAX).nullish(),
  })
  .check((context) => {
    const { operator, values } = context.value;
    const wanted = operator === 'IN' || operator === 'NOT_IN';
    if (wanted === (values ?? []).length > 0) return;
    const message = wanted ? `must have 1 to ${FILTER_VALUES_MAX} values` : 'must be empty for this operator';
    context.issues.push({ code: 'custom', path: ['values'], message, input: undefined });
  });

function predicateOf<F extends string>(filter: Filter<F>, names: readonly F[]): Predicate<F> {
  const parts: Predicate<F>[] = [];
  for (const field of names) parts.push(...fieldParts(field, filter[field]));
  for (const { key, operator, values } of filter.labels ?? []) {
    parts.push({ kind: 'label', requirement: { key, operator, values: values ?? [] } });
  }
  for (const part of filter.and ?? []) parts.push(predicateOf(part, names));
  if (filter.or) parts.push({ kind: 'any', of: filter.or.map((part) => predicateOf(part, names)) });
  if (filter.not) parts.push({ kind: 'not', of: predicateOf(filter.not, names) });
  const [only] = parts;
  return parts.length === 1 && only !== undefined ? only : { kind: 'all', of: parts };
}

function fieldParts<F extends string>(field: F, filter: FieldFilter | null | undefined): Predicate<F>[] {
  if (!filter) return [];
  const parts: Predicate<F>[] = [];
  if (filter.equals !== undefined && filter.equals !== null) {
    parts.push({ kind: 'in', field, values: [filter.equals] });
  }
  if (filter.in) parts.push({ kind: 'in', field, values: filter.in });
  if (filter.notIn) parts.push({ kind: 'not', of: { kind: 'in', field, values: filter.notIn } });
  if (filter.startsWith !== undefined && filter.startsWith !== null) {
    parts.push({ kind: 'startsWith', field, prefix: filter.startsWith });
  }
  return parts;
}

function leaves<F extends string>(predicate: Predicate<F>): number {
  switch (predicate.kind) {
    case 'all':
    case 'any':
      return predicate.of.reduce((sum, part) => sum + leaves(part), 0);
    case 'not':
      return leaves(predicate.of);
    case 'in':
    case 'startsWith':
    case 'label':
      return 1;
  }
}
