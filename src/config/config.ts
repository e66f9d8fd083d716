/**
 * The effective configuration, from the environment only. This folder is the only reader of `process.env`: everything
 * else takes the part of `Config` that it needs.
 */
import { resolve } from 'node:path';
import { StartError } from '../kernel/start-error.js';
import { nearestName } from './nearest-name.js';
import { settingNames, settings, type SettingName, type Settings } from './settings.js';
import { settingFacts } from './values.js';

export type Environment = Readonly<Record<string, string | undefined>>;

export type Config = ReturnType<typeof group>;

/** One problem a line, each with the variable, what it must be and its default. */
export class ConfigError extends StartError {
  override readonly name = 'ConfigError';
}

export function loadConfig(environment: Environment = process.env): Config {
  const problems = unknownNames(environment);
  const given = Object.fromEntries(settingNames.map((name) => [name, environment[name]?.trim()]));
  const parsed = settings.safeParse(given);
  if (!parsed.success) {
    // Every issue lies on one setting: the schema is flat, and its keys come from itself.
    problems.push(...parsed.error.issues.map((issue) => badValue(issue.path[0] as SettingName, given)));
    throw new ConfigError(problems.join('\n'));
  }
  problems.push(...contradictions(parsed.data));
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  return group(parsed.data);
}

function unknownNames(environment: Environment): string[] {
  return Object.keys(environment)
    .filter((name) => name.startsWith('SLIPWAY_') && !settingNames.some((known) => known === name))
    .map((name) => {
      const nearest = nearestName(name, settingNames);
      return `${name} is not a setting of Slipway.${nearest === undefined ? '' : ` Did you mean ${nearest}?`}`;
    });
}

function badValue(name: SettingName, given: Environment): string {
  const facts = settingFacts.get(settings.shape[name]);
  if (facts === undefined) throw new Error(`${name} was defined without its facts`);
  const shown = facts.secret ? 'what is set is not' : `${JSON.stringify(given[name]?.slice(0, 100))} is not`;
  const unit = facts.unit === undefined ? '' : ` (${facts.unit})`;
  const fallback =
    facts.defaultText === undefined || facts.defaultText === '' ? 'not set' : facts.defaultText;
  return `${name} must be ${facts.mustBe}${unit}: ${shown}. Default: ${fallback}.`;
}

function contradictions(values: Settings): string[] {
  const problems: string[] = [];
  if (values.SLIPWAY_AUTH === 'none' && !isLoopback(values.SLIPWAY_HOST)) {
    problems.push(
      `SLIPWAY_AUTH must not be \`none\` while SLIPWAY_HOST is ${values.SLIPWAY_HOST}: anyone on the network would be an administrator. Use \`tokens\`, or SLIPWAY_HOST=127.0.0.1. Default: auto.`,
    );
  }
  if (values.SLIPWAY_READ_DATABASE_URL !== undefined && values.DATABASE_URL === undefined) {
    problems.push(
      'SLIPWAY_READ_DATABASE_URL must only be set together with DATABASE_URL, and name the same database. Default: not set.',
    );
  }
  if (values.SLIPWAY_HEARTBEAT_INTERVAL_SECONDS >= values.SLIPWAY_HEARTBEAT_TIMEOUT_SECONDS) {
    problems.push(
      `SLIPWAY_HEARTBEAT_TIMEOUT_SECONDS must be more than SLIPWAY_HEARTBEAT_INTERVAL_SECONDS (${values.SLIPWAY_HEARTBEAT_INTERVAL_SECONDS}): agents would go offline between two beats. Default: 60.`,
    );
  }
  if (values.SLIPWAY_CHANGE_DAYS * 24 < values.SLIPWAY_CHANGE_PAYLOAD_HOURS) {
    problems.push(
      `SLIPWAY_CHANGE_DAYS must be at least SLIPWAY_CHANGE_PAYLOAD_HOURS (${values.SLIPWAY_CHANGE_PAYLOAD_HOURS} hours): the content of a change goes with its record. Default: 400.`,
    );
  }
  return problems;
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}

