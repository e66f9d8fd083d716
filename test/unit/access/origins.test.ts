import { describe, expect, it } from 'vitest';

import { originPolicy, type OriginSettings } from '../../../src/access/origins.js';

const kinds = (settings: Partial<OriginSettings>, port = () => 4000) => {
  const policy = originPolicy({ loopback: true, allowedOrigins: [], allowedHosts: [], ...settings }, port);
  return {
    policy,
    of(host: string | undefined, origin?: string): 'taken' | 'foreign name' | 'foreign page' {
      const refusal = policy.refusal({ host, origin });
      if (refusal === undefined) return 'taken';
      return refusal.includes('SLIPWAY_ALLOWED_HOSTS') ? 'foreign name' : 'foreign page';
    },
  };
};

describe('on loopback', () => {
  const here = kinds({});

  it.each([
    '127.0.0.1:4000',
    'localhost:4000',
    'LOCALHOST:4000',
    'localhost.:4000',
    '[::1]:4000',
    '127.0.0.9:4000',
  ])('answers to %j', (host) => {
    expect(here.of(host)).toBe('taken');
  });

  it.each([
    undefined,
    '',
    'localhost',
    'localhost:4001',
    'evil.example:4000',
    'localhost.evil.example:4000',
    '127.0.0.1.evil.example:4000',
    'evil@localhost:4000',
    'localhost:4000@evil.example',
    'localhost:4000/x',
    '10.0.0.1:4000',
    '0.0.0.0:4000',
    '[::1]:4000x',
    'localhost:4000, evil.example',
  ])('does not answer to %j', (host) => {
    expect(here.of(host)).toBe('foreign name');
  });

  it('takes port 80 for a name without one', () => {
    expect(kinds({}, () => 80).of('localhost')).toBe('taken');
  });

  it('asks for the port each time, since the system may choose it later', () => {
    let actual = 0;
    const later = kinds({}, () => actual);
    expect(later.of('localhost:50123')).toBe('foreign name');
    actual = 50_123;
    expect(later.of('localhost:50123')).toBe('taken');
  });

  it.each([
    [undefined, 'localhost:4000', 'taken'],
    ['http://localhost:4000', 'localhost:4000', 'taken'],
    ['http://127.0.0.1:4000', '127.0.0.1:4000', 'taken'],
    ['http://[::1]:4000', '[::1]:4000', 'taken'],
    ['http://localhost:3000', 'localhost:4000', 'foreign page'],
    ['http://127.0.0.1:4000', 'localhost:4000', 'foreign page'],
    ['https://evil.example', 'localhost:4000', 'foreign page'],
    // Its name resolves to us, so for the browser it is the same origin.
    ['http://evil.example:4000', 'evil.example:4000', 'foreign name'],
    ['null', 'localhost:4000', 'foreign page'],
    ['', 'localhost:4000', 'foreign page'],
    ['file://', 'localhost:4000', 'foreign page'],
    ['http://localhost:4000.evil.example', 'localhost:4000', 'foreign page'],
    ['http://localhost:4000@evil.example', 'localhost:4000', 'foreign page'],
  ])('takes a request with origin %j at host %j as %s', (origin, host, kind) => {
    expect(here.of(host, origin)).toBe(kind);
  });

  it('answers to further names where they are allowed', () => {
    const proxied = kinds({ allowedHosts: ['ship.test', 'exact.test:8443'] });
    expect(proxied.of('ship.test')).toBe('taken');
    expect(proxied.of('Ship.test:8443')).toBe('taken');
    expect(proxied.of('exact.test:8443')).toBe('taken');
    expect(proxied.of('exact.test')).toBe('foreign name');
    expect(proxied.of('localhost:4000')).toBe('taken');
    expect(proxied.of('ship.test', 'https://ship.test')).toBe('taken');
  });
});

describe('elsewhere', () => {
  const open = kinds({ loopback: false });
  const named = kinds({
    loopback: false,
    allowedOrigins: ['https://console.example.com'],
    allowedHosts: ['api.example.com'],
  });

  it('answers to any name, unless names are given', () => {
    expect(open.of('anything.example')).toBe('taken');
    expect(named.of('anything.example')).toBe('foreign name');
    expect(named.of('localhost:4000')).toBe('foreign name');
    expect(named.of('api.example.com:443')).toBe('taken');
  });

  it('takes its own pages, behind a proxy that ends TLS too, and those of listed origins', () => {
    expect(open.of('slipway.example', 'https://slipway.example')).toBe('taken');
    expect(open.of('slipway.example:443', 'https://slipway.example')).toBe('taken');
    expect(open.of('slipway.example:4000', 'http://slipway.example:4000')).toBe('taken');
    expect(open.of('slipway.example', 'https://other.example')).toBe('foreign page');
    expect(named.of('api.example.com', 'https://console.example.com')).toBe('taken');
    expect(named.of('api.example.com', 'https://console.example.com:8443')).toBe('foreign page');
    expect(named.of('api.example.com', 'http://console.example.com')).toBe('foreign page');
    expect(named.of('api.example.com', 'https://console.example.com.evil.example')).toBe('foreign page');
    // A listed origin opens no further name.
    expect(named.of('evil.example', 'https://console.example.com')).toBe('foreign name');
  });

  it('has CORS headers for listed origins alone', () => {
    expect(named.policy.crossOrigin('https://console.example.com')).toBe(true);
    for (const origin of ['https://api.example.com', 'https://evil.example', 'null', '*', '']) {
      expect(named.policy.crossOrigin(origin)).toBe(false);
    }
  });
});
