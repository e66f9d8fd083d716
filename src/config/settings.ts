/** Every environment variable that Slipway reads, and nothing else: the README's table is made from this. */
import { z } from 'zod';
import {
  address,
  amount,
  file,
  flag,
  folder,
  hostHeaders,
  httpUrl,
  oneOf,
  origins,
  postgresUrl,
  secret,
  whole,
} from './values.js';

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

export const settings = z.object({
  SLIPWAY_HOST: address({
    default: '127.0.0.1',
    description: 'Address to listen on. Anything but loopback needs access control.',
  }),
  SLIPWAY_PORT: whole({
    default: 4000,
    min: 0,
    max: 65_535,
    description: 'Port to listen on; 0 takes any free one and prints it.',
  }),
  SLIPWAY_DATA_DIR: folder({
    default: '.slipway',
    description: 'Folder of the embedded PostgreSQL and of local runtimes, relative to the working folder.',
  }),

  DATABASE_URL: postgresUrl({
    description:
      'PostgreSQL 15 or newer, a primary. Without it an embedded PostgreSQL runs in the data folder.',
  }),
  SLIPWAY_READ_DATABASE_URL: postgresUrl({
    description:
      'Second URL for reads, of a login without rights on internal tables, where the read role cannot be used.',
  }),
  SLIPWAY_POOL_SIZE: whole({
    default: 10,
    min: 2,
    max: 200,
    unit: 'sessions',
    description: 'PostgreSQL sessions at most, in each pool.',
  }),

  SLIPWAY_AUTH: oneOf(['auto', 'tokens', 'none'], {
    default: 'auto',
    description:
      'Access control. `auto`: none on loopback, tokens anywhere else and where SLIPWAY_ALLOWED_HOSTS names another host. `none` is refused there.',
  }),
  SLIPWAY_BOOTSTRAP_TOKEN: secret(
    '`slp_` and at least 32 letters, digits, `-` or `_`',
    /^slp_[\w-]{32,252}$/,
    {
      description:
        'An ADMIN token that is made at start if the server does not know it: the way to a first one, or back in. Once revoked it stays revoked.',
    },
  ),
  SLIPWAY_ALLOWED_ORIGINS: origins({
    description:
      'Other origins whose pages may use the API: CORS, and the same list at the WebSocket handshake.',
  }),
  SLIPWAY_ALLOWED_HOSTS: hostHeaders({
    description: 'Further values of the Host header to accept, such as the name at a proxy.',
  }),

  SLIPWAY_TRUSTED_DOCUMENTS: file({
    description:
      'A JSON file of the documents that clients may send, by their `sha256:` hash, as code generators write it.',
  }),
  SLIPWAY_TRUSTED_DOCUMENTS_MODE: oneOf(['off', 'log', 'enforce'], {
    default: 'enforce',
    description:
      'What becomes of other documents, once there is such a file: run, run and logged, or refused.',
  }),

  SLIPWAY_LOG_LEVEL: oneOf(LOG_LEVELS, { default: 'info', description: 'Least severe messages to log.' }),
  SLIPWAY_LOG_FORMAT: oneOf(['auto', 'json', 'pretty'], {
    default: 'auto',
    description: 'One JSON object a line, or text for people; auto: text where standard error is a terminal.',
  }),

  SLIPWAY_DRAIN_NOTICE_SECONDS: amount({
    default: 3,
    min: 0,
    max: 300,
    unit: 'seconds',
    description: 'At SIGTERM: time as not ready before connections are closed, for load balancers to notice.',
  }),
  SLIPWAY_DRAIN_SPREAD_SECONDS: amount({
    default: 20,
    min: 0,
    max: 600,
    unit: 'seconds',
    description: 'At SIGTERM: time over which the closing of streams is spread.',
  }),

  SLIPWAY_MAX_BODY_BYTES: whole({
    default: 65_536,
    min: 1_024,
    max: 16_777_216,
    unit: 'bytes',
    description: 'Largest request body and WebSocket message.',
  }),
  SLIPWAY_MAX_SUBSCRIPTIONS_PER_SOCKET: whole({
    default: 100,
    min: 1,
    max: 10_000,
    description: 'Subscriptions on one WebSocket.',
  }),
  SLIPWAY_MAX_SOCKETS_PER_PRINCIPAL: whole({
    default: 10,
    min: 1,
    max: 10_000,
    description: 'Open streams (WebSocket or SSE) of one principal.',
  }),
  SLIPWAY_MAX_SOCKETS_LOOPBACK: whole({
    default: 100,
    min: 1,
    max: 10_000,
    description: 'The same on loopback without tokens, where everyone is one principal.',
  }),
  SLIPWAY_MAX_SUBSCRIPTIONS: whole({
    default: 20_000,
    min: 1,
    max: 1_000_000,
    description: 'Subscriptions in one process.',
  }),
  SLIPWAY_SOCKET_MESSAGES_PER_SECOND: whole({
    default: 20,
    min: 1,
    max: 10_000,
    unit: 'per second',
    description: 'Messages that one WebSocket may send in the long run.',
  }),
  SLIPWAY_SOCKET_MESSAGE_BURST: whole({
    default: 50,
    min: 1,
    max: 100_000,
    description: 'Messages that one WebSocket may send at once.',
  }),
  SLIPWAY_SOCKET_INIT_TIMEOUT_SECONDS: amount({
    default: 3,
    min: 0.05,
    max: 60,
    unit: 'seconds',
    description: 'Time for a new WebSocket to authenticate.',
  }),
  SLIPWAY_SOCKET_PING_SECONDS: amount({
    default: 10,
    min: 0.05,
    max: 3_600,
    unit: 'seconds',
    description: 'Time between two pings on a WebSocket.',
  }),
  SLIPWAY_SOCKET_PONG_TIMEOUT_SECONDS: amount({
    default: 5,
    min: 0.05,
    max: 600,
    unit: 'seconds',
    description: 'Time for the answer to a ping before the WebSocket is closed.',
  }),
  SLIPWAY_SOCKET_MAX_AGE_MINUTES: amount({
    default: 60,
    min: 0.01,
    max: 10_080,
    unit: 'minutes',
    description: 'Age at which a WebSocket is asked to reconnect, give or take 10 %.',
  }),
  SLIPWAY_WS_MUTATIONS: flag({
    default: false,
    description: 'Whether a WebSocket also carries queries and mutations.',
  }),
  SLIPWAY_INTROSPECTION: flag({
    default: true,
    description: 'Whether clients may read the schema from the server.',
  }),
  SLIPWAY_GRAPHIQL: flag({
    default: true,
    description: 'Whether browsers get GraphiQL at the endpoint (needs introspection).',
  }),
  SLIPWAY_GET_QUERIES: flag({
    default: true,
    description: 'Whether queries may come by GET, as the GraphQL-over-HTTP specification allows.',
  }),
  SLIPWAY_MAX_DEPTH: whole({
    default: 12,
    min: 3,
    max: 100,
    description: 'Deepest nesting of an operation.',
  }),
  SLIPWAY_MAX_ALIASES: whole({ default: 30, min: 0, max: 10_000, description: 'Aliases in one operation.' }),
  SLIPWAY_MAX_TOKENS: whole({
    default: 2_000,
    min: 100,
    max: 1_000_000,
    description: 'Lexical tokens of one document.',
  }),
  SLIPWAY_MAX_DIRECTIVES: whole({
    default: 20,
    min: 0,
    max: 10_000,
    description: 'Directives in one operation.',
  }),
  SLIPWAY_MAX_COMPLEXITY: whole({
    default: 20_000,
    min: 100,
    max: 10_000_000,
    description: 'Cost of one operation: objects, times the asked page sizes.',
  }),
  SLIPWAY_REQUEST_TIMEOUT_SECONDS: amount({
    default: 30,
    min: 0.1,
    max: 3_600,
    unit: 'seconds',
    description: 'Time for one query or mutation.',
  }),

  SLIPWAY_HEARTBEAT_INTERVAL_SECONDS: amount({
    default: 30,
    min: 0.05,
    max: 3_600,
    unit: 'seconds',
    description: 'How often agents are told to beat.',
  }),
  SLIPWAY_HEARTBEAT_TIMEOUT_SECONDS: amount({
    default: 60,
    min: 0.1,
    max: 86_400,
    unit: 'seconds',
    description: 'Silence after which an agent counts as offline.',
  }),
  SLIPWAY_AGENT_SWEEP_SECONDS: amount({
    default: 10,
    min: 0.05,
    max: 3_600,
    unit: 'seconds',
    description: 'How often silent agents are looked for.',
  }),

  SLIPWAY_CHANGE_PAYLOAD_HOURS: whole({
    default: 168,
    min: 48,
    max: 87_600,
    unit: 'hours',
    description: 'How long a stream can be resumed: the age at which changes lose their content.',
  }),
  SLIPWAY_CHANGE_DAYS: whole({
    default: 400,
    min: 2,
    max: 36_500,
    unit: 'days',
    description: 'How long the record of who changed what is kept.',
  }),

  SLIPWAY_URL: httpUrl({ description: 'For the command line: the server to talk to.' }),
  SLIPWAY_TOKEN: secret('a token without spaces', /^[\x21-\x7e]{1,8192}$/, {
    description: 'For the command line: the token to send.',
  }),
});

export type SettingName = keyof typeof settings.shape;
export type Settings = z.output<typeof settings>;

// `shape` has exactly the keys above.
export const settingNames = Object.keys(settings.shape) as SettingName[];
