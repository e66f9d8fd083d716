import { GraphQLError } from 'graphql';
import { describe, expect, it } from 'vitest';

import { ForbiddenError } from '../../../src/access/errors.js';
import { StreamEnded } from '../../../src/changes/feed.js';
import { maskError, operationError } from '../../../src/graph/errors.js';

const masked = (error: unknown, phase: 'parse' | 'validate' | 'execute' = 'execute') =>
  maskError(error, 'req-1', phase);
const located = (cause: Error) =>
  new GraphQLError('wrapped', { path: ['deployment', 'runtime'], originalError: cause });

describe('maskError', () => {
  it('lets our codes through with their message and their allow-listed extensions alone', () => {
    const { formatted } = masked(
      operationError('TOO_COMPLEX', 'Ask for less.', { cost: 9, limit: 5, stack: 'x' }),
    );
    expect(formatted).toEqual({ message: 'Ask for less.', extensions: { code: 'TOO_COMPLEX', cost: 9 } });
  });

  it('names what ended a stream and where to go on', () => {
    const { formatted, cause } = masked(located(new StreamEnded('SLOW_CONSUMER', 'Too slow.', 'cursor-1')));
    expect(formatted).toEqual({
      message: 'Too slow.',
      path: ['deployment', 'runtime'],
      extensions: { code: 'SLOW_CONSUMER', cursor: 'cursor-1' },
    });
    expect(cause).toBeNull();
  });

  it('says FORBIDDEN for a refusal of access', () => {
    expect(masked(located(new ForbiddenError('Not yours.'))).formatted.extensions).toEqual({
      code: 'FORBIDDEN',
    });
  });

  it.each([
    ['a bug', new TypeError("Cannot read properties of undefined (reading 'secretValue')")],
    [
      'a database error',
      Object.assign(new Error('relation "token_secret" does not exist'), { code: '42P01' }),
    ],
    ['a thrown text', 'postgresql://user:password@host/db'],
    [
      'an error of a library with a code of its own',
      new GraphQLError('inner', { extensions: { code: 'P2002', sql: 'SELECT' } }),
    ],
    ['one that only claims our code', Object.assign(new Error('SELECT 1'), { code: 'FORBIDDEN' })],
    [
      'one that only claims our class',
      Object.assign(new Error('SELECT 1'), { name: 'StreamEnded', code: 'X' }),
    ],
  ])('hides %s and gives the request id, with the cause for the log', (_what, error) => {
    const { formatted, code, cause } = masked(
      error instanceof Error && !(error instanceof GraphQLError) ? located(error) : error,
    );
    expect(code).toBe('INTERNAL');
    expect(formatted.extensions).toEqual({ code: 'INTERNAL', requestId: 'req-1' });
    expect(formatted.message).not.toMatch(/secret|SELECT|password|inner/);
    expect(cause).toBe(error);
  });

  it.each([
    ['a refused connection', Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })],
    ['a database that shuts down', Object.assign(new Error('terminating'), { code: '57P01' })],
    ['a full pool', new Error('timeout exceeded when trying to connect')],
    [
      'Prisma’s word for it, as a cause',
      new Error('outer', { cause: Object.assign(new Error('x'), { code: 'P1001' }) }),
    ],
  ])('says UNAVAILABLE for %s, and nothing of what it said', (_what, error) => {
    const { formatted, cause } = masked(located(error));
    expect(formatted.extensions).toEqual({ code: 'UNAVAILABLE' });
    expect(formatted.message).toBe('The server cannot do this at the moment. Try again shortly.');
    expect(cause).toBe(error);
  });

  it('tells errors of the document by where they came up; from an execution they are bugs of ours', () => {
    const error = new GraphQLError('Cannot query field "x" on type "Query".');
    expect(masked(error, 'parse').code).toBe('GRAPHQL_PARSE_FAILED');
    expect(masked(error, 'validate').code).toBe('GRAPHQL_VALIDATION_FAILED');
    expect(masked(error, 'execute').code).toBe('INTERNAL');
  });
});
