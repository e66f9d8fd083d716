import { GraphQLError, type GraphQLFormattedError } from 'graphql';

import { InvalidInputError } from './failures.js';

/**
 * The one masking point. What leaves the server as an operation error has a code of ours, a message written for the
 * caller, and extensions that are listed here; everything else becomes INTERNAL with a request id that is in the log.
 */
export const ERROR_CODES = [
  /** The request is no GraphQL request, or its document does not parse. */
  'GRAPHQL_PARSE_FAILED',
  /** The document does not fit the schema. */
  'GRAPHQL_VALIDATION_FAILED',
  /** A variable or argument has a value that its type refuses. */
  'BAD_USER_INPUT',
  'UNAUTHENTICATED',
  'FORBIDDEN',
  'BAD_PAGE_CURSOR',
  'CURSOR_EXPIRED',
  'CURSOR_INVALID',
  'SLOW_CONSUMER',
  'SNAPSHOT_TOO_LARGE',
  'RATE_LIMITED',
  'TOO_COMPLEX',
  'UNAVAILABLE',
  'INTERNAL',
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

/** Per code, what may stand beside it. */
const EXTENSIONS: Readonly<Record<ErrorCode, readonly string[]>> = {
  GRAPHQL_PARSE_FAILED: [],
  GRAPHQL_VALIDATION_FAILED: [],
  BAD_USER_INPUT: [],
  UNAUTHENTICATED: ['reason'],
  FORBIDDEN: [],
  BAD_PAGE_CURSOR: [],
  CURSOR_EXPIRED: ['cursor'],
  CURSOR_INVALID: [],
  SLOW_CONSUMER: ['cursor'],
  SNAPSHOT_TOO_LARGE: [],
  RATE_LIMITED: ['retryAfterSeconds'],
  TOO_COMPLEX: ['cost'],
  UNAVAILABLE: ['retryAfterSeconds', 'cursor'],
  INTERNAL: ['requestId'],
};

const INTERNAL_MESSAGE = 'Something went wrong on our side. The request id finds it in the server log.';
const UNAVAILABLE_MESSAGE = 'The server cannot do this at the moment. Try again shortly.';

/** An operation error that is meant to be read by the caller. */
export function operationError(
  code: ErrorCode,
  message: string,
  extensions: Record<string, unknown> = {},
): GraphQLError {
  return new GraphQLError(message, { extensions: { ...extensions, code } });
}

export interface MaskedError {
  readonly formatted: GraphQLFormattedError;
  readonly code: ErrorCode;
  /** What to log, once, with the request id; null when the caller's own mistake explains itself. */
  readonly cause: unknown;
}

/** `phase` is where a GraphQLError without a code came from; graphql-js itself gives none. */
export function maskError(
  error: unknown,
  requestId: string,
  phase: 'parse' | 'validate' | 'execute',
): MaskedError {
  const graphql = error instanceof GraphQLError ? error : undefined;
  const place = {
    ...(graphql?.locations ? { locations: graphql.locations } : {}),
    ...(graphql?.path ? { path: graphql.path } : {}),
  };
  const origin = graphql ? (graphql.originalError ?? graphql) : error;
  const known = publicError(origin, phase);
  if (known) {
    return {
      code: known.code,
      cause: known.code === 'UNAVAILABLE' ? origin : null,
      formatted: { message: known.message, ...place, extensions: { ...allowed(known), code: known.code } },
    };
  }
  return {
    code: 'INTERNAL',
    cause: origin,
    formatted: { message: INTERNAL_MESSAGE, ...place, extensions: { code: 'INTERNAL', requestId } },
  };
}

interface PublicError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly extensions: Readonly<Record<string, unknown>>;
}

function publicError(origin: unknown, phase: 'parse' | 'validate' | 'execute'): PublicError | undefined {
  if (!(origin instanceof Error)) return undefined;
  if (origin instanceof GraphQLError) {
    const code = origin.extensions['code'];
    if (isCode(code)) return { code, message: origin.message, extensions: origin.extensions };
    // A code that is not ours is somebody else's error: masked, like every unknown one.
    if (code !== undefined || origin.originalError) return undefined;
    // One without a code, from an execution, is graphql-js telling of a value that a resolver gave: a bug of ours.
    if (phase === 'execute') return undefined;
    return { code: PHASE_CODES[phase], message: origin.message, extensions: {} };
  }
  // Arguments of a query have no union in which their refusal could stand.
  if (origin instanceof InvalidInputError) {
    return { code: 'BAD_USER_INPUT', message: origin.message, extensions: {} };
  }
  // Errors of our own parts (ForbiddenError, StreamEnded) carry a code and are written for the caller.
  const code = (origin as { code?: unknown }).code; // read by name only; compared with our list
  if (isOwnErrorClass(origin) && isCode(code)) {
    return { code, message: origin.message, extensions: { ...origin } };
  }
  if (isDatabaseAway(origin)) return { code: 'UNAVAILABLE', message: UNAVAILABLE_MESSAGE, extensions: {} };
  return undefined;
}

const PHASE_CODES = {
  parse: 'GRAPHQL_PARSE_FAILED',
  validate: 'GRAPHQL_VALIDATION_FAILED',
} as const;

const OWN_ERROR_CLASSES = new Set(['ForbiddenError', 'StreamEnded']);
function isOwnErrorClass(error: Error): boolean {
  return OWN_ERROR_CLASSES.has(error.name);
}

function isCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && ERROR_CODES.some((known) => known === code);
}

function allowed(error: PublicError): Record<string, unknown> {
  const names = EXTENSIONS[error.code].filter((name) => error.extensions[name] !== undefined);
  return Object.fromEntries(names.map((name) => [name, error.extensions[name]]));
}

/**
 * Connection and pool failures: socket errors of Node, class 08 and 57P of PostgreSQL, 53300 (too many connections),
 * and Prisma's codes for the same. Looked for along the chain of causes.
 */
const AWAY =
  /^(ECONN(REFUSED|RESET|ABORTED)|EPIPE|ENOTFOUND|ETIMEDOUT|08...|57P0.|53300|P1001|P1002|P1008|P1017|P2024|P2028)$/;
/** What the driver and its pool say without a code. */
const AWAY_MESSAGES = /timeout exceeded when trying to connect|Connection terminated|is not queryable/;
function isDatabaseAway(error: unknown): boolean {
  for (
    let cause: unknown = error, depth = 0;
    cause instanceof Error && depth < 8;
    cause = cause.cause, depth++
  ) {
    const { code } = cause as { code?: unknown }; // drivers put their code here, under no common type
    if (typeof code === 'string' && AWAY.test(code)) return true;
    if (AWAY_MESSAGES.test(cause.message)) return true;
  }
  return false;
}
