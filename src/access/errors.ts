/**
 * Refusals of access that are no result of an operation but end it: the graph gives them as operation errors with
 * `extensions.code`.
 */

/** The roles of the caller do not suffice. Thrown by commands that find out midway; becomes FORBIDDEN. */
export class ForbiddenError extends Error {
  override readonly name = 'ForbiddenError';
  readonly code = 'FORBIDDEN';
}

/**
 * Why a credential makes nobody; the code is UNAUTHENTICATED for each.
 * - `missing`: none was sent, and this server asks for one
 * - `unknown`: malformed, or no token of ours (or one whose row is gone)
 * - `expired`: was good; a renewed credential will do. Sockets close with 4440
 * - `revoked`: will never be good again. Sockets close with 4401
 */
export type AuthFailureReason = 'missing' | 'unknown' | 'expired' | 'revoked';

const MESSAGES: Readonly<Record<AuthFailureReason, string>> = {
  missing: 'This server asks for a token: send `Authorization: Bearer slp_…`.',
  unknown: 'The token is not one of this server.',
  expired: 'The token has expired.',
  revoked: 'The token was revoked.',
};

/** A value, not an exception: `fromBearer` returns it. Its message never repeats the credential. */
export class AuthFailure {
  readonly code = 'UNAUTHENTICATED';
  readonly reason: AuthFailureReason;
  readonly message: string;

  constructor(reason: AuthFailureReason) {
    this.reason = reason;
    this.message = MESSAGES[reason];
  }
}
