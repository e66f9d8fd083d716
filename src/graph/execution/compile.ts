import {
  GraphQLIncludeDirective,
  GraphQLSkipDirective,
  Kind,
  SchemaMetaFieldDef,
  TypeMetaFieldDef,
  TypeNameMetaFieldDef,
  getArgumentValues,
  getDirectiveValues,
  isAbstractType,
  isNonNullType,
  typeFromAST,
  visit,
  type ASTNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLObjectType,
  type GraphQLSchema,
  type InlineFragmentNode,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';

import { completerOf, hasPlaces } from './complete.js';
import type { Arguments, CompiledField, CompiledSelection, Field, Variables, Variant } from './compiled.js';

const NO_ARGUMENTS: Arguments = {};

/** The names of the variables that decide what is selected at all. */
export function directiveVariables(document: DocumentNode): readonly string[] {
  const names = new Set<string>();
  visit(document, {
    Directive(node) {
      if (node.name.value !== 'skip' && node.name.value !== 'include') return;
      for (const { value } of node.arguments ?? []) {
        if (value.kind === Kind.VARIABLE) names.add(value.name.value);
      }
    },
  });
  return [...names];
}

export function compileRoot(variant: Variant): CompiledSelection {
  const type = variant.schema.getRootType(variant.operation.operation);
  if (!type) throw new Error(`the schema has no ${variant.operation.operation} type`);
  return compileSelection(variant, type, [variant.operation.selectionSet]);
}

function compileSelection(
  variant: Variant,
  type: GraphQLObjectType,
  sets: readonly SelectionSetNode[],
): CompiledSelection {
  const fields: CompiledField[] = [];
  for (const [key, nodes] of collectFields(variant, type, sets)) {
    const [node] = nodes;
    const definition = node && fieldOf(variant.schema, type, node.name.value);
    if (definition) fields.push(compileField(variant, type, definition, { key, nodes }));
  }
  return { fields, bare: fields.some(({ key }) => key === '__proto__') };
}

function compileField(
  variant: Variant,
  parentType: GraphQLObjectType,
  definition: Field,
  { key, nodes }: Pick<CompiledField, 'key' | 'nodes'>,
): CompiledField {
  const { type } = definition;
  const sets = nodes.flatMap(({ selectionSet }) => (selectionSet ? [selectionSet] : []));
  const selections = new Map<GraphQLObjectType, CompiledSelection>();
  return {
    key,
    nodes,
    definition,
    parentType,
    resolve: definition.resolve,
    hasPlaces: hasPlaces(type),
    nullable: !isNonNullType(type),
    fixedArguments: fixedArguments(definition, nodes),
    complete: completerOf(type),
    variant,
    below(concrete) {
      let selection = selections.get(concrete);
      if (selection === undefined) {
        selection = compileSelection(variant, concrete, sets);
        selections.set(concrete, selection);
      }
      return selection;
    },
  };
}

function fixedArguments(definition: Field, [node]: readonly FieldNode[]): Arguments | undefined {
  if (!node || definition.args.length === 0) return NO_ARGUMENTS;
  if ((node.arguments ?? []).some(namesVariable)) return undefined;
  try {
    return getArgumentValues(definition, node);
  } catch {
    return undefined; // thrown again where it is executed, to be an error of that field
  }
}

function namesVariable(node: ASTNode): boolean {
  const found: string[] = [];
  visit(node, { Variable: ({ name }) => void found.push(name.value) });
  return found.length > 0;
}

/** The fields of a type that are selected, by response key: several nodes where one is selected several times. */
export function collectFields(
  variant: Omit<Variant, 'operation'>,
  type: GraphQLObjectType,
  sets: readonly SelectionSetNode[],
): ReadonlyMap<string, readonly FieldNode[]> {
  const fields = new Map<string, FieldNode[]>();
  const spread = new Set<string>();
  const add = (set: SelectionSetNode): void => {
    for (const selection of set.selections) {
      if (!isIncluded(selection, variant.directiveVariables)) continue;
      if (selection.kind === Kind.FIELD) {
        const key = (selection.alias ?? selection.name).value;
        const known = fields.get(key);
        if (known) known.push(selection);
        else fields.set(key, [selection]);
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        if (appliesTo(variant.schema, selection, type)) add(selection.selectionSet);
      } else if (!spread.has(selection.name.value)) {
        spread.add(selection.name.value);
        const fragment = variant.fragments[selection.name.value];
        if (fragment && appliesTo(variant.schema, fragment, type)) add(fragment.selectionSet);
      }
    }
  };
  sets.forEach(add);
  return fields;
}

function isIncluded(node: SelectionNode, variables: Variables): boolean {
  if (node.directives === undefined || node.directives.length === 0) return true;
  return (
    getDirectiveValues(GraphQLSkipDirective, node, variables)?.['if'] !== true &&
    getDirectiveValues(GraphQLIncludeDirective, node, variables)?.['if'] !== false
  );
}

function appliesTo(
  schema: GraphQLSchema,
  { typeCondition }: FragmentDefinitionNode | InlineFragmentNode,
  type: GraphQLObjectType,
): boolean {
  if (!typeCondition) return true;
  const condition = typeFromAST(schema, typeCondition);
  return condition === type || (isAbstractType(condition) && schema.isSubType(condition, type));
}

/** With the fields that every schema has. */
export function fieldOf(schema: GraphQLSchema, type: GraphQLObjectType, name: string): Field | undefined {
  if (name === TypeNameMetaFieldDef.name) return TypeNameMetaFieldDef;
  if (type === schema.getQueryType()) {
    if (name === SchemaMetaFieldDef.name) return SchemaMetaFieldDef;
    if (name === TypeMetaFieldDef.name) return TypeMetaFieldDef;
  }
  return type.getFields()[name];
}
