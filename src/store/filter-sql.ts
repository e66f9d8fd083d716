import type { Predicate } from '../kernel/filter.js';
import type { LabelRequirement } from '../kernel/labels.js';

/**
 * kernel/filter.ts as SQL text. What must hold is written as plain comparisons of columns, which an index can answer. A
 * comparison with an absent value is null there, which a WHERE takes for false; only below a negation, where null would
 * be as good as true, each leaf is coalesced to two values.
 */
export interface FilterSql {
  /** For a WHERE: true for the rows that match; for others false or null. */
  readonly text: string;
  readonly values: readonly unknown[];
}

export interface FilteredColumn {
  readonly name: string;
  /** Of a column of an enumeration: its type, which no text compares with. */
  readonly type?: string;
  /** A column that is true for every value but the common ones: what an index of the rest goes by. */
  readonly rare?: { readonly name: string; readonly common: readonly string[] };
}

/** `columns` maps the fields of the predicate to columns; `firstParameter` is the number of the first `$`. */
export function filterSql<F extends string>(
  predicate: Predicate<F>,
  columns: Readonly<Record<F, FilteredColumn>>,
  firstParameter: number,
): FilterSql {
  const values: unknown[] = [];
  const parameter = (value: unknown): string => `$${firstParameter + values.push(value) - 1}`;
  const compile = (part: Predicate<F>, negated: boolean): string => {
    const each = (parts: readonly Predicate<F>[], joint: string): string =>
      `(${parts.map((one) => compile(one, negated)).join(joint)})`;
    const leaf = (text: string): string => (negated ? `coalesce(${text}, false)` : `(${text})`);
    switch (part.kind) {
      case 'all':
        return part.of.length === 0 ? 'true' : each(part.of, ' AND ');
      case 'any':
        return part.of.length === 0 ? 'false' : each(part.of, ' OR ');
      case 'not':
        // The planner knows how many rows such a comparison leaves, and nothing of a coalesced one.
        return part.of.kind === 'in' && !negated
          ? notInSql(columns[part.of.field], part.of.values, parameter)
          : `NOT ${compile(part.of, true)}`;
      case 'in':
        return leaf(
          rareSql(columns[part.field], part.values) + inSql(columns[part.field], part.values, parameter),
        );
      case 'startsWith':
        return leaf(startsWithSql(columns[part.field], part.prefix, parameter));
      case 'label':
        return labelSql(part.requirement, parameter);
    }
  };
  return { text: compile(predicate, false), values };
}

type Parameter = (value: unknown) => string;

function rareSql({ rare }: FilteredColumn, values: readonly string[]): string {
  return rare && values.every((value) => !rare.common.includes(value)) ? `${rare.name} AND ` : '';
}

/** One value by `=`: only then does an index that begins with the column also give its order. */
function inSql(column: FilteredColumn, values: readonly string[], parameter: Parameter): string {
  const { name, type = 'text' } = column;
  const [only] = values;
  return values.length === 1 && only !== undefined
    ? `${name} = ${parameter(only)}::${type}`
    : `${name} = ANY(${parameter([...values])}::${type}[])`;
}

function notInSql(
  { name, type = 'text' }: FilteredColumn,
  values: readonly string[],
  parameter: Parameter,
): string {
  return `(${name} <> ALL(${parameter([...values])}::${type}[]) OR ${name} IS NULL)`;
}

/** The bounds are for an index: the texts that begin with the prefix are one stretch of it, in the collation "C". */
function startsWithSql({ name }: FilteredColumn, prefix: string, parameter: Parameter): string {
  const start = parameter(prefix);
  const begins = `starts_with(${name}, ${start}) AND ${name} >= ${start}`;
  const end = firstTextBehind(prefix);
  return end === undefined ? begins : `${begins} AND ${name} < ${parameter(end)}`;
}

const LAST_CODE_POINT = 0x10ffff;
const SURROGATES = { first: 0xd800, behind: 0xe000 } as const;

/** The smallest text above all that begin with the prefix, by code points. Undefined if there is none. */
function firstTextBehind(prefix: string): string | undefined {
  const points = Array.from(prefix, (character) => character.codePointAt(0) ?? 0);
  while (points.at(-1) === LAST_CODE_POINT) points.pop();
  const last = points.pop();
  if (last === undefined) return undefined;
  const next = last + 1 === SURROGATES.first ? SURROGATES.behind : last + 1;
  return String.fromCodePoint(...points, next);
}

/** By containment, which is never null and which the index on labels answers. */
function labelSql({ key, operator, values }: LabelRequirement, parameter: Parameter): string {
  const present = () => `(labels ->> ${parameter(key)}::text) IS NOT NULL`;
  const oneOf = () =>
    `(${values.map((value) => `labels @> ${parameter(JSON.stringify({ [key]: value }))}::jsonb`).join(' OR ')})`;
  switch (operator) {
    case 'EXISTS':
      return `(${present()})`;
    case 'NOT_EXISTS':
      return `NOT (${present()})`;
    case 'IN':
      return oneOf();
    case 'NOT_IN':
      return `NOT ${oneOf()}`;
  }
}
