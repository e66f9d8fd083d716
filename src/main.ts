/**
 * The composition root: reads the configuration, builds every part, starts them in order, and stops them in the
 * opposite one. Nothing else knows how the parts fit together.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { collectDefaultMetrics } from 'prom-client';

import { authenticator, type Authenticator } from './access/authenticator.js';
import { originPolicy } from './access/origins.js';
import {
  assertProtected,
  countAdminTokens,
  createTokenBeside,
  ensureBootstrapToken,
} from './access/protection.js';
import { tokenCommands, type CreatedToken } from './access/tokens.js';
import { AGENT_PROTOCOL, agentCommands } from './agents/index.js';
import { createFeed, type Feed } from './changes/feed.js';
import { banner } from './cli/serve/banner.js';
import { createLogger } from './cli/serve/logger.js';
import { untilSignalled } from './cli/serve/until-signalled.js';
import { loadConfig, type Config } from './config/config.js';
import { describeConfig } from './config/describe-config.js';
import { checkLifecycle, DEPLOYMENT_PHASES, deploymentCommands } from './deployments/index.js';
import { startLoops } from './engine/server-loops.js';
import { buildGraph, type GraphDeps } from './graph/assemble.js';
import { contextFactory } from './graph/context.js';
import { systemClock, type Clock } from './kernel/clock.js';
import type { Failpoints } from './kernel/failpoints.js';
import type { Log } from './kernel/log.js';
import { StartError } from './kernel/start-error.js';
import { releaseCommands } from './releases/index.js';
import { ROLLOUT_ENUMS } from './rollouts/index.js';
import { RUNTIME_TYPES, runtimeCommands } from './runtimes/index.js';
import { feedAccess, interruptible } from './store/interrupt.js';
import { openStore, type Store } from './store/open.js';
import { publicReads } from './store/public-reads.js';
import type { PublicReads } from './store/public-types.js';
import { checkStoredEnums } from './store/stored-enums.js';
import { createMetrics, readTrustedDocuments, startHttp, type Transport } from './transport/index.js';
import { transportSettings } from './transport/settings.js';

/** `dist/` and `src/` both lie one level below the package; only this file may count on that. */
const packageRoot = new URL('..', import.meta.url);
const MIGRATIONS = fileURLToPath(new URL('prisma/migrations', packageRoot));

export function packageVersion(): string {
  const file = readFileSync(new URL('package.json', packageRoot), 'utf8');
  return (JSON.parse(file) as { version: string }).version; // our own package.json
}

/** A running server. */
export interface Slipway {
  /** For example `http://127.0.0.1:4000`; the API is at `/graphql` below it. */
  readonly url: string;
  readonly port: number;
  readonly access: 'open' | 'tokens';
  readonly store: Store;
  readonly transport: Transport;
  readonly feed: Feed;
  /** The graceful way out, as on SIGTERM: connections are given notice and spread, then everything ends. */
  drain(): Promise<void>;
  /** The quick one: connections are cut. */
  close(): Promise<void>;
}

export interface SlipwayDeps {
  readonly log: Log;
  readonly clock?: Clock;
  /** For tests that interrupt a server; absent: it cannot be. */
  readonly failpoints?: Failpoints | undefined;
}

/** Starts a server in this process. Throws a StartError that an operator can act on; nothing is left running then. */
export async function startSlipway(
  config: Config,
  { log, clock = systemClock, failpoints }: SlipwayDeps,
): Promise<Slipway> {
  const started: (() => Promise<void> | void)[] = [];
  const undo = async () => {
    for (const stop of started.reverse()) {
      await Promise.resolve(stop()).catch((error: unknown) =>
        log.error({ err: error }, 'A part did not stop'),
      );
    }
  };
  try {
    checkLifecycle();
    const store = await openStoreOf(config, log);
    started.push(() => store.close());
    await checkStoredEnums(store.database.pool, { DeploymentPhase: DEPLOYMENT_PHASES, ...ROLLOUT_ENUMS });
    return await serve(config, { log, clock, failpoints, store, started, undo });
  } catch (error) {
    await undo();
    throw error;
  }
}

function openStoreOf(config: Config, log: Log): Promise<Store> {
  const { dataDir } = config.server;
  const requestMs = config.limits.requestTimeoutSeconds * 1_000;
  return openStore({ ...config.database, dataDir, requestMs, migrations: MIGRATIONS, log });
}

/** For the command beside the database: makes a token without a server, whether one runs meanwhile or not. */
export async function makeTokenBeside(
  config: Config,
  { log, clock = systemClock }: SlipwayDeps,
  input: Readonly<Record<string, unknown>>,
): Promise<CreatedToken> {
  const store = await openStoreOf(config, log);
  try {
    return await createTokenBeside(store.database, clock, input);
  } finally {
    await store.close();
  }
}

interface Composition {
  readonly log: Log;
  readonly clock: Clock;
  readonly failpoints: Failpoints | undefined;
  readonly store: Store;
  /** What to stop, in the order of starting. */
  readonly started: (() => Promise<void> | void)[];
  undo(): Promise<void>;
}

