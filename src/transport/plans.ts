import {
  GraphQLError,
  Kind,
  NoSchemaIntrospectionCustomRule,
  TypeInfo,
  getNamedType,
  isNonNullType,
  parse,
  specifiedRules,
  validate,
  visit,
  visitWithTypeInfo,
  type ASTNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';
import { LRUCache } from 'lru-cache';

import type { ErrorCode } from '../graph/errors.js';
import { documentExcess } from './document-limits.js';
import { VALIDATION_ERRORS_MAX, type TransportLimits } from './limits.js';
import { refusals } from './refusal.js';

/**
 * From a document's text to what is known of its operations before any request: parsed, measured, validated, root
 * fields collected. Kept per text, refused texts too, so that repeating either costs nothing.
 */
export type OperationKind = 'query' | 'mutation' | 'subscription';

/** One operation of one document, the same object for every request that names it. */
export interface OperationPlan {
  /** Unique in the process: stands for the document in keys. */
  readonly planId: number;
  readonly kind: OperationKind;
  readonly name: string | undefined;
  readonly operation: OperationDefinitionNode;
  /** The operation with all fragments of its document, without its siblings. */
  readonly document: DocumentNode;
  /** Root fields it may reach, skipped ones included: a directive must not hide one from authorisation. */
  readonly rootFields: readonly FieldNode[];
  /**
   * Variables that what is selected depends on. Those that stand in arguments of root fields alone decide which events
   * of a stream come, never what an event shows: subscribers that differ in these alone are equal.
   */
  readonly selectionVariables: readonly string[];
  /** Variables that may be null by their own types and stand where null may not: a default made them valid there. */
  readonly neverNull: readonly string[];
  /** Reads a field marked `extensions.personal`: its results belong to one principal and are never shared. */
  readonly personal: boolean;
}

export type Plans =
  | { readonly operations: ReadonlyMap<string, OperationPlan>; readonly errors?: undefined }
  | { readonly errors: readonly GraphQLError[]; readonly operations?: undefined };

export interface PlanSource {
  of(text: string): Plans;
  readonly size: number;
}

export interface PlanOptions {
  readonly limits: TransportLimits;
  /** Off: `__schema` and `__type` are refused, and errors suggest no names. */
  readonly introspection: boolean;
}

export function planSource(schema: GraphQLSchema, options: PlanOptions): PlanSource {
  const rules = options.introspection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule];
  const kept = new LRUCache<string, Plans>({
    max: options.limits.cachedDocuments,
    maxSize: options.limits.cachedDocumentBytes,
    sizeCalculation: (_plans, text) => text.length + 1,
  });
  const ids = { next: 1 };

  function make(text: string): Plans {
    const document = parsed(text, options.limits.documentTokens);
    if (document instanceof GraphQLError) return { errors: [document] };
    if (documentExcess(document, options.limits)) {
      return { errors: [refusals.tooComplex()] };
    }
    const found = validate(schema, document, rules, { maxErrors: VALIDATION_ERRORS_MAX });
    if (found.length > 0) {
      return { errors: found.map((error) => validationError(error, options.introspection)) };
    }
    return { operations: operationsOf(schema, document, () => ids.next++) };
  }

  return {
    of(text) {
      let plans = kept.get(text);
      if (plans === undefined) {
        plans = make(text);
        kept.set(text, plans);
      }
      return plans;
    },
    get size() {
      return kept.size;
    },
  };
}

function parsed(text: string, maxTokens: number): DocumentNode | GraphQLError {
  try {
    return parse(text, { maxTokens });
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    // graphql-js names the limit in its text.
    if (error.message.includes('tokens. Parsing aborted')) {
      return refusals.tooLong();
    }
    return recoded(error, error.message, 'GRAPHQL_PARSE_FAILED');
  }
}

