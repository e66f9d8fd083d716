import type { QueryResult, QueryResultRow } from 'pg';

/** What a statement can be run on: the pool (commits by itself) or one connection inside a transaction. */
export interface Queryable {
  query<R extends QueryResultRow>(statement: Statement): Promise<Answered<R>>;
}

export type Answered<R extends QueryResultRow> = Pick<QueryResult<R>, 'rows' | 'rowCount'>;

export interface Statement {
  /** Named statements are parsed once a connection. Same name, same text: names carry everything the text depends on. */
  readonly name?: string;
  readonly text: string;
  readonly values?: unknown[];
}
