import { isAbsolute, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ConfigError, loadConfig, type Environment } from '../../../src/config/config.js';
import { describeConfig } from '../../../src/config/describe-config.js';
import { settingNames, settings } from '../../../src/config/settings.js';
import { settingsTable } from '../../../src/config/settings-table.js';
import { settingFacts } from '../../../src/config/values.js';

const TOKEN = `slp_${'aB3-_'.repeat(8)}`;

function problems(environment: Environment): string[] {
  try {
    loadConfig(environment);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as ConfigError).publicMessage.split('\n'); // Just checked.
  }
  return [];
}

describe('loadConfig', () => {
  it('works with nothing set', () => {
    expect(loadConfig({ PATH: '/bin' })).toMatchObject({
      server: { host: '127.0.0.1', port: 4000, loopback: true, dataDir: resolve('.slipway') },
      database: { url: undefined, readUrl: undefined, poolSize: 10 },
      access: { mode: 'auto', bootstrapToken: undefined, allowedOrigins: [], allowedHosts: [] },
      limits: {
        maxBodyBytes: 65_536,
        maxSubscriptions: 20_000,
        webSocketMutations: false,
        introspection: true,
      },
      drain: { noticeSeconds: 3, spreadSeconds: 20 },
      agents: { heartbeatIntervalSeconds: 30, heartbeatTimeoutSeconds: 60, sweepSeconds: 10 },
      retention: { changePayloadHours: 168, changeDays: 400 },
      log: { level: 'info', format: 'auto' },
    });
  });

  it('takes an empty variable for one that is not set', () => {
    const empty = Object.fromEntries(settingNames.map((name) => [name, '']));
    expect(loadConfig(empty)).toEqual(loadConfig({}));
  });

  it('resolves the data folder', () => {
    expect(isAbsolute(loadConfig({ SLIPWAY_DATA_DIR: 'some/where' }).server.dataDir)).toBe(true);
  });

  it.each([
    [
      'SLIPWAY_POOL_SIZE',
      '1',
      'SLIPWAY_POOL_SIZE must be a whole number from 2 to 200 (sessions): "1" is not. Default: 10.',
    ],
    [
      'SLIPWAY_POOL_SIZE',
      '2.5',
      'SLIPWAY_POOL_SIZE must be a whole number from 2 to 200 (sessions): "2.5" is not. Default: 10.',
    ],
    [
      'SLIPWAY_PORT',
      '65536',
      'SLIPWAY_PORT must be a whole number from 0 to 65535: "65536" is not. Default: 4000.',
    ],
    [
      'SLIPWAY_PORT',
      '0x10',
      'SLIPWAY_PORT must be a whole number from 0 to 65535: "0x10" is not. Default: 4000.',
    ],
    [
      'SLIPWAY_DRAIN_SPREAD_SECONDS',
      '-1',
      'SLIPWAY_DRAIN_SPREAD_SECONDS must be a number from 0 to 600 (seconds): "-1" is not. Default: 20.',
    ],
    [
      'SLIPWAY_WS_MUTATIONS',
      'yes',
      'SLIPWAY_WS_MUTATIONS must be `true` or `false`: "yes" is not. Default: false.',
    ],
    [
      'SLIPWAY_LOG_FORMAT',
      'xml',
      'SLIPWAY_LOG_FORMAT must be one of `auto`, `json`, `pretty`: "xml" is not. Default: auto.',
    ],
    [
      'SLIPWAY_CHANGE_PAYLOAD_HOURS',
      '47',
      'SLIPWAY_CHANGE_PAYLOAD_HOURS must be a whole number from 48 to 87600 (hours): "47" is not. Default: 168.',
    ],
    [
      'SLIPWAY_HOST',
      'a b',
      'SLIPWAY_HOST must be a host name or an IP address: "a b" is not. Default: 127.0.0.1.',
    ],
  ])('says what %s must be when it is %s', (name, value, message) => {
    expect(problems({ [name]: value })).toEqual([message]);
  });

  it('names every problem at once', () => {
    expect(problems({ SLIPWAY_PORT: 'x', SLIPWAY_AUTH: 'y', SLIPWAY_COLOUR: 'z' })).toHaveLength(3);
  });

  it.each([
    ['SLIPWAY_PROT', ' Did you mean SLIPWAY_PORT?'],
    ['SLIPWAY_DATADIR', ' Did you mean SLIPWAY_DATA_DIR?'],
    ['SLIPWAY_COLOUR_SCHEME_OF_THE_PAGE', ''],
  ])('refuses %s, which it does not know', (name, hint) => {
    expect(problems({ [name]: '1' })).toEqual([`${name} is not a setting of Slipway.${hint}`]);
  });

  it('allows fractions of a second where tests need them', () => {
    const config = loadConfig({
      SLIPWAY_DRAIN_NOTICE_SECONDS: '0.05',
      SLIPWAY_SOCKET_INIT_TIMEOUT_SECONDS: '0.2',
      SLIPWAY_SOCKET_PING_SECONDS: '0.1',
      SLIPWAY_HEARTBEAT_TIMEOUT_SECONDS: '0.5',
      SLIPWAY_HEARTBEAT_INTERVAL_SECONDS: '0.2',
      SLIPWAY_AGENT_SWEEP_SECONDS: '0.1',
    });
    expect(config).toMatchObject({
      drain: { noticeSeconds: 0.05 },
      agents: { heartbeatTimeoutSeconds: 0.5 },
    });
  });

  it.each(['https://a.example', 'http://localhost:3000', 'https://a.example, https://b.example:8443'])(
    'allows the origins %s',
    (text) => {
      expect(loadConfig({ SLIPWAY_ALLOWED_ORIGINS: text }).access.allowedOrigins).toEqual(text.split(', '));
    },
  );

  it.each([
    '*',
    'https://*.example.com',
    'https://a.example/',
    'https://a.example/x',
    'a.example',
    'ftp://a.example',
    'https://a.example:443',
    'null',
    'https://a.example,',
  ])('refuses the origins %s', (text) => {
    expect(problems({ SLIPWAY_ALLOWED_ORIGINS: text })).toEqual([
      expect.stringContaining('without a path, a default port or a wildcard'),
    ]);
  });

  it('allows hosts as the Host header writes them', () => {
    const text = 'Slipway.example, slipway.example:8443, [::1]:4000';
    expect(loadConfig({ SLIPWAY_ALLOWED_HOSTS: text }).access.allowedHosts).toEqual(
      text.toLowerCase().split(', '),
    );
    expect(problems({ SLIPWAY_ALLOWED_HOSTS: 'https://a.example' })).toHaveLength(1);
  });

  it.each(['slp_short', `slp_${'a'.repeat(31)}`, `tok_${'a'.repeat(40)}`, `slp_${'a'.repeat(31)}/`])(
    'refuses a weak bootstrap token without showing it',
    (token) => {
      const [message] = problems({ SLIPWAY_BOOTSTRAP_TOKEN: token });
      expect(message).toContain('at least 32 letters, digits, `-` or `_`: what is set is not');
      expect(message).not.toContain(token);
    },
  );

  it('refuses a database URL without showing its password', () => {
    for (const url of ['mysql://root:hunter2@host/db', 'postgresql://user:hunter2@host', 'hunter2']) {
      const [message] = problems({ DATABASE_URL: url });
      expect(message).toContain('DATABASE_URL must be a URL `postgresql://');
      expect(message).not.toContain('hunter2');
    }
  });

  it.each([
    [{ SLIPWAY_HOST: '0.0.0.0', SLIPWAY_AUTH: 'none' }, 'anyone on the network would be an administrator'],
    [{ SLIPWAY_READ_DATABASE_URL: 'postgresql://a@b/c' }, 'only be set together with DATABASE_URL'],
    [{ SLIPWAY_HEARTBEAT_INTERVAL_SECONDS: '60' }, 'offline between two beats'],
    [{ SLIPWAY_CHANGE_DAYS: '6' }, 'must be at least SLIPWAY_CHANGE_PAYLOAD_HOURS (168 hours)'],
  ])('refuses settings that contradict each other: %o', (environment, message) => {
    expect(problems(environment)).toEqual([expect.stringContaining(message)]);
  });

  it.each([
    ['127.0.0.1', true],
    ['127.1.2.3', true],
    ['::1', true],
    ['localhost', true],
    ['0.0.0.0', false],
    ['::', false],
    ['127.example.com', false],
    ['10.0.0.1', false],
  ])('tells whether %s is loopback', (host, loopback) => {
    expect(loadConfig({ SLIPWAY_HOST: host }).server.loopback).toBe(loopback);
  });
});