async function serve(config: Config, composition: Composition): Promise<Slipway> {
  const { log, clock, failpoints, started, undo } = composition;
  const database = interruptible(composition.store.database, failpoints);
  const store = { ...composition.store, database };
  if (config.access.bootstrapToken !== undefined) {
    await ensureBootstrapToken(database, config.access.bootstrapToken);
  }
  const access = assertProtected(config, await countAdminTokens(database));

  const feed = createFeed({ ...feedAccess(database, failpoints), clock, log });
  const auth = authenticator({ pool: database.pool, feed, clock, open: access === 'open' });
  await feed.start();
  started.push(async () => {
    auth.close();
    await feed.stop();
  });
  started.push(database.onCommit(() => feed.wake()));

  const flushTokenUses = () => auth.flushUses();
  // On its own: a database that is away must not keep the other parts from stopping.
  started.push(flushTokenUses);
  const loops = startLoops(config, { database, clock, log, flushTokenUses });
  started.push(async () => {
    await Promise.all(loops.map((each) => each.stop()));
  });

  const transport = await startTransport(config, { log, clock, store, feed, auth, access });
  let ending: Promise<void> | undefined;
  const end = (connections: () => Promise<void>) => {
    // Asked again, since `close` makes a drain that runs a quick one.
    const connectionsEnded = connections();
    ending ??= connectionsEnded.then(undo).then(() => log.info({}, 'Stopped'));
    return ending;
  };
  return {
    url: transport.url,
    port: transport.port,
    access,
    store,
    transport,
    feed,
    drain: () => end(() => transport.drain()),
    close: () => end(() => transport.close()),
  };
}

interface Serving extends Pick<Composition, 'log' | 'clock' | 'store'> {
  readonly feed: Feed;
  readonly auth: Authenticator;
  readonly access: 'open' | 'tokens';
}

async function startTransport(config: Config, parts: Serving): Promise<Transport> {
  const { log, clock, feed, auth } = parts;
  const { database } = parts.store;
  const reads = publicReads(database, log);
  const schema = buildGraph(graphDeps(config, parts, reads));

  const metrics = createMetrics();
  collectDefaultMetrics({ register: metrics.registry });
  // The port is known only after listening, and no request is answered before.
  let port = config.server.port;
  const origins = originPolicy(
    {
      loopback: config.server.loopback,
      allowedOrigins: config.access.allowedOrigins,
      allowedHosts: config.access.allowedHosts,
    },
    () => port,
  );
  const transport = await startHttp({
    schema,
    createContext: contextFactory((kind) => metrics.failures.inc({ kind })),
    settings: transportSettings(config),
    clock,
    log,
    authenticator: auth,
    origins,
    metrics,
    trusted: trustedDocuments(config),
    readiness: [
      { name: 'database', well: async () => (await database.readPool.query('SELECT 1')).rowCount === 1 },
      { name: 'feed', well: () => feed.current },
    ],
    feedStats: () => feed.stats,
  });
  port = transport.port;
  return transport;
}

function trustedDocuments({ documents }: Config): ReturnType<typeof readTrustedDocuments> | undefined {
  const { file, mode } = documents;
  return file === undefined || mode === 'off' ? undefined : readTrustedDocuments(file, mode);
}

function graphDeps(
  config: Config,
  { store, clock, feed, auth, access }: Serving,
  reads: PublicReads,
): GraphDeps {
  const { database } = store;
  const { heartbeatIntervalSeconds, heartbeatTimeoutSeconds } = config.agents;
  return {
    database,
    reads,
    feed,
    clock,
    server: {
      version: packageVersion(),
      accessControl: access === 'tokens',
      runtimeTypes: RUNTIME_TYPES,
      heartbeatIntervalSeconds,
      heartbeatTimeoutSeconds,
      agentProtocol: AGENT_PROTOCOL,
    },
    commands: {
      deployments: deploymentCommands({ database, clock, feed }),
      runtimes: runtimeCommands({ database, clock }),
      releases: releaseCommands({ database, clock }),
      agents: agentCommands({ database, clock, heartbeatIntervalSeconds }),
      tokens: tokenCommands({ database, clock, written: (token) => auth.written(token) }),
    },
  };
}

/** `slipway serve`: runs until SIGTERM or SIGINT. Exit code 0 after an orderly end, 1 if it could not start. */
export function main(): Promise<void> {
  return runServer({});
}

/** The same with parts of the caller's. */
export async function runServer(parts: Omit<SlipwayDeps, 'log'>): Promise<void> {
  try {
    const config = loadConfig();
    const log = createLogger(config.log);
    // In the log like every other error, rather than as Node prints it, with whatever hangs on it.
    process.on('uncaughtException', (error) => {
      log.error({ err: error }, 'A bug ends this process');
      process.exit(1);
    });
    log.debug({ config: describeConfig(config) }, 'Starting');
    const { server, asked } = await untilSignalled(log, () => startSlipway(config, { ...parts, log }));
    if (asked) return;
    process.stdout.write(
      banner({
        version: packageVersion(),
        url: server.url,
        database: `PostgreSQL ${server.store.serverVersion}${server.store.embedded ? ', embedded' : ''}`,
        access: server.access === 'open' ? 'open' : 'token',
      }),
    );
  } catch (error) {
    process.stderr.write(error instanceof StartError ? `${error.publicMessage}\n` : `${asStack(error)}\n`);
    process.exitCode = 1;
  }
}

function asStack(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
