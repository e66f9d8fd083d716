import type { GraphQLError, GraphQLFormattedError } from 'graphql';

import type { AuthFailureReason } from '../access/errors.js';
import { operationError, type ErrorCode } from '../graph/errors.js';

/**
 * Refusals of whole operations: GraphQL errors with a code, so that every transport says the same. None tells the
 * value of a limit.
 */
export const refusals = {
  tooComplex: () =>
    operationError('TOO_COMPLEX', 'The document is too complex. Split it, or ask for less at once.'),
  tooLong: () =>
    operationError('TOO_COMPLEX', 'The document is too long. Split it, or ask for less at once.'),
  tooLarge: () => operationError('TOO_COMPLEX', 'The request is too large.'),
  badRequest: (message: string) => operationError('GRAPHQL_PARSE_FAILED', message),
  nullVariable: (name: string) =>
    operationError(
      'BAD_USER_INPUT',
      `The variable \`$${name}\` must not be null: it stands where null may not.`,
    ),
  /** `reason` tells a client whether a renewed credential helps. */
  unauthenticated: (message: string, reason: AuthFailureReason | 'changed') =>
    operationError('UNAUTHENTICATED', message, { reason }),
  forbidden: (message: string) => operationError('FORBIDDEN', message),
  tooMany: (what: string) =>
    operationError('RATE_LIMITED', `Too many ${what}. Close some, or try again later.`),
  overloaded: () =>
    operationError('UNAVAILABLE', 'The server is full. Try again shortly.', { retryAfterSeconds: 5 }),
  draining: () =>
    operationError('UNAVAILABLE', 'The server is about to stop. Try again: another one will answer.'),
  internal: (requestId: string) =>
    operationError(
      'INTERNAL',
      'Something went wrong on our side. The request id finds it in the server log.',
      { requestId },
    ),
  tooSlow: (kind: string) =>
    operationError(
      'UNAVAILABLE',
      kind === 'mutation'
        ? 'The operation took too long. Whether it took effect is not known: read the object before you repeat it.'
        : 'The operation took too long. Ask for less at once, or try again later.',
    ),
} as const;

/** The code of an error, or INTERNAL for one without. */
export function codeOf(error: GraphQLError | GraphQLFormattedError | undefined): string {
  const code = error?.extensions?.['code'];
  return typeof code === 'string' ? code : 'INTERNAL';
}

const STATUS: Readonly<Record<ErrorCode, number>> = {
  GRAPHQL_PARSE_FAILED: 400,
  GRAPHQL_VALIDATION_FAILED: 400,
  BAD_USER_INPUT: 400,
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  BAD_PAGE_CURSOR: 400,
  CURSOR_EXPIRED: 410,
  CURSOR_INVALID: 400,
  SNAPSHOT_TOO_LARGE: 400,
  SLOW_CONSUMER: 503,
  RATE_LIMITED: 429,
  TOO_COMPLEX: 400,
  UNAVAILABLE: 503,
  INTERNAL: 500,
};

/** The HTTP status of an answer without data, for clients that asked for `application/graphql-response+json`. */
export function statusOf(code: string): number {
  return (STATUS as Readonly<Record<string, number>>)[code] ?? 500; // any text may be asked for; only ours are known
}
