import type { GraphQLSchema } from 'graphql';

import type { OriginPolicy } from '../access/origins.js';
import type { ContextFactory } from '../graph/context.js';
import type { Clock } from '../kernel/clock.js';
import type { Log } from '../kernel/log.js';
import { CLOSE, createConnections } from './connections.js';
import { drainConnections } from './drain.js';
import { createGraphiQL } from './graphiql.js';
import { createGraphQLDoor } from './graphql-door.js';
import { createHttpServer, listen } from './http.js';
import { createHub } from './hub.js';
import { createInFlight } from './in-flight.js';
import { gauge, type TransportMetrics } from './metrics.js';
import { createFlushQueue } from './outlet.js';
import { createPipeline } from './pipeline.js';
import type { Authenticator } from './ports.js';
import { createProbes, type ReadinessCheck } from './probes.js';
import { GRAPHQL_PATH } from './request.js';
import type { TrustedDocuments } from './trusted-documents.js';
import { createEventStreams } from './sse.js';
import type { TransportSettings } from './settings.js';
import { createSocketDoor } from './websocket.js';

/**
 * Everything that clients reach the server by: GraphQL over HTTP, event streams and WebSocket on one path, GraphiQL,
 * probes and metrics, on one port. `main` wires it; nothing in here knows a database.
 */
export { DEFAULT_LIMITS, type TransportLimits } from './limits.js';
export { createMetrics, type TransportMetrics } from './metrics.js';
export type { Authenticator } from './ports.js';
export type { TransportSettings } from './settings.js';
export { readTrustedDocuments } from './trusted-documents.js';
export type { ReadinessCheck } from './probes.js';

export interface TransportDeps {
  readonly schema: GraphQLSchema;
  readonly createContext: ContextFactory;
  readonly settings: TransportSettings;
  readonly clock: Clock;
  readonly log: Log;
  readonly authenticator: Authenticator;
  readonly origins: OriginPolicy;
  readonly metrics: TransportMetrics;
  /** Undefined: any valid document may run. */
  readonly trusted?: TrustedDocuments | undefined;
  /** What `/readyz` asks besides the drain: the database, migrations, the feed. */
  readonly readiness: readonly ReadinessCheck[];
  /** Numbers of the change feed, by the names of FEED_GAUGES. */
  readonly feedStats?: () => Readonly<Record<FeedGauge, number>>;
  /** In [0, 1): spreads connection ages and first pings. */
  readonly random?: () => number;
}

export interface Transport {
  readonly url: string;
  readonly port: number;
  /** The graceful way out; resolves when nothing is left. A second call joins the first. */
  drain(): Promise<void>;
  /** The quick one: connections are told (1012) and cut. Makes a drain that runs a quick one too. */
  close(): Promise<void>;
  /** What is open now. */
  readonly open: {
    readonly connections: number;
    readonly subscriptions: number;
    readonly groups: number;
    readonly principals: number;
    readonly inFlight: number;
    /** Requests whose body is not complete. */
    readonly arriving: number;
    readonly unsentBytes: number;
  };
}

