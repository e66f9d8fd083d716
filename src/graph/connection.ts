import type { ArgBuilder, ObjectRef } from '@pothos/core';
import type { GraphQLResolveInfo } from 'graphql';
import { z } from 'zod';

import type { Feed } from '../changes/feed.js';
import type {
  Keyset,
  PageResult,
  PublicReads,
  PublicTable,
  Rows,
  SortDirection,
  SortField,
  Wheres,
} from '../store/public-types.js';
import { operationError } from './errors.js';
import type { Builder, Types } from './graph-types.js';
import { decodePageCursor, encodePageCursor, type ListOrder } from './page-cursor.js';
import { selectedFields } from './selected-fields.js';

/**
 * Keyset connections over immutable columns, forward and backward. What was not selected is not read: the total only for
 * `totalCount`, and only for `asOf` one REPEATABLE READ transaction around rows, total and the log's snapshot, so that
 * a stream `after` it goes on exactly where the rows end.
 */
export const PAGE_SIZE_DEFAULT = 50;
export const PAGE_SIZE_MAX = 100;

type Optional<T> = T | null | undefined;
export interface PageArgs {
  readonly first?: Optional<number>;
  readonly after?: Optional<string>;
  readonly last?: Optional<number>;
  readonly before?: Optional<string>;
  readonly orderBy?: Optional<{ readonly field?: Optional<SortField>; readonly direction: SortDirection }>;
}
interface ConnectionRow {
  readonly id: string;
  readonly createdAt: Date;
  readonly name?: string;
}
export interface Connection<Row = ConnectionRow> {
  readonly page: PageResult<Row>;
  readonly order: ListOrder;
  readonly forward: boolean;
  /** Whether the range began or ended at a cursor. */
  readonly after: boolean;
  readonly before: boolean;
  readonly asOf: string | null;
}

const sizeMessage = { error: `must be between 1 and ${PAGE_SIZE_MAX}` };
/** Of every argument that says how many: a size that is refused must not be measured by `cost.ts` either. */
export const pageSizeSchema = z.int(sizeMessage).min(1, sizeMessage).max(PAGE_SIZE_MAX, sizeMessage);

/** The arguments of every connection; `orderBy` comes beside them. */
export function pageArguments(t: ArgBuilder<Types>) {
  return {
    first: t.int({
      description: `How many from the start of the list, 1 to ${PAGE_SIZE_MAX}. Without \`first\` and \`last\`: ${PAGE_SIZE_DEFAULT}.`,
      validate: pageSizeSchema,
    }),
    after: t.string({ description: 'A page cursor: only what comes after it. Null: from the start.' }),
    last: t.int({
      description: `How many from the end of the list, 1 to ${PAGE_SIZE_MAX}. Not together with \`first\`.`,
      validate: pageSizeSchema,
    }),
    before: t.string({ description: 'A page cursor: only what comes before it. Null: to the end.' }),
  };
}

/** What is selected of a node costs as often as there may be nodes. */
export function pageComplexity(args: Pick<PageArgs, 'first' | 'last'>): {
  field: number;
  multiplier: number;
} {
  return { field: 1, multiplier: args.first ?? args.last ?? PAGE_SIZE_DEFAULT };
}

