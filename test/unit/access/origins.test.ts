import { describe, expect, it } from 'vitest';

import { originPolicy } from '../../../src/access/origins.js';

const none = { allowedOrigins: [], allowedHosts: [] };
const port = (): number => 4000;

describe('on loopback', () => {
  const policy = originPolicy({ loopback: true, ...none }, port);

  it.each([
    '127.0.0.1:4000',
    'localhost:4000',
    'LOCALHOST:4000',
    'localhost.:4000',
    '[::1]:4000',
    '127.0.0.9:4000',
  ])('answers to %j', (host) => {
    expect(policy.hostAllowed(host)).toBe(true);
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
    expect(policy.hostAllowed(host)).toBe(false);
  });

  it('takes port 80 for a name without one', () => {
    expect(originPolicy({ loopback: true, ...none }, () => 80).hostAllowed('localhost')).toBe(true);
  });

  it('asks for the port each time, since the system may choose it later', () => {
    let actual = 0;
    const later = originPolicy({ loopback: true, ...none }, () => actual);
    expect(later.hostAllowed('localhost:50123')).toBe(false);
    actual = 50_123;
    expect(later.hostAllowed('localhost:50123')).toBe(true);
  });

  it.each([
    [undefined, 'localhost:4000', 'absent'],
    ['http://localhost:4000', 'localhost:4000', 'same'],
    ['http://127.0.0.1:4000', '127.0.0.1:4000', 'same'],
    ['http://[::1]:4000', '[::1]:4000', 'same'],
    ['http://localhost:3000', 'localhost:4000', 'refused'],
    ['http://127.0.0.1:4000', 'localhost:4000', 'refused'],
    ['https://evil.example', 'localhost:4000', 'refused'],
    // Its name resolves to us, so for the browser it is the same origin.
    ['http://evil.example:4000', 'evil.example:4000', 'refused'],
    ['null', 'localhost:4000', 'refused'],
    ['', 'localhost:4000', 'refused'],
    ['file://', 'localhost:4000', 'refused'],
    ['http://localhost:4000.evil.example', 'localhost:4000', 'refused'],
    ['http://localhost:4000@evil.example', 'localhost:4000', 'refused'],
  ])('takes origin %j at host %j for %s', (origin, host, kind) => {
    expect(policy.originOf(origin, host)).toBe(kind);
  });

  it('answers to further names where they are allowed', () => {
    const behindProxy = originPolicy(
      { loopback: true, allowedOrigins: [], allowedHosts: ['ship.test', 'exact.test:8443'] },
      port,
    );
    expect(behindProxy.hostAllowed('ship.test')).toBe(true);
    expect(behindProxy.hostAllowed('Ship.test:8443')).toBe(true);
    expect(behindProxy.hostAllowed('exact.test:8443')).toBe(true);
    expect(behindProxy.hostAllowed('exact.test')).toBe(false);
    expect(behindProxy.hostAllowed('localhost:4000')).toBe(true);
    expect(behindProxy.originOf('https://ship.test', 'ship.test')).toBe('same');
  });
});

describe('elsewhere', () => {
  const open = originPolicy({ loopback: false, ...none }, port);
  const named = originPolicy(
    { loopback: false, allowedOrigins: ['https://console.example.com'], allowedHosts: ['api.example.com'] },
    port,
  );

  it('answers to any name, unless names are given', () => {
    expect(open.hostAllowed('anything.example')).toBe(true);
    expect(named.hostAllowed('anything.example')).toBe(false);
    expect(named.hostAllowed('localhost:4000')).toBe(false);
    expect(named.hostAllowed('api.example.com:443')).toBe(true);
  });

  it('takes its own pages, behind a proxy that ends TLS too, and the listed origins', () => {
    expect(open.originOf('https://slipway.example', 'slipway.example')).toBe('same');
    expect(open.originOf('https://slipway.example', 'slipway.example:443')).toBe('same');
    expect(open.originOf('http://slipway.example:4000', 'slipway.example:4000')).toBe('same');
    expect(open.originOf('https://other.example', 'slipway.example')).toBe('refused');
    expect(named.originOf('https://console.example.com', 'api.example.com')).toBe('allowed');
    expect(named.originOf('https://console.example.com:8443', 'api.example.com')).toBe('refused');
    expect(named.originOf('http://console.example.com', 'api.example.com')).toBe('refused');
    expect(named.originOf('https://console.example.com.evil.example', 'api.example.com')).toBe('refused');
  });

  it('echoes exactly the origin that is allowed, and always varies by it', () => {
    expect(named.corsHeaders('https://console.example.com', 'api.example.com')).toEqual({
      Vary: 'Origin',
      'Access-Control-Allow-Origin': 'https://console.example.com',
      'Access-Control-Expose-Headers': 'X-Request-Id',
    });
    for (const origin of [undefined, 'https://evil.example', 'null', 'https://api.example.com']) {
      expect(named.corsHeaders(origin, 'api.example.com')).toEqual({ Vary: 'Origin' });
    }
  });

  it('answers a preflight of an allowed origin, and of nobody else', () => {
    const headers = named.preflightHeaders('https://console.example.com', 'api.example.com');
    expect(headers).toMatchObject({
      Vary: 'Origin',
      'Access-Control-Allow-Origin': 'https://console.example.com',
      'Access-Control-Allow-Methods': 'GET, POST, OPTIONS',
      'Access-Control-Allow-Headers': expect.stringMatching(/Authorization.*Last-Event-ID/),
    });
    expect(headers).not.toHaveProperty('Access-Control-Allow-Credentials');
    for (const origin of [undefined, 'https://evil.example', 'null']) {
      expect(named.preflightHeaders(origin, 'api.example.com')).toBeUndefined();
    }
  });
});
