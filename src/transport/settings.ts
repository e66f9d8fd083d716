import type { Config } from '../config/config.js';
import { DEFAULT_DRAIN, type DrainSettings } from './drain.js';
import { DEFAULT_LIMITS, type TransportLimits } from './limits.js';

export interface TransportSettings {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  readonly limits: TransportLimits;
  readonly drain: DrainSettings;
  /** Off: `__schema` and `__type` are refused, and errors suggest no names. */
  readonly introspection: boolean;
  readonly graphiql: boolean;
  /** Queries by GET, as the GraphQL-over-HTTP specification allows. */
  readonly getQueries: boolean;
  /** Queries and mutations over WebSocket, not only subscriptions. */
  readonly socketMutations: boolean;
}

/** What of the configuration concerns the transports; bounds without a setting have their default. */
export function transportSettings({ server, limits, drain }: Config): TransportSettings {
  return {
    host: server.host,
    port: server.port,
    introspection: limits.introspection,
    // It shows nothing without introspection.
    graphiql: limits.graphiql && limits.introspection,
    getQueries: limits.getQueries,
    socketMutations: limits.webSocketMutations,
    drain: { ...DEFAULT_DRAIN, noticeMs: drain.noticeSeconds * 1_000, spreadMs: drain.spreadSeconds * 1_000 },
    limits: {
      ...DEFAULT_LIMITS,
      payloadBytes: limits.maxBodyBytes,
      documentTokens: limits.maxTokens,
      documentDepth: limits.maxDepth,
      documentAliases: limits.maxAliases,
      documentDirectives: limits.maxDirectives,
      operationCost: limits.maxComplexity,
      executionMs: limits.requestTimeoutSeconds * 1_000,
      subscriptionsPerSocket: limits.maxSubscriptionsPerSocket,
      socketsPerPrincipal: limits.maxSocketsPerPrincipal,
      socketsLoopback: limits.maxSocketsLoopback,
      subscriptionsPerProcess: limits.maxSubscriptions,
      messagesPerSecond: limits.socketMessagesPerSecond,
      messagesBurst: limits.socketMessageBurst,
      initTimeoutMs: limits.socketInitTimeoutSeconds * 1_000,
      pingEveryMs: limits.socketPingSeconds * 1_000,
      pongWithinMs: limits.socketPongTimeoutSeconds * 1_000,
      connectionAgeMs: limits.socketMaxAgeMinutes * 60_000,
    },
  };
}
