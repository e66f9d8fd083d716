import {
  getNamedType,
  isObjectType,
  type FieldNode,
  type GraphQLObjectType,
  type GraphQLResolveInfo,
  type SelectionSetNode,
} from 'graphql';

import { PUBLIC_COLUMNS, type PublicTable } from '../../store/public-types.js';
import { collectFields, fieldOf } from '../execution/compile.js';
import type { Field } from '../execution/compiled.js';
import { declarationOf, keyOf, type ReadDeclaration } from './declare.js';
import type { PageWants } from './page.js';

/** What of rows is selected, from the fields of a query: the same for every request that selects the same. */
export interface RowSelection {
  readonly table: PublicTable;
  readonly columns: Set<string>;
  /** By the key under which a row holds it. */
  readonly below: Map<string, BelowSelection>;
}

export interface BelowSelection {
  readonly key: string;
  readonly declaration: ReadDeclaration & { readonly kind: 'one' | 'page' | 'timeline' };
  readonly definition: Field;
  readonly node: FieldNode;
  readonly rows: RowSelection;
  readonly wants: { -readonly [K in keyof PageWants]: PageWants[K] };
}

export interface ConnectionSelection {
  readonly rows: RowSelection;
  readonly wants: PageWants;
}

/** The part of a resolver's info that says what is selected. */
export type Scope = Pick<GraphQLResolveInfo, 'schema' | 'fragments' | 'variableValues'>;

/** Of rows of this type below a field. */
export function rowSelection(
  scope: Scope,
  type: GraphQLObjectType,
  nodes: readonly FieldNode[],
): RowSelection {
  const into = emptySelection(type);
  addRow(scope, type, setsOf(nodes), into);
  return into;
}

export function connectionSelection(
  scope: Scope,
  type: GraphQLObjectType,
  nodes: readonly FieldNode[],
): ConnectionSelection {
  const into = { rows: emptySelection(nodeTypeOf(type)), wants: noWants() };
  addConnection(scope, type, setsOf(nodes), into);
  return into;
}

/** One field of a row alone. */
export function fieldSelection(info: GraphQLResolveInfo): RowSelection {
  const into = emptySelection(info.parentType);
  addField(info, info.parentType, info.fieldNodes, into);
  return into;
}

function emptySelection(type: GraphQLObjectType): RowSelection {
  return { table: tableOf(type), columns: new Set(), below: new Map() };
}

function noWants() {
  return { rows: false, places: false, more: false, total: false, position: false };
}

export function setsOf(nodes: readonly FieldNode[]): SelectionSetNode[] {
  return nodes.flatMap(({ selectionSet }) => (selectionSet ? [selectionSet] : []));
}

function modelOf(type: GraphQLObjectType): keyof typeof PUBLIC_COLUMNS {
  const { pothosPrismaModel: model } = type.extensions;
  if (typeof model === 'string' && model in PUBLIC_COLUMNS) return model as keyof typeof PUBLIC_COLUMNS; // a key, by this line
  throw new Error(`${type.name} is no type of rows`);
}

function tableOf(type: GraphQLObjectType): PublicTable {
  return modelOf(type).toLowerCase() as PublicTable; // the models with a type of their own are those of TABLES
}

function addRow(
  scope: Scope,
  type: GraphQLObjectType,
  sets: readonly SelectionSetNode[],
  into: RowSelection,
): void {
  const { schema, fragments, variableValues: directiveVariables } = scope;
  for (const nodes of collectFields({ schema, fragments, directiveVariables }, type, sets).values()) {
    addField(scope, type, nodes, into);
  }
}

function addField(
  scope: Scope,
  type: GraphQLObjectType,
  nodes: readonly FieldNode[],
  into: RowSelection,
): void {
  const [node] = nodes;
  const definition = node && fieldOf(scope.schema, type, node.name.value);
  if (!definition || node.name.value === '__typename') return;
  const declaration = declarationOf(definition) ?? everyColumn(into.table);
  if (declaration.kind === 'columns') {
    for (const column of declaration.columns) into.columns.add(column);
    return;
  }
  const target = getNamedType(definition.type);
  if (!isObjectType(target)) throw new Error(`${type.name}.${definition.name} leads to no object`);
  if (declaration.kind === 'sameRow') return addRow(scope, target, setsOf(nodes), into);
  const key = keyOf(node);
  let below = into.below.get(key);
  if (below === undefined) {
    const rowType = declaration.kind === 'page' ? nodeTypeOf(target) : target;
    const rows = declaration.kind === 'timeline' ? into : emptySelection(rowType);
    below = { key, declaration, definition, node, rows, wants: noWants() };
    into.below.set(key, below);
  }
  if (declaration.kind === 'one') addRow(scope, target, setsOf(nodes), below.rows);
  if (declaration.kind === 'page') addConnection(scope, target, setsOf(nodes), below);
}

function everyColumn(table: PublicTable): ReadDeclaration {
  const model = table.slice(0, 1).toUpperCase() + table.slice(1);
  return { kind: 'columns', columns: Object.keys(PUBLIC_COLUMNS[model as keyof typeof PUBLIC_COLUMNS]) }; // as in tableOf
}

/** Of `DeploymentConnection`: `Deployment`. */
function nodeTypeOf(connection: GraphQLObjectType): GraphQLObjectType {
  const nodes = connection.getFields()['nodes'];
  const type = nodes && getNamedType(nodes.type);
  if (!isObjectType(type)) throw new Error(`${connection.name} is no connection`);
  return type;
}

function addConnection(
  scope: Scope,
  type: GraphQLObjectType,
  sets: readonly SelectionSetNode[],
  { rows, wants }: Pick<BelowSelection, 'rows' | 'wants'>,
): void {
  const { schema, fragments, variableValues: directiveVariables } = scope;
  const fieldsOf = (parent: GraphQLObjectType, of: readonly SelectionSetNode[]) =>
    collectFields({ schema, fragments, directiveVariables }, parent, of).values();
  for (const nodes of fieldsOf(type, sets)) {
    switch (nodes[0]?.name.value ?? '') {
      case 'nodes':
        wants.rows = true;
        addRow(scope, nodeTypeOf(type), setsOf(nodes), rows);
        break;
      case 'edges': {
        wants.rows = true;
        const edge = getNamedType(type.getFields()['edges']?.type);
        if (!isObjectType(edge)) break;
        for (const inner of fieldsOf(edge, setsOf(nodes))) {
          if (inner[0]?.name.value === 'cursor') wants.places = true;
          if (inner[0]?.name.value === 'node') addRow(scope, nodeTypeOf(type), setsOf(inner), rows);
        }
        break;
      }
      case 'pageInfo':
        wants.rows = wants.places = wants.more = true;
        break;
      case 'totalCount':
        wants.total = true;
        break;
      case 'asOf':
        wants.position = true;
        break;
      default: // `__typename`
    }
  }
}
