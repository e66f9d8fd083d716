import { buildSchema, type GraphQLSchema } from 'graphql';

import { localActor, type Actor } from '../../src/access/actor.js';
import { AuthFailure } from '../../src/access/errors.js';
import type { ActorState } from '../../src/access/authenticator.js';
import type { Caller } from '../../src/access/caller.js';
import { originPolicy } from '../../src/access/origins.js';
import type { Context } from '../../src/graph/context.js';
import { operationError } from '../../src/graph/errors.js';
import type { EventSource, SourceEvent, StreamDefinition } from '../../src/graph/stream-field.js';
import { systemClock } from '../../src/kernel/clock.js';
import type { Log } from '../../src/kernel/log.js';
import type { ReadTurns } from '../../src/kernel/read-turns.js';
import { nextOf, type Reader } from '../../src/kernel/tap.js';
import {
  createMetrics,
  DEFAULT_LIMITS,
  startHttp,
  type Authenticator,
  type Transport,
  type TransportDeps,
  type TransportLimits,
  type TransportSettings,
} from '../../src/transport/index.js';

/**
 * The real transports in front of a small graph without a database: for what the transports promise whatever the graph
 * is. Its fields have names of the real one, since the action table is the real one too.
 */
const SDL = /* GraphQL */ `
  type Query {
    serverInfo: ServerInfo!
    head: String!
    node(id: ID!): Node
    nodes(ids: [ID!]!): [Node]!
    tokens: [String!]!
    deployments(first: Int): [Node!]!
  }
  type Mutation {
    createRelease(name: String!): String!
    createToken(name: String!): String!
  }
  type Subscription {
    deploymentPhaseChanged(topic: String! = "a", filter: String, after: String): Event
    watchDeployments(topic: String! = "a", after: String): Event
  }
  type ServerInfo {
    version: String!
    self: ServerInfo!
  }
  type Node {
    id: ID!
    broken: String
    leaking: Int
    parent: Node
    children: [Node!]!
  }
  type Event {
    value: Int!
    text: String!
    cursor: String!
    classKey: String!
    broken: String
    who: String!
    echo(of: String): String
  }
`;

/** What no answer and no log line of a refused or failed operation may hold. */
export const SECRET = 'postgresql://owner:hunter2@10.1.2.3/slipway';

/** A topic: what a test publishes reaches every stream that is open on it. */
export class Topic {
  readonly streams = new Set<TestStream>();
  /** Streams ever opened. */
  opened = 0;

  publish(value: number, text = 'x', at: Date | undefined = undefined): void {
    const share = at === undefined ? { value, text } : { value, text, at };
    for (const stream of this.streams) {
      stream.offer({
        value: { ...share, cursor: `c${value}` },
        cursor: `c${value}`,
        share,
        variant: 'CHANGED',
      });
    }
  }

  /** Moves the place of every stream, without an event. */
  move(cursor: string): void {
    for (const stream of this.streams) {
      stream.offer({ value: null, cursor, share: null, variant: 'SILENT', silent: true });
    }
  }

  /** Ends every stream, with an error or as completed. */
  end(error?: Error): void {
    for (const stream of this.streams) stream.finish(error);
  }
}

const QUEUE_MAX = 1_000;

class TestStream implements EventSource {
  readonly #topic: Topic;
  readonly after: string | undefined;
  #queue: SourceEvent[] = [];
  #done: { readonly error: Error | undefined } | undefined;
  #reader: Reader | undefined;
  #last: string | undefined;

  constructor(topic: Topic, after: string | undefined) {
    this.#topic = topic;
    this.after = after;
    topic.streams.add(this);
    topic.opened += 1;
  }

