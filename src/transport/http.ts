import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

import { AuthFailure } from '../access/errors.js';
import type { OriginPolicy } from '../access/origins.js';
import type { Clock } from '../kernel/clock.js';
import type { Log } from '../kernel/log.js';
import { StartError } from '../kernel/start-error.js';
import type { GraphQLDoor } from './graphql-door.js';
import type { Authenticator } from './ports.js';
import type { Probes } from './probes.js';
import { refusals } from './refusal.js';
import { bearerOf, GRAPHQL_PATH, hasManyHosts, peerOf, requestIdOf, targetOf } from './request.js';
import type { SocketDoor } from './websocket.js';

/**
 * The listening server: routes, request ids, Host and Origin, CORS. What it logs of a request is its id, method, known
 * path, status and time; never a query string, body, header or token.
 */
export interface HttpDeps {
  readonly graphql: GraphQLDoor;
  readonly sockets: SocketDoor;
  readonly probes: Probes;
  readonly authenticator: Authenticator;
  readonly origins: OriginPolicy;
  readonly clock: Clock;
  readonly log: Log;
  readonly maxConnections: number;
  readonly isDraining: () => boolean;
}

/** How long a client may take to send a request's head, and the whole of it. */
const HEADERS_MS = 10_000;
const REQUEST_MS = 30_000;
const KEEP_ALIVE_MS = 65_000;

export function createHttpServer(deps: HttpDeps): Server {
  const server = createServer({
    headersTimeout: HEADERS_MS,
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: 16 * 1024,
  });
  server.maxConnections = deps.maxConnections;

  server.on('request', (request, response) => {
    const requestId = requestIdOf(request);
    response.setHeader('x-request-id', requestId);
    response.setHeader('x-content-type-options', 'nosniff');
    if (deps.isDraining()) response.setHeader('connection', 'close');
    const path = targetOf(request)?.path;
    watch(deps, request, response, {
      requestId,
      path: path !== undefined && KNOWN_PATHS.has(path) ? path : 'other',
    });
    route(deps, request, response, requestId).catch((error: unknown) =>
      failed(deps, response, requestId, error),
    );
  });
  server.on('upgrade', (request, socket, head) => upgrade(deps, request, socket, head));
  return server;
}

/** Resolves to the port once it listens. */
export function listen(
  server: Server,
  settings: { readonly host: string; readonly port: number },
): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const reason = LISTEN_ERRORS[error.code ?? ''];
      const place = `${settings.host}:${settings.port}`;
      reject(
        reason === undefined
          ? error
          : new StartError(`Cannot listen on ${place}: ${reason}`, { cause: error }),
      );
    });
    server.listen(settings.port, settings.host, () => {
      const address = server.address();
      resolve(typeof address === 'object' && address ? address.port : settings.port);
    });
  });
}

const LISTEN_ERRORS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program has this port. Set SLIPWAY_PORT, or stop the other one.',
  EACCES: 'this user may not open this port. Set SLIPWAY_PORT above 1023.',
  EADDRNOTAVAIL: 'this machine has no such address. Set SLIPWAY_HOST.',
  ENOTFOUND: 'this host name is not known here. Set SLIPWAY_HOST.',
  EAI_AGAIN: 'this host name cannot be looked up here. Set SLIPWAY_HOST.',
};

const METHODS = 'GET, HEAD, POST, OPTIONS';
/** Of use to a page only together with `access-control-allow-origin`. */
const PREFLIGHT = {
  'access-control-allow-methods': METHODS,
  'access-control-allow-headers':
    'authorization, content-type, accept, x-request-id, traceparent, last-event-id',
  'access-control-max-age': '600',
};
const KNOWN_PATHS: ReadonlySet<string> = new Set([GRAPHQL_PATH, '/livez', '/readyz', '/metrics', '/']);

async function route(
  deps: HttpDeps,
  request: IncomingMessage,
  response: ServerResponse,
  requestId: string,
): Promise<void> {
  if (hasManyHosts(request)) {
    return json(response, 400, refusals.badRequest('There must be one Host header.'));
  }
  const target = targetOf(request);
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  // Probes come from the machine itself, by whatever name or address it has, and tell nothing.
  if (isRead && target?.path === '/livez') return deps.probes.live(response);
  if (isRead && target?.path === '/readyz') return deps.probes.ready(response);

  const foreign = deps.origins.refusal(request.headers);
  if (foreign !== undefined) return json(response, 403, refusals.forbidden(foreign));
  const { origin } = request.headers;
  // Of every answer, so that no cache mixes up what it gave to whom.
  response.setHeader('vary', 'origin');
  if (origin !== undefined && deps.origins.crossOrigin(origin)) {
    // Never `*`, and no credentials: a token is sent by the page itself, never by the browser for it.
    response.setHeader('access-control-allow-origin', origin);
    response.setHeader('access-control-expose-headers', 'x-request-id, retry-after');
  }
  if (request.method === 'OPTIONS' && target) {
    response.writeHead(204, { allow: METHODS, ...PREFLIGHT }).end();
    return;
  }
  if (target?.path === GRAPHQL_PATH) return deps.graphql.serve(request, response, target, requestId);
  if (isRead && target?.path === '/metrics') return metrics(deps, request, response);
  if (isRead && target?.path === '/') {
    response.writeHead(307, { location: GRAPHQL_PATH }).end();
    return;
  }
  json(response, 404, refusals.badRequest(`Nothing is here. GraphQL is at ${GRAPHQL_PATH}.`));
}

/** Counts tell how the server is used: for whoever may use it. */
async function metrics(deps: HttpDeps, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const actor = await deps.authenticator.fromBearer(bearerOf(request.headers.authorization), peerOf(request));
  if (actor instanceof AuthFailure) {
    response.setHeader('www-authenticate', 'Bearer');
    return json(response, 401, refusals.unauthenticated(actor.message, actor.reason));
  }
  return deps.probes.metrics(response);
}

function upgrade(deps: HttpDeps, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  // Node leaves the socket to us: an error without a listener would end the process.
  socket.on('error', () => socket.destroy());
  const refuse = (status: string) => {
    socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
  };
  if (hasManyHosts(request)) return refuse('400 Bad Request');
  if (targetOf(request)?.path !== GRAPHQL_PATH) return refuse('404 Not Found');
  if (deps.origins.refusal(request.headers) !== undefined) return refuse('403 Forbidden');
  if (deps.isDraining()) return refuse('503 Service Unavailable');
  deps.sockets.upgrade(request, socket, head);
}

function failed(deps: HttpDeps, response: ServerResponse, requestId: string, error: unknown): void {
  // A client that left is no failure of ours, and cannot be told of one.
  if (response.destroyed || response.writableEnded) return;
  deps.log.error({ requestId, err: error }, 'request failed');
  if (response.headersSent) {
    response.destroy();
    return;
  }
  json(response, 500, refusals.internal(requestId));
}

function json(response: ServerResponse, status: number, error: { toJSON(): unknown }): void {
  const body = Buffer.from(JSON.stringify({ errors: [error.toJSON()] }));
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': body.length,
    'cache-control': 'no-store',
  });
  response.end(body);
}

function watch(
  { clock, log }: HttpDeps,
  request: IncomingMessage,
  response: ServerResponse,
  facts: { readonly requestId: string; readonly path: string },
): void {
  const startMs = clock.monotonicMs();
  response.once('finish', () => {
    const ms = Math.round(clock.monotonicMs() - startMs);
    log.debug({ ...facts, method: request.method, status: response.statusCode, ms }, 'request');
  });
}
