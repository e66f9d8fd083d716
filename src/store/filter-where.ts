import type { Predicate } from '../kernel/filter.js';
import type { LabelRequirement } from '../kernel/labels.js';
import { Prisma } from './generated/prisma/client.js';

/**
 * The SQL half of kernel/filter.ts: a predicate as a Prisma `where`. SQL has three truth values and the filter two, so
 * negation is pushed down to the leaves, and each negated leaf says that an absent value satisfies it.
 */
export interface WhereNode {
  readonly [key: string]: unknown;
}

export function whereOf<F extends string>(predicate: Predicate<F>, nullable: ReadonlySet<string>): WhereNode {
  return compile(predicate, false, nullable);
}

function compile<F extends string>(
  predicate: Predicate<F>,
  negated: boolean,
  nullable: ReadonlySet<string>,
): WhereNode {
  switch (predicate.kind) {
    case 'all':
    case 'any': {
      const parts = predicate.of.map((part) => compile(part, negated, nullable));
      // De Morgan: a negated conjunction is a disjunction of negations.
      return (predicate.kind === 'all') !== negated ? { AND: parts } : { OR: parts };
    }
    case 'not':
      return compile(predicate.of, !negated, nullable);
    case 'in':
      return leaf(
        predicate.field,
        { in: [...predicate.values] },
        { notIn: [...predicate.values] },
        negated,
        nullable,
      );
    case 'startsWith': {
      const startsWith = escapeLike(predicate.prefix);
      return leaf(predicate.field, { startsWith }, { not: { startsWith } }, negated, nullable);
    }
    case 'label':
      return labelWhere(predicate.requirement, negated);
  }
}

function leaf(
  field: string,
  plain: object,
  opposite: object,
  negated: boolean,
  nullable: ReadonlySet<string>,
): WhereNode {
  if (!negated) return { [field]: plain };
  return nullable.has(field) ? { OR: [{ [field]: null }, { [field]: opposite }] } : { [field]: opposite };
}

/** Prisma hands the text to LIKE as it is, where `%`, `_` and `\` are not themselves. */
function escapeLike(text: string): string {
  return text.replaceAll(/[\\%_]/g, String.raw`\$&`);
}

function labelWhere({ key, operator, values }: LabelRequirement, negated: boolean): WhereNode {
  // An array path, so that dots and slashes in keys are no steps.
  const path = [key];
  const absent = { labels: { path, equals: Prisma.DbNull } };
  const wantsPresence = operator === 'EXISTS' || operator === 'IN';
  if (operator === 'EXISTS' || operator === 'NOT_EXISTS') {
    return wantsPresence !== negated ? { NOT: absent } : absent;
  }
  const any = { OR: values.map((value) => ({ labels: { path, equals: value } })) };
  if (wantsPresence !== negated) return any;
  return { OR: [absent, { AND: [{ NOT: absent }, { NOT: any }] }] };
}
