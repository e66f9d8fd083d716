import { describe, expect, it } from 'vitest';

import { bound, UnknownOutput } from '../../../src/adapters/bindings.js';
import { levelsOf } from '../../../src/adapters/levels.js';
import { below } from '../../../src/adapters/process/layout.js';
import { redactor } from '../../../src/adapters/process/redact.js';
import { binding } from '../../support/programs.js';

describe('levelsOf', () => {
  const node = (name: string, ...requires: string[]) => ({ name, requires });
  const names = (levels: readonly (readonly { name: string }[])[]) =>
    levels.map((level) => level.map(({ name }) => name));

  it('puts each resource after everything that it requires', () => {
    const all = [node('d', 'b', 'c'), node('b', 'a'), node('c'), node('a', 'elsewhere')];
    expect(names(levelsOf(all))).toEqual([['c', 'a'], ['b'], ['d']]);
  });

  it('ends on a circle, which releases do not have', () => {
    expect(names(levelsOf([node('a', 'b'), node('b', 'a'), node('c')]))).toEqual([['c'], ['a', 'b']]);
  });
});

describe('bound', () => {
  const outputs = new Map([['db', { url: 'pg://x', toString2: '' }]]);

  it('replaces every binding once, and what it put in never again', () => {
    const sneaky = new Map([['db', { url: binding('db', 'url') }]]);
    expect(bound(`${binding('db', 'url')} ${binding('db', 'url')}`, outputs)).toBe('pg://x pg://x');
    expect(bound(binding('db', 'url'), sneaky)).toBe(binding('db', 'url'));
  });

  it('leaves other dollars as they are', () => {
    expect(bound(`$HOME $$ $1 $${binding('db', 'url')}`, outputs)).toBe(
      `$HOME $$ $1 ${binding('db', 'url')}`,
    );
  });

  it.each(['password', 'constructor', 'toString', '__proto__'])(
    'throws where there is no output %s',
    (output) => {
      expect(() => bound(binding('db', output), outputs)).toThrow(UnknownOutput);
    },
  );
});

describe('below', () => {
  it.each(['..', '.', '', 'a/b', '/etc', 'a\0', 'x'.repeat(200), '-rf'])(
    'refuses %j as the name of a file',
    (name) => {
      expect(() => below('/base', name)).toThrow('not a name for a file');
    },
  );
});

describe('redactor', () => {
  it('blanks the longer of two values first, and leaves values that stand in any text', () => {
    const env = [
      { name: 'A', value: 'pass', secret: true },
      { name: 'B', value: 'password', secret: true },
      { name: 'C', value: 'on', secret: true },
    ];
    expect(redactor(env)('password on, pass')).toBe('*** on, ***');
  });
});
