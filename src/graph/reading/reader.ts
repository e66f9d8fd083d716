import {
  getArgumentValues,
  getNamedType,
  isObjectType,
  type GraphQLObjectType,
  type GraphQLResolveInfo,
} from 'graphql';

import { authorise } from '../../access/authorise.js';
import { kindOfId, type ObjectKind } from '../../kernel/ids.js';
import type {
  BelowRead,
  PageResult,
  PublicReads,
  PublicTable,
  ReadRow,
  Rows,
  RowsRead,
  Wanted,
} from '../../store/public-types.js';
import type { Context } from '../context.js';
import { TYPE_OF_KIND } from '../object-types.js';
import { keyOf, READ_ACTION, TABLE_OF, type TableOf } from './declare.js';
import { pageFrame, pageRead, sizeOf, type PageArgs, type PageFrame } from './page.js';
import {
  connectionSelection,
  fieldSelection,
  rowSelection,
  type BelowSelection,
  type ConnectionSelection,
  type RowSelection,
} from './selection.js';

/**
 * Reads what a field selects, all of it at once: relations, pages and timelines at any depth come with the rows, and the
 * resolvers below find them there. A row that came another way (by an event, a mutation, a conflict) holds its columns
 * alone; what belongs to it is then read from the field that asks, again with all that is selected below.
 */
export interface Reader {
  /** The object, or null if there is none that the caller may see. */
  byId<K extends ObjectKind>(
    kind: K,
    id: string,
    context: Context,
    info: GraphQLResolveInfo,
  ): Promise<Rows[TableOf[K]] | null>;
  /** Of any kinds, in the order of the ids. */
  byIds(ids: readonly string[], context: Context, info: GraphQLResolveInfo): Promise<(ReadRow | null)[]>;
  first<T extends PublicTable>(
    wanted: Wanted<T>,
    context: Context,
    info: GraphQLResolveInfo,
  ): Promise<Rows[T] | null>;
  page(wanted: Wanted, args: PageArgs, context: Context, info: GraphQLResolveInfo): Promise<ReadPage>;
  /** What a row holds for this field, or a promise of it. */
  below(row: HeldRow, context: Context, info: GraphQLResolveInfo): unknown;
  /** The same for a column that stands beside the row. */
  column(row: HeldRow, column: string, context: Context, info: GraphQLResolveInfo): unknown;
}

export interface ReadPage {
  readonly result: PageResult;
  readonly frame: PageFrame;
}

/** Columns of some row, known to have an id. */
export type HeldRow = Readonly<Record<string, unknown>> & { readonly id: string };

export function createReader(reads: PublicReads): Reader {
  const ofKind = (kind: ObjectKind, ids: readonly string[], context: Context, info: GraphQLResolveInfo) => {
    const wanted = visible(kind, context, { ids, deleted: true });
    const type = info.schema.getType(TYPE_OF_KIND[kind]);
    if (!wanted || !isObjectType(type)) return undefined;
    return { wanted, rows: boundRows(rowsBelow(info, type), { context, info }) };
  };
  return {
    async byId<K extends ObjectKind>(kind: K, id: string, context: Context, info: GraphQLResolveInfo) {
      const read = kindOfId(id) === kind ? ofKind(kind, [id], context, info) : undefined;
      return read ? ((await firstOf(reads, read, context)) as Rows[TableOf[K]] | null) : null; // of the kind's table
    },
    async byIds(ids, context, info) {
      const byKind = new Map<ObjectKind, string[]>();
      for (const id of new Set(ids)) {
        const kind = kindOfId(id);
        if (kind) byKind.set(kind, [...(byKind.get(kind) ?? []), id]);
      }
      const wanted = [...byKind].flatMap(([kind, some]) => ofKind(kind, some, context, info) ?? []);
      const rows = new Map((await reads.rows(wanted, context.turns)).map((row) => [row['id'], row]));
      return ids.map((id) => rows.get(id) ?? null);
    },
    async first<T extends PublicTable>(wanted: Wanted<T>, context: Context, info: GraphQLResolveInfo) {
      const type = getNamedType(info.returnType);
      if (!isObjectType(type)) throw new Error(`${info.fieldName} leads to no object`);
      const rows = boundRows(rowsBelow(info, type), { context, info });
      return (await firstOf(reads, { wanted, rows }, context)) as Rows[T] | null; // of that table
    },
    async page(wanted, args, context, info) {
      const frame = pageFrame(args, wanted);
      const { rows, wants } = connectionBelow(info);
      return {
        frame,
        result: await reads.page(
          pageRead(frame, wanted, wants, boundRows(rows, { context, info })),
          context.turns,
        ),
      };
    },
    below(row, context, info) {
      const [node] = info.fieldNodes;
      if (!node) throw new Error('a field without a node');
      const key = keyOf(node);
      const known = row[key];
      if (known !== undefined) return known;
      const selection = fieldSelection(info);
      const rows = boundRows(selection, { context, info }, true);
      // Nothing of its kind may be seen.
      if (rows.below.length === 0 && rows.columns.length === 0) return null;
      const held: Record<string, string | null> = { id: row.id };
      for (const { declaration } of selection.below.values()) {
        if (declaration.kind === 'one') held[declaration.column] = row[declaration.column] as string | null; // a column with an id
      }
      return reads.beside(held, rows, context.turns).then((read) => read[key] ?? null);
    },
    column(row, column, context, info) {
      if (row[column] !== undefined) return row[column];
      // The rest of what the field is made of stands in the row.
      const rows = boundRows({ ...fieldSelection(info), columns: new Set([column]) }, { context, info });
      return reads.beside({ id: row.id }, rows, context.turns).then((read) => read[column] ?? null);
    },
  };
}

