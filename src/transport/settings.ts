import type { Config } from '../config/config.js';
import type { TransportSettings } from './index.js';
import { DEFAULT_LIMITS } from './limits.js';

/** After the last close of a drain, for what still runs. */
const FINISH_MS = 5_000;

/** The transports' part of the configuration, in their units. */
export function transportSettings({ server, limits, drain }: Config): TransportSettings {
  return {
    host: server.host,
    port: server.port,
    introspection: limits.introspection,
    graphiql: true,
    getQueries: true,
    socketMutations: limits.webSocketMutations,
    drain: {
      noticeMs: drain.noticeSeconds * 1_000,
      spreadMs: drain.spreadSeconds * 1_000,
      finishMs: FINISH_MS,
    },
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