function validationError(error: GraphQLError, suggestions: boolean): GraphQLError {
  const text = error.message.replace(/\d+ errors?|error limit reached/i, 'too many errors');
  const message = suggestions ? text : text.replace(/ ?Did you mean [^?]*\?/, '');
  return recoded(error, message, 'GRAPHQL_VALIDATION_FAILED');
}

/** The same error at the same place, as ours: without what it was made from. */
export function recoded(error: GraphQLError, message: string, code: ErrorCode): GraphQLError {
  return new GraphQLError(message, {
    nodes: error.nodes ?? null,
    source: error.source,
    positions: error.positions,
    extensions: { code, ...error.extensions },
  });
}

function operationsOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  nextId: () => number,
): ReadonlyMap<string, OperationPlan> {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
  const plans = new Map<string, OperationPlan>();
  for (const operation of document.definitions) {
    if (operation.kind !== Kind.OPERATION_DEFINITION) continue;
    const own: DocumentNode = { kind: Kind.DOCUMENT, definitions: [operation, ...fragments.values()] };
    const rootFields: FieldNode[] = [];
    collectFields(operation.selectionSet, fragments, rootFields, new Set());
    plans.set(operation.name?.value ?? '', {
      planId: nextId(),
      kind: operation.operation,
      name: operation.name?.value,
      operation,
      document: own,
      rootFields,
      selectionVariables: selectionVariables(own, rootFields),
      neverNull: neverNull(schema, own, operation),
      personal: readsPersonal(schema, own),
    });
  }
  return plans;
}

function collectFields(
  set: SelectionSetNode,
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
  into: FieldNode[],
  seen: Set<string>,
): void {
  for (const selection of set.selections) {
    if (selection.kind === Kind.FIELD) into.push(selection);
    else if (selection.kind === Kind.INLINE_FRAGMENT) {
      collectFields(selection.selectionSet, fragments, into, seen);
    } else if (!seen.has(selection.name.value)) {
      seen.add(selection.name.value);
      const fragment = fragments.get(selection.name.value);
      if (fragment) collectFields(fragment.selectionSet, fragments, into, seen);
    }
  }
}

function selectionVariables(document: DocumentNode, rootFields: readonly FieldNode[]): readonly string[] {
  const atRoot = new Map<string, number>();
  for (const { arguments: given = [] } of rootFields) {
    for (const argument of given) countVariables(argument, atRoot);
  }
  const anywhere = new Map<string, number>();
  countVariables(document, anywhere);
  return [...anywhere].filter(([name, count]) => atRoot.get(name) !== count).map(([name]) => name);
}

function neverNull(
  schema: GraphQLSchema,
  document: DocumentNode,
  { variableDefinitions = [] }: OperationDefinitionNode,
): readonly string[] {
  const nullable = new Set(
    variableDefinitions
      .filter(({ type }) => type.kind !== Kind.NON_NULL_TYPE)
      .map(({ variable }) => variable.name.value),
  );
  const names = new Set<string>();
  const info = new TypeInfo(schema);
  visit(
    document,
    visitWithTypeInfo(info, {
      VariableDefinition: () => false, // a definition is no use
      Variable({ name: { value: name } }) {
        if (nullable.has(name) && isNonNullType(info.getInputType())) names.add(name);
      },
    }),
  );
  return [...names];
}

function countVariables(node: ASTNode, counts: Map<string, number>): void {
  visit(node, {
    VariableDefinition: () => false, // a definition is no use
    Variable({ name }) {
      counts.set(name.value, (counts.get(name.value) ?? 0) + 1);
    },
  });
}

function readsPersonal(schema: GraphQLSchema, document: DocumentNode): boolean {
  const info = new TypeInfo(schema);
  let personal = false;
  visit(
    document,
    visitWithTypeInfo(info, {
      Field() {
        const type = info.getType();
        personal ||= info.getFieldDef()?.extensions['personal'] === true;
        personal ||= type ? getNamedType(type).extensions['personal'] === true : false;
      },
    }),
  );
  return personal;
}