export async function startHttp(deps: TransportDeps): Promise<Transport> {
  const { settings, clock, log, metrics, authenticator } = deps;
  const { limits } = settings;
  const random = deps.random ?? Math.random;
  const actorState = (actor: Parameters<Authenticator['actorState']>[0]) => authenticator.actorState(actor);
  let draining: Promise<void> | undefined;
  const hurry = new AbortController();

  const pipeline = createPipeline({ ...deps, limits, introspection: settings.introspection });
  const inFlight = createInFlight();
  const onTickEnd = createFlushQueue();
  const connections = createConnections({ clock, limits, metrics, actorState });
  const hub = createHub({
    pipeline,
    clock,
    metrics,
    actorState,
    maxSubscriptions: limits.subscriptionsPerProcess,
  });
  const count = (kind: string, outcome: string) =>
    metrics.operations.inc({ transport: 'sse', kind, outcome });
  const streams = createEventStreams({ pipeline, hub, connections, limits, onTickEnd, random, count });
  const graphql = createGraphQLDoor({
    ...{ pipeline, streams, authenticator, limits, metrics, clock, log, inFlight },
    graphiql: settings.graphiql ? createGraphiQL(GRAPHQL_PATH) : undefined,
    getQueries: settings.getQueries,
  });
  const sockets = createSocketDoor({
    ...{
      pipeline,
      hub,
      connections,
      authenticator,
      limits,
      metrics,
      clock,
      log,
      inFlight,
      onTickEnd,
      random,
    },
    schema: deps.schema,
    allOperations: settings.socketMutations,
  });
  const probes = createProbes({
    checks: deps.readiness,
    isDraining: () => draining !== undefined,
    registry: metrics.registry,
    after: (ms, run) => clock.after(ms, run),
  });
  const server = createHttpServer({
    ...{ graphql, sockets, probes, authenticator, clock, log },
    origins: deps.origins,
    maxConnections: limits.connections,
    isDraining: () => draining !== undefined,
  });
  registerGauges(deps, { hub, connections, inFlight });
  const port = await listen(server, settings);

  const end = async () => {
    connections.stop();
    sockets.close();
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  };
  const host = settings.host.includes(':') ? `[${settings.host}]` : settings.host;
  return {
    url: `http://${host}:${port}`,
    port,
    drain() {
      draining ??= drainConnections({
        ...{ clock, log, connections, inFlight },
        settings: settings.drain,
        hurry: hurry.signal,
        stopAccepting: () => server.close(),
        cut: () => server.closeAllConnections(),
      }).then(end);
      return draining;
    },
    close() {
      hurry.abort();
      for (const connection of connections.open) connection.end(CLOSE.restart, 'Server stops: connect again');
      draining ??= end();
      return draining;
    },
    get open() {
      return {
        connections: connections.open.size,
        subscriptions: hub.open,
        groups: hub.groups,
        principals: connections.principals,
        inFlight: inFlight.count,
        arriving: inFlight.arriving,
        unsentBytes: connections.unsentBytes,
      };
    },
  };
}

interface Counted {
  readonly hub: { readonly open: number; readonly groups: number };
  readonly connections: { readonly open: ReadonlySet<unknown>; readonly unsentBytes: number };
  readonly inFlight: { readonly count: number };
}

function registerGauges(
  { metrics: { registry }, feedStats }: TransportDeps,
  { hub, connections, inFlight }: Counted,
): void {
  gauge(registry, 'slipway_connections', 'Open WebSockets and event streams.', () => connections.open.size);
  gauge(registry, 'slipway_unsent_bytes', 'Bytes that wait for slow readers.', () => connections.unsentBytes);
  gauge(registry, 'slipway_subscriptions', 'Open subscriptions.', () => hub.open);
  gauge(
    registry,
    'slipway_subscription_groups',
    'Groups of equal subscriptions, which share executions.',
    () => hub.groups,
  );
  gauge(
    registry,
    'slipway_requests_in_flight',
    'Requests and socket operations that run now.',
    () => inFlight.count,
  );
  if (!feedStats) return;
  for (const [name, help] of FEED_GAUGES) {
    gauge(
      registry,
      `slipway_feed_${name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`,
      help,
      () => feedStats()[name],
    );
  }
}

const FEED_GAUGES = [
  ['steps', 'Steps of the change feed that read something or nothing, since start.'],
  ['changes', 'Changes read by the feed, since start.'],
  ['badRows', 'Rows of the log that could not be decoded, since start. Must be 0.'],
  ['reconnects', 'Times the feed connected again, since start.'],
  ['listenReconnects', 'Times the LISTEN session connected again, since start.'],
  ['snapshotReads', 'Snapshots read for subscribers, since start.'],
  ['ringResumes', 'Resumes served from memory, since start.'],
  ['logResumes', 'Resumes served from the log, since start.'],
  ['slowConsumers', 'Streams ended because their reader was too slow, since start.'],
  ['resets', 'Streams that lost their place and began with a new snapshot, since start.'],
  ['streams', 'Open mailboxes.'],
  ['pendingItems', 'Items that wait in mailboxes.'],
  ['ringChanges', 'Changes held in memory for resumes.'],
  ['ringBytes', 'Bytes held in memory for resumes.'],
] as const;
type FeedGauge = (typeof FEED_GAUGES)[number][0];