/** `DeploymentConnection` and `DeploymentEdge`. */
export function addConnectionType<Row extends ConnectionRow>(
  builder: Builder,
  name: string,
  nodeType: ObjectRef<Types, Row>,
): ObjectRef<Types, Connection<Row>> {
  // Pothos cannot compute with a row type that is still open; what it needs to know is that rows are objects.
  const node = nodeType as unknown as ObjectRef<Types, ConnectionRow>;
  const what = name.toLowerCase();
  const edge = builder
    .objectRef<{ readonly node: ConnectionRow; readonly order: ListOrder }>(`${name}Edge`)
    .implement({
      description: `One ${what} of a page, and its place.`,
      fields: (t) => ({
        cursor: t.string({
          description: 'Where this one stands: give it as `after` or `before`.',
          resolve: (one) => cursorOf(one.order, one.node),
        }),
        node: t.field({ type: node, description: `The ${what}.`, resolve: (one) => one.node }),
      }),
    });
  const connection = builder.objectRef<Connection>(`${name}Connection`).implement({
    description: `A page of the ${what}s that the caller may see.`,
    fields: (t) => ({
      nodes: t.field({
        type: [node],
        description: 'The objects of this page, in order.',
        resolve: ({ page }) => [...page.rows],
      }),
      edges: t.field({
        type: [edge],
        description: 'The same objects, each with its place.',
        resolve: ({ page, order }) => page.rows.map((row) => ({ node: row, order })),
      }),
      pageInfo: t.field({
        type: builder.pageInfoRef(),
        description: 'Whether and where there is more.',
        resolve: pageInfoOf,
      }),
      totalCount: t.int({
        description: 'How many objects the whole list has. Counted only when selected.',
        complexity: 1,
        resolve: ({ page }) => selected(page.total, 'totalCount'),
      }),
      asOf: t.field({
        type: 'ChangeCursor',
        description:
          'The place in the change log that this page shows, read in one transaction with it. A watch `after` the `asOf` of the FIRST page misses nothing that happened since, while further pages are read.',
        complexity: 1,
        resolve: ({ asOf }) => selected(asOf, 'asOf'),
      }),
    }),
  });
  return connection as unknown as ObjectRef<Types, Connection<Row>>; // the same object under its callers' row type
}

/** Reads a page as its field is selected. `where` already says who may see what. */
export async function readConnection<T extends PublicTable>(
  graph: { readonly reads: PublicReads; readonly feed: Pick<Feed, 'cursorOf'> },
  table: T,
  where: Wheres[T],
  args: PageArgs,
  info: GraphQLResolveInfo,
): Promise<Connection<Rows[T]>> {
  if (typeof args.first === 'number' && typeof args.last === 'number') {
    throw operationError('BAD_USER_INPUT', '`first` and `last` must not be given together.');
  }
  const order: ListOrder = {
    table,
    field: args.orderBy?.field ?? 'createdAt',
    direction: args.orderBy?.direction ?? 'asc',
  };
  const forward = typeof args.last !== 'number';
  const wanted = selectedFields(info);
  const after = place(args.after, order, 'after');
  const before = place(args.before, order, 'before');
  const page = await graph.reads.page(table, {
    where,
    sort: order,
    after,
    before,
    take: args.first ?? args.last ?? PAGE_SIZE_DEFAULT,
    fromEnd: !forward,
    wantRows: wanted.has('nodes') || wanted.has('edges') || wanted.has('pageInfo'),
    wantTotal: wanted.has('totalCount'),
    wantSnapshot: wanted.has('asOf'),
  });
  const asOf = page.snapshot === null ? null : graph.feed.cursorOf(page.snapshot);
  return { page, order, forward, after: after !== null, before: before !== null, asOf };
}

function place(cursor: Optional<string>, order: ListOrder, argument: string): Keyset | null {
  if (cursor === null || cursor === undefined) return null;
  const decoded = decodePageCursor(cursor, order);
  if (decoded) return decoded;
  throw operationError('BAD_PAGE_CURSOR', `\`${argument}\` is not a cursor of this list in this order.`);
}

function cursorOf(order: ListOrder, row: ConnectionRow): string {
  const value = order.field === 'createdAt' ? row.createdAt : selected(row.name ?? null, 'name');
  return encodePageCursor(order, { value, id: row.id });
}

function pageInfoOf({ page, order, forward, after, before }: Connection) {
  const first = page.rows.at(0);
  const last = page.rows.at(-1);
  return {
    // At the far side of a cursor there was at least its own row.
    hasNextPage: forward ? page.more : before,
    hasPreviousPage: forward ? after : page.more,
    startCursor: first ? cursorOf(order, first) : null,
    endCursor: last ? cursorOf(order, last) : null,
  };
}

function selected<T>(value: T | null, field: string): T {
  if (value === null) throw new Error(`${field} was not read with its page`);
  return value;
}
