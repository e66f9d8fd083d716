import type { GraphQLResolveInfo } from 'graphql';

import type { ChangePage, Feed } from '../../changes/feed.js';
import type { ObjectKind } from '../../kernel/ids.js';
import type { PublicTable, Rows, TimelineResult, Wanted } from '../../store/public-types.js';
import { connectionOf, type Connection } from '../connection.js';
import type { Context } from '../context.js';
import type { ReadDeclaration, TableOf } from './declare.js';
import { pageFrame, sizeOf, type PageArgs } from './page.js';
import type { HeldRow, ReadPage, Reader } from './reader.js';

/**
 * Fields that lead from a row to what belongs to it: for each kind of them the declaration, by which a statement reads it
 * with the row, and the resolver that finds it there, or reads it now if the row came another way.
 */
interface Parts {
  readonly reader: Reader;
  readonly feed: Pick<Feed, 'cursorOf' | 'timelineOf'>;
}
type Declared = { readonly read: ReadDeclaration };
interface Identified {
  readonly id: string;
}

/** The object whose id is in `column`; null where the column is, or where the caller may not see it. */
export function toOne<K extends ObjectKind, C extends string>({ reader }: Parts, object: K, column: C) {
  const extensions: Declared = { read: { kind: 'one', object, column } };
  return {
    extensions,
    resolve: (
      row: Identified & { readonly [N in C]: string | null },
      _args: object,
      context: Context,
      info: GraphQLResolveInfo,
    ): Promise<Rows[TableOf[K]] | null> | null =>
      row[column] === null
        ? null
        : (reader.below(held(row), context, info) as Promise<Rows[TableOf[K]] | null>), // rows of that kind
  };
}

/** A connection over the rows of a table whose `column` has the id of this one. */
export function toPage<T extends PublicTable>(
  { reader, feed }: Parts,
  column: string,
  wantedOf: (args: PageArgs, context: Context) => Wanted<T>,
) {
  const extensions: Declared = { read: { kind: 'page', column, wanted: wantedOf } };
  return {
    extensions,
    resolve: (
      row: Identified,
      args: PageArgs,
      context: Context,
      info: GraphQLResolveInfo,
    ): Connection<Rows[T]> | Promise<Connection<Rows[T]>> => {
      const frame = pageFrame(args, wantedOf(args, context));
      return whenRead(
        reader.below(held(row), context, info),
        (page) => connectionOf(feed, page as ReadPage['result'], frame), // read by this declaration
      );
    },
  };
}

/** The object's own changes, newest first. */
export function toTimeline({ reader, feed }: Parts) {
  const extensions: Declared = { read: { kind: 'timeline' } };
  return {
    extensions,
    resolve: (
      row: Identified,
      { first }: { readonly first?: number | null | undefined },
      context: Context,
      info: GraphQLResolveInfo,
    ): ChangePage | Promise<ChangePage> =>
      whenRead(
        reader.below(held(row), context, info),
        (timeline) => feed.timelineOf(timeline as TimelineResult, sizeOf(first)), // read by this declaration
      ),
  };
}

/** A public fact that stands beside the row; a row that does not carry it leaves it to be read. */
export function beside<V>({ reader }: Parts, column: string) {
  const extensions: Declared = { read: { kind: 'columns', columns: [column] } };
  return {
    extensions,
    resolve: (
      row: Identified,
      _args: object,
      context: Context,
      info: GraphQLResolveInfo,
    ): V | null | Promise<V | null> => reader.column(held(row), column, context, info) as V | null, // or a promise of it
  };
}

function held(row: Identified): HeldRow {
  return row as HeldRow; // rows are plain objects
}

function whenRead<T>(value: unknown, make: (read: unknown) => T): T | Promise<T> {
  return value instanceof Promise ? value.then(make) : make(value);
}
