import { describe, expect, it } from 'vitest';
import { judge } from '../../../src/client/verdict.js';

describe('judge', () => {
  it.each([
    [1000, 'again'],
    [1001, 'again'],
    [1005, 'again'],
    [1006, 'again'],
    [1008, 'final'],
    [1009, 'final'],
    [1011, 'again'],
    [1012, 'again'],
    [1013, 'again'],
    [3000, 'again'],
    [4400, 'final'],
    [4401, 'final'],
    [4403, 'final'],
    [4406, 'final'],
    [4408, 'again'],
    [4440, 'again'],
    [4441, 'again'],
    [4442, 'final'],
    [4499, 'again'],
    [4500, 'again'],
    [4999, 'final'],
  ] as const)('takes the close code %i as %s', (code, verdict) => {
    expect(judge({ type: 'closed', code, reason: '' })).toMatchObject({ verdict, closeCode: code });
  });

  it('takes expired credentials whose rights changed as a reason for a new snapshot', () => {
    expect(judge({ type: 'closed', code: 4440, reason: 'access changed' }).verdict).toBe('fresh');
  });

  it.each([
    ['SLOW_CONSUMER', 'again'],
    ['UNAVAILABLE', 'again'],
    ['RATE_LIMITED', 'again'],
    ['CURSOR_EXPIRED', 'expired'],
    ['CURSOR_INVALID', 'final'],
    ['UNAUTHENTICATED', 'final'],
    ['FORBIDDEN', 'final'],
    ['TOO_COMPLEX', 'final'],
    ['INTERNAL', 'final'],
    ['SOMETHING_NEW', 'final'],
  ] as const)('takes the operation error %s as %s', (code, verdict) => {
    const errors = [{ message: 'told', extensions: { code, requestId: 'req-1' } }];
    expect(judge({ type: 'errors', errors })).toMatchObject({
      verdict,
      code,
      message: 'told',
      requestId: 'req-1',
    });
  });

  it.each([
    [400, 'final'],
    [401, 'final'],
    [404, 'final'],
    [408, 'again'],
    [429, 'again'],
    [500, 'again'],
    [502, 'again'],
    [503, 'again'],
  ] as const)('takes HTTP status %i without a GraphQL error as %s', (status, verdict) => {
    expect(judge({ type: 'refused', status, errors: [] }).verdict).toBe(verdict);
  });

  it.each([
    ['expired', 'again'],
    ['changed', 'fresh'],
    ['revoked', 'final'],
    [undefined, 'final'],
  ] as const)('takes UNAUTHENTICATED because of %s as %s', (reason, verdict) => {
    const errors = [{ message: 'no', extensions: { code: 'UNAUTHENTICATED', reason } }];
    expect(judge({ type: 'errors', errors }).verdict).toBe(verdict);
  });

  it('believes the code of a refusal more than its status', () => {
    const errors = [{ message: 'too old', extensions: { code: 'CURSOR_EXPIRED' } }];
    expect(judge({ type: 'refused', status: 400, errors }).verdict).toBe('expired');
  });

  it('comes back after a connection that broke', () => {
    const cause = new Error('reset');
    expect(judge({ type: 'unreachable', cause })).toMatchObject({ verdict: 'again', code: 'NETWORK', cause });
  });
});