  offer(event: SourceEvent): void {
    if (this.#queue.push(event) > QUEUE_MAX) {
      this.finish(operationError('SLOW_CONSUMER', 'Too slow.', { cursor: this.#last }));
    }
    this.#wake();
  }

  finish(error: Error | undefined): void {
    this.#done ??= { error };
    this.#topic.streams.delete(this);
    this.#wake();
  }

  get ended(): boolean {
    return this.#done !== undefined && this.#queue.length === 0;
  }

  take(): SourceEvent | undefined {
    const event = this.#queue.shift();
    if (event) this.#last = event.cursor;
    else if (this.#done?.error) throw this.#done.error;
    return event;
  }

  wait(reader: Reader): void {
    this.#reader = reader;
  }

  #wake(): void {
    const reader = this.#reader;
    this.#reader = undefined;
    reader?.wake();
  }

  close(): void {
    this.#queue = [];
    this.finish(undefined);
  }

  bookmark(): SourceEvent | undefined {
    if (this.#last === undefined) return undefined;
    const value = { value: -1, text: 'bookmark', cursor: this.#last };
    return { value, cursor: this.#last, share: null, variant: 'BOOKMARK' };
  }
}

export interface TestTransport {
  readonly transport: Transport;
  readonly schema: GraphQLSchema;
  readonly url: string;
  readonly wsUrl: string;
  readonly logged: LogLine[];
  readonly topics: { readonly a: Topic; readonly b: Topic };
  /** Callers of each finished or running mutation, and the way to let a held one go on. */
  readonly mutations: { calls: number; hold: boolean; release: () => void };
  /** What `actorState` says, per actor id; valid if unset. */
  readonly states: Map<string, ActorState>;
  readonly executions: { count: number };
  /** What to throw instead of answering: for a node, by its id; for a stream, by its `after`; for events, `event`. */
  readonly faults: Map<string, () => unknown>;
  post(
    body: unknown,
    headers?: Record<string, string>,
  ): Promise<{ status: number; body: GraphQLBody; headers: Headers }>;
  close(): Promise<void>;
}

export interface GraphQLBody {
  readonly data?: Record<string, unknown> | null;
  readonly errors?: readonly { readonly message: string; readonly extensions: Record<string, unknown> }[];
}

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields: Record<string, unknown>;
}

export interface TestTransportOptions {
  readonly limits?: Partial<TransportLimits>;
  readonly settings?: Partial<TransportSettings>;
  /** Tokens and who they are; without any, everybody is the local actor. */
  readonly tokens?: ReadonlyMap<string, Actor | AuthFailure>;
  readonly allowedOrigins?: readonly string[];
  readonly readiness?: TransportDeps['readiness'];
  readonly log?: Log;
  readonly authenticate?: Authenticator['fromBearer'];
}

export function actor(
  id: string,
  roles: readonly ('ADMIN' | 'VIEWER' | 'DEPLOYER')[] = ['VIEWER'],
  classKey = roles.join(),
): Actor {
  return {
    ...localActor(),
    id: `token:${id}`,
    name: id,
    roles: new Set(roles),
    tokenId: `tok_${id}` as Actor['tokenId'], // only compared with null here
    classKey,
  };
}

const contextOf = (caller: Caller, turns?: ReadTurns) => ({ caller, turns }) as unknown as Context; // this graph has no loaders

/** For servers of others on the same graph. */
export function localContext(): Context {
  return contextOf({ actor: localActor(), requestId: 'none', traceId: null });
}

export async function startTestTransport(options: TestTransportOptions = {}): Promise<TestTransport> {
  const logged: LogLine[] = [];
  const topics = { a: new Topic(), b: new Topic() };
  const states = new Map<string, ActorState>();
  const executions = { count: 0 };
  const faults = new Map<string, () => unknown>();
  const mutations = { calls: 0, hold: false, release: () => undefined as void };
  const started = { port: 0 };
  const schema = testSchema({ topics, mutations, executions, faults });
  const transport = await startHttp({
    schema,
    createContext: contextOf,
    settings: {
      host: '127.0.0.1',
      port: 0,
      introspection: true,
      graphiql: true,
      getQueries: true,
      socketMutations: false,
      ...options.settings,
      limits: { ...DEFAULT_LIMITS, ...options.limits },
      drain: { noticeMs: 20, spreadMs: 100, finishMs: 1_000, ...options.settings?.drain },
    },
    clock: systemClock,
    log: options.log ?? logInto(logged),
    authenticator: {
      ...testAuthenticator(options.tokens, states),
      ...(options.authenticate ? { fromBearer: options.authenticate } : {}),
    },
    origins: originPolicy(
      { loopback: true, allowedHosts: [], allowedOrigins: options.allowedOrigins ?? [] },
      () => started.port,
    ),
    metrics: createMetrics(),
    readiness: options.readiness ?? [],
  });
  started.port = transport.port;
  const url = `${transport.url}/graphql`;
  return {
    transport,
    schema,
    url,
    wsUrl: url.replace('http:', 'ws:'),
    logged,
    topics,
    mutations,
    states,
    executions,
    faults,
    async post(body, headers = {}) {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      });
      return {
        status: response.status,
        body: (await response.json()) as GraphQLBody,
        headers: response.headers,
      }; // every answer is one
    },
    close: () => transport.close(),
  };
}

function testAuthenticator(
  tokens: TestTransportOptions['tokens'],
  states: ReadonlyMap<string, ActorState>,
): Authenticator {
  return {
    fromBearer(token) {
      if (!tokens) return Promise.resolve(localActor());
      if (token === null) return Promise.resolve(new AuthFailure('missing'));
      return Promise.resolve(tokens.get(token) ?? new AuthFailure('unknown'));
    },
    actorState: ({ id }) => states.get(id) ?? 'valid',
  };
}

function logInto(lines: LogLine[]): Log {
  const at = (level: string) => (fields: object, message: string) => {
    lines.push({ level, message, fields: { ...fields } });
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

function testSchema({
  topics,
  mutations,
  executions,
  faults,
}: Pick<TestTransport, 'topics' | 'mutations' | 'executions' | 'faults'>): GraphQLSchema {
  const schema = buildSchema(SDL);
  const fail = (name: string) => {
    const fault = faults.get(name);
    // Whatever it is: also what no careful program throws.

    if (fault) throw fault();
    throw new Error(`connect to ${SECRET} failed`);
  };
  const fields = (type: string) => {
    const object = schema.getType(type);
    if (!object || !('getFields' in object)) throw new Error(`no type ${type}`);
    return object.getFields() as Record<
      string,
      { resolve?: unknown; subscribe?: unknown; extensions: Record<string, unknown> }
    >; // made from the text above
  };
  const node = (id: string): object => ({
    id,
    broken: () => fail(id),
    leaking: SECRET,
    parent: () => node('parent'),
    children: () => [node('c1'), node('c2')],
  });
  const info: object = { version: '0', self: () => info };
  const resolvers: Record<string, Record<string, unknown>> = {
    Query: {
      serverInfo: () => info,
      head: () => 'here',
      node: (_: unknown, { id }: { id: string }) => node(id),
      nodes: (_: unknown, { ids }: { ids: string[] }) => ids.map(node),
      tokens: () => [],
      deployments: () => [],
    },
    Mutation: {
      async createRelease(_: unknown, { name }: { name: string }) {
        mutations.calls += 1;
        if (mutations.hold) {
          await new Promise<void>((resolve) => {
            mutations.release = resolve;
          });
        }
        return name;
      },
      createToken: () => 'made',
    },
    Event: {
      classKey: (_: unknown, __: unknown, { caller }: { caller: Caller }) => caller.actor.classKey,
      who: (_: unknown, __: unknown, { caller }: { caller: Caller }) => caller.actor.id,
      broken: () => fail('event'),
      echo: (_: unknown, { of }: { of: string | null }) => of,
    },
  };
  for (const [type, byField] of Object.entries(resolvers)) {
    for (const [name, resolve] of Object.entries(byField)) {
      const field = fields(type)[name];
      if (field) field.resolve = resolve;
    }
  }
  for (const field of Object.values(fields('Subscription'))) {
    const stream: StreamDefinition = {
      open({ topic, after }) {
        if (after === 'expired') {
          throw operationError('CURSOR_EXPIRED', 'Take a new snapshot.', { cursor: 'expired' });
        }
        if (after === 'bug' || faults.has(String(after))) fail(String(after));
        return new TestStream(
          topic === 'b' ? topics.b : topics.a,
          typeof after === 'string' ? after : undefined,
        );
      },
    };
    field.extensions = { stream };
    field.subscribe = (
      _: unknown,
      args: Record<string, unknown>,
      context: Context,
      { fieldName }: { fieldName: string },
    ) => iterated(stream.open(args, context), fieldName);
    field.resolve = (
      root: Record<string, unknown>,
      _: unknown,
      __: unknown,
      { fieldName }: { fieldName: string },
    ) => {
      executions.count += 1;
      return root[fieldName];
    };
  }
  const who = fields('Event')['who'];
  if (who) who.extensions = { personal: true };
  return schema;
}

/** For graphql-js' own `subscribe`, as stock servers call it. */
function iterated(source: EventSource, fieldName: string): AsyncIterableIterator<unknown> {
  return {
    async next() {
      const event = await nextOf(source);
      return event ? { done: false, value: { [fieldName]: event.value } } : { done: true, value: undefined };
    },
    return() {
      source.close();
      return Promise.resolve({ done: true, value: undefined });
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
