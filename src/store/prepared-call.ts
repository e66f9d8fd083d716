import type { Connection, Submittable } from 'pg';

import type { Statement } from './queryable.js';
import { runMessages } from './wire.js';

/** A column as PostgreSQL describes it. */
export interface Column {
  readonly name: string;
  readonly dataTypeID: number;
}

export type Cells = readonly (string | null)[];

/**
 * One execution of one statement, given to a session of the driver in place of its own query: sent in one piece, its rows kept as the
 * texts that came, and its columns asked for only if nobody knows them yet. Prepared where the session has not done that.
 */
export class PreparedCall implements Submittable {
  /** The driver keeps in the session, by these two, what is prepared there. */
  readonly name: string | undefined;
  readonly text: string;
  readonly rows: Cells[] = [];
  columns: readonly Column[] = [];
  rowCount: number | null = null;
  readonly values: readonly unknown[];
  readonly #describe: boolean;
  readonly #done: (error: Error | undefined) => void;

  /** `done` is called once: after the last message, or with the error. */
  constructor(statement: Statement, describe: boolean, done: (error: Error | undefined) => void) {
    this.name = statement.name;
    this.text = statement.text;
    this.values = statement.values ?? [];
    this.#describe = describe;
    this.#done = done;
  }

  /** An error that is returned is the driver's to tell of, by `handleError`. */
  submit(connection: Connection): Error | undefined {
    const { name = '', text } = this;
    // The driver's own books, which its types leave out.
    const { parsedStatements, submittedNamedStatements, stream } = connection as Connection & Books;
    const known = name === '' ? undefined : (parsedStatements[name] ?? submittedNamedStatements[name]);
    if (known !== undefined && known !== text) {
      return new Error(`\`${name}\` is the name of another prepared statement`);
    }
    let messages: Buffer;
    try {
      messages = runMessages(name, this.values, this.#describe);
    } catch (error) {
      return error instanceof Error ? error : new Error('a parameter has no text', { cause: error });
    }
    if (known === undefined) {
      stream.cork();
      connection.parse({ name, text, types: [] }, true);
      if (name !== '') submittedNamedStatements[name] = text;
    }
    if (stream.writable) stream.write(messages);
    if (known === undefined) stream.uncork();
    return undefined;
  }

  handleRowDescription({ fields }: { readonly fields: readonly Column[] }): void {
    this.columns = fields;
  }

  handleDataRow({ fields }: { readonly fields: Cells }): void {
    this.rows.push(fields);
  }

  handleCommandComplete({ text }: { readonly text: string }): void {
    const count = /\d+$/.exec(text);
    this.rowCount = count ? Number(count[0]) : null;
  }

  handleReadyForQuery(): void {
    this.#done(undefined);
  }

  /** Of the statement, or of the connection. What may still come for it the driver keeps to itself. */
  handleError(error: Error): void {
    this.#done(error);
  }

  handleEmptyQuery(): void {
    this.rowCount = null;
  }

  handlePortalSuspended(): void {
    throw new Error('all rows were asked for');
  }

  handleCopyInResponse(connection: { sendCopyFail(message: string): void }): void {
    connection.sendCopyFail('nothing is copied here');
  }

  handleCopyData(): void {
    // Comes only after a COPY, of which there is none.
  }
}

interface Books {
  readonly parsedStatements: Record<string, string | undefined>;
  readonly submittedNamedStatements: Record<string, string | undefined>;
}
