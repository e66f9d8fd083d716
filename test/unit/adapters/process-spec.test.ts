import { describe, expect, it } from 'vitest';

import { processSpecSchema, supports } from '../../../src/adapters/process/spec.js';
import type { ReleaseResource } from '../../../src/releases/index.js';
import { resource } from '../../support/adapter-driver.js';
import { binding } from '../../support/programs.js';

const job = (spec: ReleaseResource['spec'], facts: Partial<ReleaseResource> = {}) =>
  resource({ name: 'job', spec: { command: ['run'], ...spec }, ...facts });
const data = (spec: ReleaseResource['spec'], facts: Partial<ReleaseResource> = {}) =>
  resource({ name: 'data', serviceType: 'directory', lifecycle: 'FROZEN', spec, ...facts });

describe('the spec of a process', () => {
  it('has every default', () => {
    expect(processSpecSchema.parse({ command: ['run'] })).toEqual({
      command: ['run'],
      env: {},
      ports: {},
      health: { intervalSeconds: 5, timeoutSeconds: 2, startSeconds: 60, failureThreshold: 3 },
      stopSeconds: 10,
    });
  });

  it.each([
    [
      'everything',
      { cwd: '/srv', env: { A: '' }, ports: { web: 1 }, health: { tcp: { port: 65_535 } }, stopSeconds: 0 },
    ],
    ['an address', { health: { http: { url: 'https://example.com/health?deep=1', expectStatus: 204 } } }],
    ['a port and path', { health: { http: { port: 80, path: '/a%20b' } } }],
    ['a bound folder', { cwd: `${binding('data', 'path')}/inner` }, { requires: ['data'] }],
    ['an escaped binding', { command: ['run', `$${binding('not', 'mine')}`] }],
  ] as [string, ReleaseResource['spec'], Partial<ReleaseResource>?][])(
    'takes %s',
    (_what, spec, facts = {}) => {
      expect(supports(job(spec, facts))).toEqual({ ok: true });
    },
  );

  it.each([
    ['no command', { command: undefined }, 'job.spec.command'],
    ['an empty command', { command: [] }, 'must have at least the program'],
    ['an empty program', { command: [''] }, 'must begin with the name or path of a program'],
    ['an option for the shell', { command: ['-c', 'id'] }, 'must begin with the name or path of a program'],
    ['a command as text', { command: 'rm -rf /' }, 'job.spec.command'],
    ['an argument of 100 kB', { command: ['run', 'x'.repeat(100_000)] }, 'at most 16384 characters'],
    [
      'arguments of 100 kB together',
      { command: ['run', ...Array<string>(10).fill('x'.repeat(10_000))] },
      'at most 65536 bytes',
    ],
    ['too many arguments', { command: Array<string>(300).fill('x') }, 'at most 256 arguments'],
    ['NUL in an argument', { command: ['run', 'a\0b'] }, 'without NUL'],
    ['half a character', { command: ['run', '\ud800'] }, 'well-formed Unicode'],
    ['a relative folder', { cwd: 'data' }, 'must be an absolute path without `..`'],
    ['a way out of a folder', { cwd: '/srv/../etc' }, 'must be an absolute path without `..`'],
    ['NUL in the folder', { cwd: '/srv\0' }, 'without NUL'],
    ['a variable that is ours', { env: { SLIPWAY_LAUNCH: 'x' } }, 'must not set SLIPWAY_FOLDER'],
    ['a variable that is none', { env: { 'A=B': 'x' } }, 'must have names of at most 255 letters'],
    [
      'too many variables',
      { env: Object.fromEntries(Array.from({ length: 129 }, (_, at) => [`A${at}`, ''])) },
      'at most 128 variables',
    ],
    ['a port of no name', { ports: { '1 2': 80 } }, 'must have names of at most 32 letters'],
    ['port 0', { ports: { web: 0 } }, 'between 1 and 65535'],
    ['two checks', { health: { http: { port: 1 }, tcp: { port: 1 } } }, 'at most one of `http` and `tcp`'],
    ['a check of nothing', { health: { http: {} } }, 'either `url` or `port`'],
    [
      'a check of a file',
      { health: { http: { url: 'file:///etc/passwd' } } },
      'begins with http:// or https://',
    ],
    ['a path with a line in it', { health: { http: { port: 1, path: '/a\r\nHost: b' } } }, 'printable ASCII'],
    ['a stop of a day', { stopSeconds: 86_400 }, 'between 0 and 300 seconds'],
    ['a field that there is not', { shell: true }, 'job.spec.shell'],
    ['a restart policy', { restart: 'always' }, 'job.spec.restart'],
  ])('refuses %s, and says where and why', (_what, spec, message) => {
    const verdict = supports(job(spec));
    expect(verdict).toMatchObject({ ok: false, reason: 'InvalidSpec' });
    expect(verdict).toMatchObject({ message: expect.stringContaining(message) as string });
    expect(verdict).toMatchObject({ message: expect.stringMatching(/^`job\.spec/) as string });
  });

  it.each([
    ['of what is not required', binding('db', 'url'), 'which is not in the resource’s `requires`'],
    ['of no form', binding('a', 'b c'), 'which is not of the form'],
    ['without an output', '$'.concat('{db}'), 'which is not of the form'],
  ])('refuses a binding %s', (_what, text, message) => {
    const verdict = supports(job({ env: { URL: text } }));
    expect(verdict).toMatchObject({ ok: false, reason: 'InvalidBinding' });
    expect(verdict).toMatchObject({ message: expect.stringContaining(message.replace('’', "'")) as string });
  });

  it('refuses one that would outlive releases', () => {
    expect(supports(job({}, { lifecycle: 'FROZEN' }))).toMatchObject({
      ok: false,
      reason: 'InvalidLifecycle',
    });
  });
});

describe('the spec of a directory', () => {
  it.each([[{}], [{ name: 'uploads.v1' }], [{ mode: '0750' }], [{ mode: '777' }]])('takes %j', (spec) => {
    expect(supports(data(spec))).toEqual({ ok: true });
  });

  it.each([
    [{ name: '..' }],
    [{ name: '../../etc' }],
    [{ name: '/etc' }],
    [{ name: '.hidden' }],
    [{ name: 'a\0' }],
    [{ name: 'x'.repeat(64) }],
    [{ mode: '0077' }],
    [{ mode: '4777' }],
    [{ mode: 448 }],
    [{ path: '/etc' }],
  ])('refuses %j', (spec) => {
    expect(supports(data(spec))).toMatchObject({ ok: false, reason: 'InvalidSpec' });
  });

  it('refuses one that would go with a release', () => {
    expect(supports(data({}, { lifecycle: 'LIVE' }))).toMatchObject({
      ok: false,
      reason: 'InvalidLifecycle',
    });
  });
});
