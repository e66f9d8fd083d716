import { describe, expect, it } from 'vitest';

import { loggableError } from '../../../src/kernel/loggable-error.js';

describe('loggableError', () => {
  it.each([
    [
      'connect to postgresql://owner:hunter2@10.1.2.3:5432/slipway failed',
      'connect to postgresql://[redacted] failed',
    ],
    ['proxy http://user:pw@proxy:8080 refused', 'proxy http://[redacted] refused'],
    ['token slp_0123456789abcdef is unknown', 'token slp_[redacted] is unknown'],
    ['header Bearer abc.def', 'header Bearer [redacted]'],
    ['password=hunter2 in options', 'password=[redacted] in options'],
    ['got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln', 'got [redacted token]'],
    ["failed: SELECT hash FROM token WHERE id = 'x'", 'failed: [redacted statement]'],
    ["insert into token values ('x')", '[redacted statement]'],
    [
      'duplicate key value violates unique constraint "runtime_name"',
      'duplicate key value violates unique constraint "runtime_name"',
    ],
  ])('cleans %s', (message, expected) => {
    expect(loggableError(new Error(message)).message).toBe(expected);
  });

  it('takes nothing that a driver hangs on its errors', () => {
    const error = Object.assign(new Error('duplicate key'), {
      code: '23505',
      detail: 'Key (hash)=(abc) already exists.',
      parameters: ['abc'],
      query: 'insert',
    });
    expect(Object.keys(loggableError(error)).sort()).toEqual(['code', 'message', 'stack', 'type']);
  });

  it('shows frames without the message and without where the package lies', () => {
    const { stack } = loggableError(new Error('postgresql://a:b@c/d'));
    expect(stack).toMatch(/test\/unit\/kernel\/loggable-error\.test\.ts:\d+/);
    expect(stack).not.toContain(process.cwd());
    expect(stack).not.toContain('postgresql');
  });

  it('follows causes and members, but not for ever', () => {
    const circle = new Error('outer');
    circle.cause = circle;
    let depth = 0;
    for (let at: unknown = loggableError(circle); at !== undefined; at = (at as { cause?: unknown }).cause) {
      depth += 1;
    } // as the interface says
    expect(depth).toBe(6);
    expect(loggableError(new AggregateError([new Error('slp_secret')], 'all')).errors).toMatchObject([
      { message: 'slp_[redacted]' },
    ]);
  });

  it('keeps of a message of Prisma the line that says what is wrong, and none of the code around it', () => {
    const error = new Error(
      '\nInvalid `prisma.token.findMany()` invocation in\n/srv/slipway/src/store/x.ts:12:3\n\n  11 code\n→ 12   more\n\nThe column does not exist.\n',
    );
    error.name = 'PrismaClientKnownRequestError';
    expect(loggableError(error).message).toBe('The column does not exist.');
  });

  it.each([
    ['text slp_x', { type: 'string', message: 'text slp_[redacted]' }],
    [null, { message: 'a thrown null' }],
    [{ password: 'x' }, { message: 'a thrown object' }],
  ])('takes %j, thrown instead of an error', (thrown, expected) => {
    expect(loggableError(thrown)).toMatchObject(expected);
  });
});
