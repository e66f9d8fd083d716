/** Walks over a built schema that say what is wrong with it, one sentence each; a right schema gives nothing. */
import {
  getNamedType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isIntrospectionType,
  isObjectType,
  isSpecifiedScalarType,
  isUnionType,
  type GraphQLNamedType,
  type GraphQLSchema,
} from 'graphql';

import type { InternalFacts } from './internal-facts.js';

/** Everything with a name, by its schema coordinate. */
interface Named {
  readonly coordinate: string;
  readonly name: string;
  readonly description: string | null | undefined;
}

export function namedParts(schema: GraphQLSchema): Named[] {
  const parts: Named[] = [];
  for (const type of ownTypes(schema)) {
    parts.push({ coordinate: type.name, name: type.name, description: type.description });
    const inside = isEnumType(type)
      ? type.getValues()
      : 'getFields' in type
        ? Object.values(type.getFields())
        : [];
    for (const part of inside) {
      const coordinate = `${type.name}.${part.name}`;
      parts.push({ coordinate, name: part.name, description: part.description });
      for (const argument of 'args' in part ? part.args : []) {
        const { name, description } = argument;
        parts.push({ coordinate: `${coordinate}(${name}:)`, name, description });
      }
    }
  }
  return parts;
}

function ownTypes(schema: GraphQLSchema): GraphQLNamedType[] {
  return Object.values(schema.getTypeMap()).filter(
    (type) => !isIntrospectionType(type) && !isSpecifiedScalarType(type),
  );
}

export function missingDescriptions(schema: GraphQLSchema): string[] {
  return namedParts(schema)
    .filter(({ description }) => !/^[A-Z`].*[.…]$/s.test(description ?? ''))
    .map(
      ({ coordinate }) =>
        `${coordinate} has no description that is a sentence: say what it is, its unit, its default, and when it is null.`,
    );
}

const FORBIDDEN = new Set([
  'token',
  'tokens',
  'secret',
  'secrets',
  'hash',
  'fingerprint',
  'internal',
  'lease',
]);

/** `allowed`: coordinate → why it may be called so. An allowance that is not needed is wrong too. */
export function forbiddenNames(schema: GraphQLSchema, allowed: ReadonlyMap<string, string>): string[] {
  const found = namedParts(schema)
    .filter(({ name }) => wordsOf(name).some((word) => FORBIDDEN.has(word)))
    .map(({ coordinate }) => coordinate);
  return [
    ...found
      .filter((coordinate) => !allowed.has(coordinate))
      .map(
        (coordinate) => `${coordinate} is named like an internal fact: rename it, or list it with a reason.`,
      ),
    ...[...allowed.keys()]
      .filter((coordinate) => !found.includes(coordinate))
      .map((coordinate) => `${coordinate} is allowed a name that nothing has: take it off the list.`),
  ];
}

function wordsOf(name: string): string[] {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .split(/[\s_]+/)
    .map((word) => word.toLowerCase());
}

export function operationsWithoutRow(
  schema: GraphQLSchema,
  rows: Readonly<Record<string, unknown>>,
): string[] {
  const operations = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()].flatMap(
    (type) => (type ? Object.keys(type.getFields()).map((field) => `${type.name}.${field}`) : []),
  );
  return [
    ...operations
      .filter((name) => !Object.hasOwn(rows, name))
      .map((name) => `${name} has no row in OPERATIONS: add who may call it.`),
    ...Object.keys(rows)
      .filter((name) => !operations.includes(name))
      .map((name) => `${name} has a row in OPERATIONS and is no operation: take it out.`),
  ];
}

/** Where the Pothos side of a schema touches what `schema.prisma` marks internal, or could come to read it. */
export function internalReaches(
  schema: GraphQLSchema,
  facts: InternalFacts,
  /** Fields of types that hold no row, and have the name of an internal column: coordinate → what it is instead. */
  others: ReadonlyMap<string, string> = new Map(),
): string[] {
  const problems: string[] = [];
  const bare = new Set([...facts.fields].map((key) => key.split('.')[1]));
  for (const type of ownTypes(schema)) {
    if (!isObjectType(type) && !isInterfaceType(type)) continue;
    const {
      pothosPrismaModel: model,
      pothosPrismaSelect: select,
      pothosPrismaInclude: include,
    } = type.extensions;
    if (typeof model === 'string') {
      if (facts.models.has(model)) problems.push(`${type.name} shows the internal model ${model}.`);
      if (include !== undefined) {
        problems.push(`${type.name} includes relations, and so reads every column: name a select.`);
      }
      if (select === undefined) {
        problems.push(`${type.name} has no select, and so reads every column: name one.`);
      } else problems.push(...selectProblems(type.name, model, select, facts));
    }
    for (const field of Object.values(type.getFields())) {
      const coordinate = `${type.name}.${field.name}`;
      const {
        pothosExposedField: exposed,
        pothosPrismaSelect: own,
        pothosPrismaRelationField: relation,
      } = field.extensions;
      const hidden =
        typeof model === 'string'
          ? facts.fields.has(`${model}.${String(exposed)}`)
          : bare.has(String(exposed)) && !others.has(coordinate);
      if (exposed !== undefined && hidden) {
        problems.push(`${coordinate} exposes the internal \`${String(exposed)}\`.`);
      }
      if (relation !== undefined && facts.models.has((relation as { type: string }).type)) {
        problems.push(`${coordinate} leads to the internal model ${(relation as { type: string }).type}.`);
      }
      if (own !== undefined && own !== false) {
        problems.push(
          `${coordinate} has a select of its own: it would read again an object that an event holds. Use builder.objectFields.`,
        );
        if (typeof model === 'string') problems.push(...selectProblems(coordinate, model, own, facts));
      }
    }
  }
  return problems;
}

function selectProblems(where: string, model: string, select: unknown, facts: InternalFacts): string[] {
  const selection = typeof select === 'function' ? calledWith(select) : select;
  if (selection === null || typeof selection !== 'object') return [];
  return Object.entries(selection).flatMap(([name, value]) => {
    if (value === false || value === undefined) return [];
    const key = `${model}.${name}`;
    const target = facts.relations.get(key);
    const nested = (value as { select?: unknown }).select;
    return [
      ...(facts.fields.has(key) ? [`${where} selects the internal \`${key}\`.`] : []),
      ...(target !== undefined && nested !== undefined ? selectProblems(where, target, nested, facts) : []),
      ...(target !== undefined && nested === undefined
        ? [`${where} selects every column of \`${key}\`.`]
        : []),
    ];
  });
}

/** What a select that is a function asks for; nested selections are left to the walk over the type they lead to. */
function calledWith(select: unknown): unknown {
  const call = select as (args: object, context: object, nested: () => object) => { select?: unknown };
  return call({}, {}, () => ({ select: {} })).select;
}

/** Types that an operation of a root can reach, whatever it selects. */
export function reachable(schema: GraphQLSchema, root: GraphQLNamedType | null | undefined): Set<string> {
  const seen = new Set<string>();
  const visit = (type: GraphQLNamedType): void => {
    if (seen.has(type.name)) return;
    seen.add(type.name);
    if (isUnionType(type)) type.getTypes().forEach(visit);
    if (isInterfaceType(type)) schema.getPossibleTypes(type).forEach(visit);
    if (isInputObjectType(type)) return;
    if ('getFields' in type) {
      for (const field of Object.values(type.getFields())) visit(getNamedType(field.type));
    }
  };
  if (root) visit(root);
  return seen;
}
