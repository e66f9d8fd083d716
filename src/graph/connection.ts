import type { ArgBuilder, ObjectRef } from '@pothos/core';
import type { GraphQLResolveInfo } from 'graphql';

import type { Feed } from '../changes/feed.js';
import type { PageResult, PublicTable, Rows, Wanted } from '../store/public-types.js';
import type { Context } from './context.js';
import type { Builder, Types } from './graph-types.js';
import { encodePageCursor, type ListOrder } from './page-cursor.js';
import {
  PAGE_SIZE_DEFAULT,
  PAGE_SIZE_MAX,
  pageSizeSchema,
  type PageArgs,
  type PageFrame,
} from './reading/page.js';
import type { Reader } from './reading/reader.js';

/**
 * Keyset connections over immutable columns, forward and backward. What was not selected is not read; total and `asOf` are
 * read by the statement that reads the rows, so that a stream `after` it goes on exactly where the rows end.
 */
interface ConnectionRow {
  readonly id: string;
  readonly createdAt: Date;
  readonly name?: string;
}
export interface Connection<Row = ConnectionRow> {
  readonly page: Omit<PageResult, 'rows'> & { readonly rows: readonly Row[] };
  readonly frame: PageFrame;
  readonly asOf: string | null;
}

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
        resolve: ({ page }) => page.rows as ConnectionRow[], // read for this page alone
      }),
      edges: t.field({
        type: [edge],
        description: 'The same objects, each with its place.',
        resolve: ({ page, frame }) => page.rows.map((row) => ({ node: row, order: frame.order })),
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

/** Reads a page as its field is selected. `wanted` already says who may see what. */
export async function readConnection<T extends PublicTable>(
  { reader, feed }: ConnectionParts,
  wanted: Wanted<T>,
  args: PageArgs,
  context: Context,
  info: GraphQLResolveInfo,
): Promise<Connection<Rows[T]>> {
  const { result, frame } = await reader.page(wanted, args, context, info);
  return connectionOf(feed, result, frame);
}

type ConnectionParts = { readonly reader: Reader; readonly feed: Pick<Feed, 'cursorOf'> };

export function connectionOf<Row>(
  feed: Pick<Feed, 'cursorOf'>,
  page: PageResult,
  frame: PageFrame,
): Connection<Row> {
  const asOf = page.position === null ? null : feed.cursorOf(page.position);
  return { page: page as unknown as Connection<Row>['page'], frame, asOf }; // rows of the table that `frame` names
}

function cursorOf(order: ListOrder, row: ConnectionRow): string {
  const value = order.field === 'createdAt' ? row.createdAt : selected(row.name ?? null, 'name');
  return encodePageCursor(order, { value, id: row.id });
}

function pageInfoOf({ page, frame }: Connection) {
  const { order, forward, after, before } = frame;
  const first = page.rows.at(0);
  const last = page.rows.at(-1);
  return {
    // At the far side of a cursor there was at least its own row.
    hasNextPage: forward ? page.more : before !== null,
    hasPreviousPage: forward ? after !== null : page.more,
    startCursor: first ? cursorOf(order, first) : null,
    endCursor: last ? cursorOf(order, last) : null,
  };
}

function selected<T>(value: T | null, field: string): T {
  if (value === null) throw new Error(`${field} was not read with its page`);
  return value;
}
