import type { Predicate } from '../kernel/filter.js';
import type { LabelRequirement } from '../kernel/labels.js';

/**
 * kernel/filter.ts as SQL text, for snapshots: they are read on the feed's own transaction, where Prisma is not. Each
 * leaf is coalesced to two values, so that negation needs no care.
 */
export interface FilterSql {
  /** A boolean expression, never null. */
  readonly text: string;
  readonly values: readonly unknown[];
}

/** `columns` maps the fields of the predicate to column names; `firstParameter` is the number of the first `$`. */
export function filterSql<F extends string>(
  predicate: Predicate<F>,
  columns: Readonly<Record<F, { readonly name: string }>>,
  firstParameter: number,
): FilterSql {
  const values: unknown[] = [];
  const parameter = (value: unknown): string => `$${firstParameter + values.push(value) - 1}`;
  const compile = (part: Predicate<F>): string => {
    switch (part.kind) {
      case 'all':
        return part.of.length === 0 ? 'true' : `(${part.of.map(compile).join(' AND ')})`;
      case 'any':
        return part.of.length === 0 ? 'false' : `(${part.of.map(compile).join(' OR ')})`;
      case 'not':
        return `NOT ${compile(part.of)}`;
      case 'in':
        // As text: an enumeration's column has no operator for text.
        return `coalesce(${columns[part.field].name}::text = ANY(${parameter([...part.values])}::text[]), false)`;
      case 'startsWith':
        return `coalesce(starts_with(${columns[part.field].name}::text, ${parameter(part.prefix)}), false)`;
      case 'label':
        return labelSql(part.requirement, parameter);
    }
  };
  return { text: compile(predicate), values };
}

function labelSql(
  { key, operator, values }: LabelRequirement,
  parameter: (value: unknown) => string,
): string {
  const value = `(labels ->> ${parameter(key)}::text)`;
  switch (operator) {
    case 'EXISTS':
      return `(${value} IS NOT NULL)`;
    case 'NOT_EXISTS':
      return `(${value} IS NULL)`;
    case 'IN':
      return `coalesce(${value} = ANY(${parameter([...values])}::text[]), false)`;
    case 'NOT_IN':
      return `NOT coalesce(${value} = ANY(${parameter([...values])}::text[]), false)`;
  }
}
