import { describe, expect, it } from 'vitest';
import { createLogger } from '../../../src/cli/serve/logger.js';

function logged(log: (logger: ReturnType<typeof createLogger>) => void, format: 'json' | 'pretty' = 'json') {
  let written = '';
  log(createLogger({ level: 'trace', format, write: (line) => (written += line) }));
  return written;
}

/** As `pg` throws them. */
const databaseError = () =>
  Object.assign(new Error('duplicate key value violates unique constraint "token_name"'), {
    code: '23505',
    detail: 'Key (name)=(of a customer) already exists.',
    where: 'SQL statement "of a customer"',
  });

describe('createLogger', () => {
  it('writes one JSON object a line, with the time in UTC', () => {
    const line = logged((log) => log.info({ requestId: 'r' }, 'done'));
    expect(line.endsWith('\n')).toBe(true);
    expect(JSON.parse(line)).toEqual({
      level: 30,
      time: expect.stringMatching(/^\d{4}-.*Z$/),
      requestId: 'r',
      msg: 'done',
    });
  });

  it('keeps an error with its causes, but not the rows that they repeat', () => {
    const error = new Error('A read failed', { cause: databaseError() });
    for (const err of [error, databaseError()]) {
      const line = logged((log) => log.error({ err }, 'failed'));
      expect(line).toContain('23505');
      expect(line).not.toContain('of a customer');
    }
  });

  it.each(['authorization', 'token', 'password', 'secret'])('never shows a field named %s', (name) => {
    const line = logged((log) =>
      log.info({ [name]: 'x-y-z', a: { [name]: 'x-y-z', b: { [name]: 'x-y-z' } } }, ''),
    );
    expect(line).not.toContain('x-y-z');
  });

  it('writes text for a person, with the stack of an error below it', () => {
    const text = logged((log) => log.warn({ err: databaseError(), pool: 'read' }, 'broken'), 'pretty');
    expect(text).toMatch(/^\d\d:\d\d:\d\d WARN broken pool=read\n +Error: duplicate key/);
    expect(text).not.toContain('of a customer');
  });
});