function group(values: Settings) {
  return {
    server: {
      host: values.SLIPWAY_HOST,
      port: values.SLIPWAY_PORT,
      loopback: isLoopback(values.SLIPWAY_HOST),
      dataDir: resolve(values.SLIPWAY_DATA_DIR),
    },
    database: {
      /** Undefined: the embedded PostgreSQL. */
      url: values.DATABASE_URL,
      readUrl: values.SLIPWAY_READ_DATABASE_URL,
      poolSize: values.SLIPWAY_POOL_SIZE,
    },
    access: {
      mode: values.SLIPWAY_AUTH,
      bootstrapToken: values.SLIPWAY_BOOTSTRAP_TOKEN,
      allowedOrigins: values.SLIPWAY_ALLOWED_ORIGINS,
      allowedHosts: values.SLIPWAY_ALLOWED_HOSTS,
      /** A name beyond this machine leads here: a proxy hands on what others send. */
      proxied: values.SLIPWAY_ALLOWED_HOSTS.some((host) => !isLoopback(host.replace(/:\d+$/, ''))),
    },
    limits: {
      maxBodyBytes: values.SLIPWAY_MAX_BODY_BYTES,
      maxSubscriptionsPerSocket: values.SLIPWAY_MAX_SUBSCRIPTIONS_PER_SOCKET,
      maxSocketsPerPrincipal: values.SLIPWAY_MAX_SOCKETS_PER_PRINCIPAL,
      maxSocketsLoopback: values.SLIPWAY_MAX_SOCKETS_LOOPBACK,
      maxSubscriptions: values.SLIPWAY_MAX_SUBSCRIPTIONS,
      socketMessagesPerSecond: values.SLIPWAY_SOCKET_MESSAGES_PER_SECOND,
      socketMessageBurst: values.SLIPWAY_SOCKET_MESSAGE_BURST,
      socketInitTimeoutSeconds: values.SLIPWAY_SOCKET_INIT_TIMEOUT_SECONDS,
      socketPingSeconds: values.SLIPWAY_SOCKET_PING_SECONDS,
      socketPongTimeoutSeconds: values.SLIPWAY_SOCKET_PONG_TIMEOUT_SECONDS,
      socketMaxAgeMinutes: values.SLIPWAY_SOCKET_MAX_AGE_MINUTES,
      webSocketMutations: values.SLIPWAY_WS_MUTATIONS,
      introspection: values.SLIPWAY_INTROSPECTION,
      graphiql: values.SLIPWAY_GRAPHIQL,
      getQueries: values.SLIPWAY_GET_QUERIES,
      maxDepth: values.SLIPWAY_MAX_DEPTH,
      maxAliases: values.SLIPWAY_MAX_ALIASES,
      maxTokens: values.SLIPWAY_MAX_TOKENS,
      maxDirectives: values.SLIPWAY_MAX_DIRECTIVES,
      maxComplexity: values.SLIPWAY_MAX_COMPLEXITY,
      requestTimeoutSeconds: values.SLIPWAY_REQUEST_TIMEOUT_SECONDS,
    },
    documents: {
      /** Absolute; undefined: any valid document may run. */
      file:
        values.SLIPWAY_TRUSTED_DOCUMENTS === undefined
          ? undefined
          : resolve(values.SLIPWAY_TRUSTED_DOCUMENTS),
      mode: values.SLIPWAY_TRUSTED_DOCUMENTS_MODE,
    },
    drain: {
      noticeSeconds: values.SLIPWAY_DRAIN_NOTICE_SECONDS,
      spreadSeconds: values.SLIPWAY_DRAIN_SPREAD_SECONDS,
    },
    agents: {
      heartbeatIntervalSeconds: values.SLIPWAY_HEARTBEAT_INTERVAL_SECONDS,
      heartbeatTimeoutSeconds: values.SLIPWAY_HEARTBEAT_TIMEOUT_SECONDS,
      sweepSeconds: values.SLIPWAY_AGENT_SWEEP_SECONDS,
    },
    retention: {
      changePayloadHours: values.SLIPWAY_CHANGE_PAYLOAD_HOURS,
      changeDays: values.SLIPWAY_CHANGE_DAYS,
    },
    log: { level: values.SLIPWAY_LOG_LEVEL, format: values.SLIPWAY_LOG_FORMAT },
    client: { url: values.SLIPWAY_URL, token: values.SLIPWAY_TOKEN },
  } as const;
}