async function firstOf(
  reads: PublicReads,
  read: { readonly wanted: Wanted; readonly rows: RowsRead },
  { turns }: Context,
): Promise<ReadRow | null> {
  return (await reads.rows([read], turns))[0] ?? null;
}

/** The rows of a kind that the caller may see; undefined if none. */
function visible(
  kind: ObjectKind,
  { caller }: Context,
  which: Pick<Wanted, 'ids' | 'predicate' | 'deleted'>,
): Wanted | undefined {
  const grant = authorise(caller, READ_ACTION[kind]);
  return grant && { table: TABLE_OF[kind], namespaces: grant.namespaces, ...which };
}

interface Binding {
  readonly context: Context;
  readonly info: Pick<GraphQLResolveInfo, 'variableValues'>;
}

/** A selection with what this request makes of it: arguments, and what its caller may see. */
function boundRows({ table, columns, below }: RowSelection, binding: Binding, strict = false): RowsRead {
  const bound: BelowRead[] = [];
  for (const one of below.values()) {
    try {
      const read = boundBelow(one, binding);
      if (read) bound.push(read);
    } catch (error) {
      // Left out, so that its resolver comes to read it, and fails in its own place of the answer.
      if (strict) throw error;
    }
  }
  return { table, columns: [...columns], below: bound };
}

/** Undefined where the caller may see nothing of the kind. */
function boundBelow(selection: BelowSelection, binding: Binding): BelowRead | undefined {
  const { key, declaration, definition, node, rows, wants } = selection;
  if (declaration.kind === 'one') {
    const { column, object } = declaration;
    const wanted = visible(object, binding.context, { deleted: true });
    return wanted && { kind: 'one', key, column, wanted, rows: boundRows(rows, binding) };
  }
  const args = getArgumentValues(definition, node, binding.info.variableValues);
  if (declaration.kind === 'timeline') {
    // Declared by `timelineArguments`.
    const { first, beforeVersion } = args as { first?: number | null; beforeVersion?: number | null };
    return { kind: 'timeline', key, take: sizeOf(first) + 1, beforeVersion: beforeVersion ?? null };
  }
  const wanted = declaration.wanted(args, binding.context);
  const frame = pageFrame(args, wanted);
  const { column } = declaration;
  return { kind: 'page', key, column, page: pageRead(frame, wanted, wants, boundRows(rows, binding)) };
}

/** Kept with the nodes of a compiled operation, whose selections differ by no variable. */
const rowSelections = new WeakMap<object, Map<GraphQLObjectType, RowSelection>>();
const connectionSelections = new WeakMap<object, ConnectionSelection>();

function rowsBelow(info: GraphQLResolveInfo, type: GraphQLObjectType): RowSelection {
  let ofTypes = rowSelections.get(info.fieldNodes);
  if (ofTypes === undefined) {
    ofTypes = new Map<GraphQLObjectType, RowSelection>();
    rowSelections.set(info.fieldNodes, ofTypes);
  }
  let selection = ofTypes.get(type);
  if (selection === undefined) ofTypes.set(type, (selection = rowSelection(info, type, info.fieldNodes)));
  return selection;
}

function connectionBelow(info: GraphQLResolveInfo): ConnectionSelection {
  let selection = connectionSelections.get(info.fieldNodes);
  if (selection === undefined) {
    const type = getNamedType(info.returnType);
    if (!isObjectType(type)) throw new Error(`${info.fieldName} leads to no connection`);
    selection = connectionSelection(info, type, info.fieldNodes);
    connectionSelections.set(info.fieldNodes, selection);
  }
  return selection;
}