describe('describeConfig', () => {
  it('shows no value of a secret setting', () => {
    const marked: Record<string, string> = {
      DATABASE_URL: 'postgresql://app:MARKER@db.example:5432/slipway?sslpassword=MARKER',
      SLIPWAY_READ_DATABASE_URL: 'postgresql://reader:MARKER@db.example/slipway',
      SLIPWAY_BOOTSTRAP_TOKEN: `slp_MARKER${'x'.repeat(40)}`,
      SLIPWAY_TOKEN: 'MARKER',
    };
    const secrets = settingNames.filter((name) => settingFacts.get(settings.shape[name])?.secret);
    expect(Object.keys(marked).sort()).toEqual(secrets.sort());
    const shown = JSON.stringify(describeConfig(loadConfig(marked)));
    expect(shown).not.toContain('MARKER');
    expect(shown).toContain('postgresql://app:***@db.example:5432/slipway?***');
  });

  it('shows everything else', () => {
    const config = loadConfig({ SLIPWAY_PORT: '1234' });
    expect(describeConfig(config)).toEqual(config);
  });
});

describe('settingsTable', () => {
  it('has a row with a description for every setting', () => {
    const table = settingsTable();
    for (const name of settingNames) {
      expect(table).toMatch(new RegExp(`^\\| \`${name}\` \\| [^|]+ \\| [^|]+ \\| [A-Z][^|]+\\. \\|$`, 'm'));
    }
    expect(table).toContain(
      '| `SLIPWAY_POOL_SIZE` | `10` | a whole number from 2 to 200 (sessions) | PostgreSQL sessions at most, in each pool. |',
    );
  });

  it('gives defaults that are themselves allowed', () => {
    expect(problems({})).toEqual([]);
    expect(loadConfig({ SLIPWAY_BOOTSTRAP_TOKEN: TOKEN }).access.bootstrapToken).toBe(TOKEN);
  });
});
