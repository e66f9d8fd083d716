/** One entry of `errors` in an answer, as the GraphQL specification has it. */
export interface GraphError {
  readonly message: string;
  readonly path?: readonly (string | number)[] | undefined;
  readonly extensions?: Readonly<Record<string, unknown>> | undefined;
}

/** Codes that the server puts into `extensions.code`. */
export type ServerErrorCode =
  | 'GRAPHQL_PARSE_FAILED'
  | 'GRAPHQL_VALIDATION_FAILED'
  | 'BAD_USER_INPUT'
  | 'UNAUTHENTICATED'
  | 'FORBIDDEN'
  | 'BAD_PAGE_CURSOR'
  | 'CURSOR_EXPIRED'
  | 'CURSOR_INVALID'
  | 'SLOW_CONSUMER'
  | 'SNAPSHOT_TOO_LARGE'
  | 'RATE_LIMITED'
  | 'TOO_COMPLEX'
  | 'UNAVAILABLE'
  | 'INTERNAL';

/** Codes of the client itself, for what no server said. */
export type ClientErrorCode =
  /** No connection, or it broke before the answer was complete. A mutation may or may not have happened. */
  | 'NETWORK'
  /** No answer in time. A mutation may or may not have happened. */
  | 'TIMEOUT'
  /** The caller's signal was aborted, or the client was closed. */
  | 'ABORTED'
  /** Something answered that does not speak GraphQL over HTTP. */
  | 'BAD_RESPONSE'
  /** Events were missed and the caller did not ask to go on (`onGap`). */
  | 'GAP'
  /** The caller reads so slowly that its buffer overflowed, and the document cannot be resumed. */
  | 'OVERFLOW';

/** The server may grow codes that this client does not know. */
export type SlipwayErrorCode = ServerErrorCode | ClientErrorCode | (string & {});

export function codeOf(errors: readonly GraphError[]): SlipwayErrorCode | null {
  const code = errors[0]?.extensions?.['code'];
  return typeof code === 'string' ? code : null;
}

export function requestIdOf(errors: readonly GraphError[]): string | null {
  const id = errors[0]?.extensions?.['requestId'];
  return typeof id === 'string' ? id : null;
}

interface RequestErrorFacts {
  readonly code: SlipwayErrorCode;
  readonly message: string;
  readonly status?: number | null;
  readonly requestId?: string | null;
  readonly errors?: readonly GraphError[];
  readonly data?: unknown;
  readonly cause?: unknown;
}

/**
 * A query or mutation that gave no result. Expected failures of a mutation (a version conflict, say) are members of
 * its result union and never come this way.
 */
export class SlipwayRequestError extends Error {
  override readonly name = 'SlipwayRequestError';
  readonly code: SlipwayErrorCode;
  /** HTTP status; null if there was no answer. */
  readonly status: number | null;
  /** Stands in the server's log beside the cause; null if no server answered. */
  readonly requestId: string | null;
  readonly errors: readonly GraphError[];
  /** What was answered beside the errors, if anything. */
  readonly data: unknown;

  constructor(facts: RequestErrorFacts) {
    super(facts.message, { cause: facts.cause });
    this.code = facts.code;
    this.status = facts.status ?? null;
    this.requestId = facts.requestId ?? null;
    this.errors = facts.errors ?? [];
    this.data = facts.data ?? null;
  }
}

interface StreamErrorFacts {
  readonly code: SlipwayErrorCode;
  readonly message: string;
  readonly cursor: string | null;
  readonly closeCode?: number | null;
  readonly errors?: readonly GraphError[];
  readonly cause?: unknown;
}

/** A subscription that ended for good: trying again by itself would not help, or would hide missed events. */
export class SlipwayStreamError extends Error {
  override readonly name = 'SlipwayStreamError';
  readonly code: SlipwayErrorCode;
  /** Where the stream can be taken up again, if at all. */
  readonly cursor: string | null;
  /** WebSocket close code; null if the operation ended alone. */
  readonly closeCode: number | null;
  readonly requestId: string | null;
  readonly errors: readonly GraphError[];

  constructor(facts: StreamErrorFacts) {
    super(facts.message, { cause: facts.cause });
    this.code = facts.code;
    this.cursor = facts.cursor;
    this.closeCode = facts.closeCode ?? null;
    this.errors = facts.errors ?? [];
    this.requestId = requestIdOf(this.errors);
  }
}
