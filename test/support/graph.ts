/** The built schema over a real database, executed by graphql-js itself: no transport, no pipeline. */
import { execute, parse, subscribe, validate, type ExecutionResult, type GraphQLSchema } from 'graphql';

import type { Caller } from '../../src/access/caller.js';
import { tokenCommands } from '../../src/access/tokens.js';
import { AGENT_PROTOCOL, agentCommands } from '../../src/agents/index.js';
import { createFeed, type Feed } from '../../src/changes/feed.js';
import { deploymentCommands } from '../../src/deployments/index.js';
import { buildGraph, type GraphDeps } from '../../src/graph/assemble.js';
import { contextFactory, type Context } from '../../src/graph/context.js';
import { maskError } from '../../src/graph/errors.js';
import { systemClock } from '../../src/kernel/clock.js';
import { silentLog } from '../../src/kernel/log.js';
import { releaseCommands } from '../../src/releases/index.js';
import { runtimeCommands } from '../../src/runtimes/index.js';
import type { Database } from '../../src/store/database.js';
import { sessionsLike } from '../../src/store/session.js';
import { publicReads } from '../../src/store/public-reads.js';
import { local } from './callers.js';
import { createDatabase } from './database.js';
import { openStore } from './open-store.js';
import type { TestDatabase } from './test-server.js';

export interface TestGraph {
  readonly schema: GraphQLSchema;
  readonly database: Database;
  readonly testDatabase: TestDatabase;
  readonly feed: Feed;
  readonly deps: GraphDeps;
  contextOf(caller?: Caller): Context;
  /** Executes and masks as a transport would. Refuses what does not validate: tests ask valid questions. */
  run(document: string, variables?: Record<string, unknown>, caller?: Caller): Promise<Answer>;
  /** Results of a subscription, by graphql-js' own `subscribe`. */
  stream(document: string, variables?: Record<string, unknown>, caller?: Caller): Promise<TestStream>;
  /** What the read role was sent while `work` ran. */
  readStatements(work: () => Promise<unknown>): Promise<string[]>;
  close(): Promise<void>;
}

export interface TestStream {
  next(): Promise<Answer>;
  close(): Promise<void>;
}

export interface Answer {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as wide as the documents of tests
  readonly data: any;
  readonly errors: readonly {
    readonly message: string;
    readonly extensions: unknown;
    readonly path?: unknown;
  }[];
}

export async function startTestGraph(
  extend: (deps: GraphDeps) => Partial<GraphDeps> = () => ({}),
): Promise<TestGraph> {
  const testDatabase = await createDatabase();
  const database = openStore(testDatabase);
  const feed = createFeed({
    database,
    clock: systemClock,
    log: silentLog,
    openSession: sessionsLike(database.pool),
  });
  await feed.start();
  database.onCommit(() => feed.wake());
  const parts = { database, clock: systemClock, feed };
  const deps: GraphDeps = {
    ...parts,
    reads: publicReads(database, silentLog),
    server: {
      version: '0.0.0-test',
      accessControl: false,
      runtimeTypes: ['external'],
      heartbeatIntervalSeconds: 20,
      heartbeatTimeoutSeconds: 60,
      agentProtocol: AGENT_PROTOCOL,
    },
    commands: {
      deployments: deploymentCommands(parts),
      runtimes: runtimeCommands(parts),
      releases: releaseCommands(parts),
      agents: agentCommands({ ...parts, heartbeatIntervalSeconds: 30 }),
      tokens: tokenCommands(parts),
    },
  };
  const schema = buildGraph({ ...deps, ...extend(deps) });
  const contextFor = contextFactory();
  const contextOf = (caller: Caller = local) => contextFor(caller);
  const checked = (text: string) => {
    const document = parse(text);
    const problems = validate(schema, document);
    if (problems.length > 0) throw new Error(problems.map((problem) => problem.message).join('\n'));
    return document;
  };
  const argumentsOf = (text: string, variables: Record<string, unknown>, caller: Caller) => ({
    schema,
    document: checked(text),
    variableValues: variables,
    contextValue: contextOf(caller),
  });
  const sent = statementsOf(database);
  return {
    schema,
    database,
    testDatabase,
    feed,
    deps,
    contextOf,
    run: async (text, variables = {}, caller = local) =>
      answerOf(await execute(argumentsOf(text, variables, caller)), caller),
    async stream(text, variables = {}, caller = local) {
      const results = await subscribe(argumentsOf(text, variables, caller));
      if (!(Symbol.asyncIterator in results)) throw new Error(JSON.stringify(answerOf(results, caller)));
      return {
        async next() {
          try {
            const { done, value } = await results.next();
            return done === true ? { data: undefined, errors: [] } : answerOf(value, caller);
          } catch (error) {
            return {
              data: undefined,
              errors: [maskError(error, caller.requestId, 'execute').formatted].map(withExtensions),
            };
          }
        },
        close: async () => void (await results.return?.()),
      };
    },
    async readStatements(work) {
      sent.length = 0;
      await work();
      return [...sent];
    },
    async close() {
      await feed.stop();
      await database.close();
      await testDatabase.drop();
    },
  };
}

function answerOf(result: ExecutionResult, caller: Caller): Answer {
  const errors = (result.errors ?? []).map((error) =>
    withExtensions(maskError(error, caller.requestId, 'execute').formatted),
  );
  return { data: result.data === undefined ? undefined : JSON.parse(JSON.stringify(result.data)), errors };
}

function withExtensions<T extends { readonly extensions?: unknown }>(
  formatted: T,
): T & { readonly extensions: unknown } {
  return { ...formatted, extensions: formatted.extensions };
}

/** The texts of everything that the read pool's sessions are sent, from now on. */
function statementsOf(database: Database): string[] {
  const sent: string[] = [];
  database.readPool.on('connect', (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown; // pg overloads it seven ways
    client.query = ((...args: unknown[]) => {
      const [first] = args;
      sent.push(typeof first === 'string' ? first : String((first as { text?: unknown }).text)); // a text or a config with one
      return query(...args);
    }) as typeof client.query; // the same function, seen
  });
  return sent;
}
