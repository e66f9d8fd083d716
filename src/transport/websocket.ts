import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

import { GraphQLError, type ExecutionArgs, type ExecutionResult, type GraphQLSchema } from 'graphql';
import {
  CloseCode as ProtocolClose,
  handleProtocols,
  makeServer,
  MessageType,
  type ServerOptions,
} from 'graphql-ws';
import { WebSocketServer, type RawData, type WebSocket } from 'ws';

import type { Caller } from '../access/caller.js';
import { AuthFailure } from '../access/errors.js';
import type { Clock } from '../kernel/clock.js';
import type { Log } from '../kernel/log.js';
import { CLOSE, type Connections } from './connections.js';
import type { Hub, StreamEnd } from './hub.js';
import type { InFlight } from './in-flight.js';
import type { TransportLimits } from './limits.js';
import type { TransportMetrics } from './metrics.js';
import { createOutlet, type FlushQueue } from './outlet.js';
import type { Answer, Pipeline, Preparation } from './pipeline.js';
import type { OperationKind } from './plans.js';
import type { Authenticator } from './ports.js';
import { codeOf, refusals } from './refusal.js';
import { bearerOf, peerOf, traceIdOf } from './request.js';
import { CLOSE_GRACE_MS, SocketOperation, SocketSession } from './socket-session.js';

/**
 * The `graphql-transport-ws` protocol. graphql-ws keeps its rules (init, ack, ping, complete, errors, its close codes);
 * this door adds credentials, budgets and caps, its own set of operation ids, and streams whose events the hub writes.
 * Guarantees: a refused operation is an `error` of that operation and never ends the socket; an id that is still in
 * use is never used twice, not even while its first use is pending; close codes are those of CLOSE and the protocol's.
 */
export interface SocketDoor {
  /** For the server's `upgrade` event, once path, host and origin are accepted. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  close(): void;
}

export interface SocketDoorDeps {
  readonly schema: GraphQLSchema;
  readonly pipeline: Pipeline;
  readonly hub: Hub;
  readonly connections: Connections;
  readonly authenticator: Authenticator;
  readonly limits: TransportLimits;
  readonly metrics: TransportMetrics;
  readonly clock: Clock;
  readonly log: Log;
  readonly inFlight: InFlight;
  readonly onTickEnd: FlushQueue;
  readonly random: () => number;
  /** Queries and mutations too, not only subscriptions. */
  readonly allOperations: boolean;
}

/** Ids are repeated in every frame of their operation. */
const OPERATION_ID_MAX = 128;

interface Extra {
  readonly session: SocketSession;
  readonly request: IncomingMessage;
}
type Init = Readonly<Record<string, unknown>>;

export function createSocketDoor(deps: SocketDoorDeps): SocketDoor {
  const protocol = makeServer<Init, Extra>(protocolOptions(deps));
  const options = {
    noServer: true,
    maxPayload: deps.limits.payloadBytes,
    perMessageDeflate: false, // frames of events are written by hand, and compressing them per socket would undo sharing
    handleProtocols,
    closeTimeout: CLOSE_GRACE_MS, // known to ws 8.19 and later, not yet to its types
  };
  const server = new WebSocketServer(options);

  function opened(ws: WebSocket, raw: Duplex, request: IncomingMessage): void {
    const outlet = createOutlet(raw, deps.limits, deps.onTickEnd);
    const session = new SocketSession(deps, ws, outlet, traceIdOf(request));
    deps.connections.add(session);
    let receive: ((text: string) => Promise<void>) | undefined;
    const closed = protocol.opened(
      {
        protocol: ws.protocol,
        send: (message) => session.say(message),
        close: (code, reason) => {
          outlet.flush();
          ws.close(code, reason);
        },
        onMessage(callback) {
          receive = callback;
        },
      },
      { session, request },
    );
    ws.on('message', (data, isBinary) => {
      if (receive) onMessage(deps, session, receive, data, isBinary);
    });
    // Control frames cost as much as messages: a flood of pings is a flood.
    ws.on('ping', () => session.spend(deps.connections.nowMs));
    ws.on('pong', () => session.spend(deps.connections.nowMs));
    ws.on('error', () => ws.terminate()); // a broken frame or socket; ws has sent its close code already where there is one
    ws.once('close', (code, reason) => {
      session.release();
      deps.connections.remove(session, code);
      if (session.actor) deps.connections.dismiss(session.actor);
      closed(code, String(reason)).catch((error: unknown) =>
        deps.log.error({ err: error }, 'closing a socket failed'),
      );
    });
  }

  return {
    upgrade(request, socket, head) {
      server.handleUpgrade(request, socket, head, (ws) => opened(ws, socket, request));
    },
    close: () => server.close(),
  };
}

const CLIENT_TYPES: ReadonlySet<unknown> = new Set([
  MessageType.ConnectionInit,
  MessageType.Ping,
  MessageType.Pong,
  MessageType.Subscribe,
  MessageType.Complete,
]);

function onMessage(
  deps: SocketDoorDeps,
  session: SocketSession,
  receive: (text: string) => Promise<void>,
  data: RawData,
  isBinary: boolean,
): void {
  if (session.ws.readyState !== session.ws.OPEN || !session.spend(deps.connections.nowMs)) return;
  const text = isBinary || !(data instanceof Buffer) ? '' : data.toString(); // ws gives one Buffer unless told otherwise
  const { type, id = '' } = glance(text);
  // graphql-ws takes a server's own message from a client for a bug of ours.
  if (!CLIENT_TYPES.has(type)) {
    session.ws.close(ProtocolClose.BadRequest, 'Invalid message received');
    return;
  }
  const known = session.operations.get(id);
  if (type === MessageType.Complete) known?.cancel();
  if (type === MessageType.Subscribe && session.actor) {
    // Completed by the client, but not yet gone: graphql-ws has forgotten it and would run both.
    if (known?.cancelled) {
      return session.say(refusedOperation(id, refusals.badRequest('This id is still in use.')));
    }
    if (id.length > OPERATION_ID_MAX) {
      return session.say(
        refusedOperation(id.slice(0, OPERATION_ID_MAX), refusals.badRequest('The id is too long.')),
      );
    }
  }
  const done = receive(text).catch((error: unknown) => {
    deps.log.error({ err: error }, 'a socket message failed');
    session.end(CLOSE.internal, 'Internal error');
  });
  // `onSubscribe` ran within the call above, and registered the operation if there is one.
  const operation = session.operations.get(id);
  if (operation && operation !== known) {
    void done.then(() => session.operations.get(id) === operation && session.operations.delete(id));
  }
}

function glance(text: string): { type?: unknown; id?: string } {
  try {
    const message: unknown = JSON.parse(text);
    if (typeof message !== 'object' || message === null) return {};
    const type = 'type' in message ? message.type : undefined;
    return 'id' in message && typeof message.id === 'string' ? { type, id: message.id } : { type };
  } catch {
    return {};
  }
}

function refusedOperation(id: string, error: GraphQLError): string {
  return JSON.stringify({ id, type: MessageType.Error, payload: [error.toJSON()] });
}

function protocolOptions(deps: SocketDoorDeps): ServerOptions<Init, Extra> {
  const { pipeline, limits, metrics } = deps;
  const allowed: ReadonlySet<OperationKind> = new Set(
    deps.allOperations ? ['query', 'mutation', 'subscription'] : ['subscription'],
  );
  const count = (kind: string, outcome: string) => metrics.operations.inc({ transport: 'ws', kind, outcome });

  return {
    connectionInitWaitTimeout: limits.initTimeoutMs,
    onConnect: ({ extra, connectionParams }) => connect(deps, extra, connectionParams),
    onSubscribe({ extra: { session } }, id, payload) {
      const caller = callerOf(session);
      const operation = new SocketOperation(session, id, caller);
      session.operations.set(id, operation);
      const full = noRoom(deps, session);
      const { prepared, errors }: Preparation = full
        ? { errors: pipeline.mask([full], caller, 'execute') }
        : pipeline.prepare(payload, caller, allowed);
      operation.prepared = prepared;
      operation.errors = errors;
      if (!prepared) {
        count('refused', codeOf(errors[0]));
        return [new GraphQLError('refused')]; // `onError` puts the operation's own errors in its place
      }
      return {
        schema: deps.schema,
        document: prepared.plan.document,
        contextValue: operation,
        rootValue: null,
      };
    },
    execute: (args) => runSingle(deps, operationOf(args), count),
    subscribe: (args) => streamOf(deps, operationOf(args), count),
    // Answers are masked and formatted already.
    onNext: (_context, _id, _payload, _args, result) => result as Answer & { data?: Record<string, unknown> }, // made by `runSingle`
    onError: ({ extra: { session } }, id, _payload, errors) =>
      session.operations.get(id)?.errors ?? pipeline.mask(errors, callerOf(session), 'execute'),
  };
}

async function connect(
  deps: SocketDoorDeps,
  { session, request }: Extra,
  params: Init | undefined,
): Promise<boolean> {
  const { connections, hub } = deps;
  const authorization =
    params?.['authorization'] ?? params?.['Authorization'] ?? request.headers.authorization;
  const actor = await deps.authenticator.fromBearer(bearerOf(authorization), peerOf(request));
  if (session.ended || session.ws.readyState !== session.ws.OPEN) return false;
  if (actor instanceof AuthFailure) {
    session.end(actor.reason === 'expired' ? CLOSE.expired : CLOSE.denied, actor.message);
    return false;
  }
  if (hub.full) {
    session.end(CLOSE.overload, 'The server is full');
    return false;
  }
  if (!connections.admit(actor)) {
    session.end(CLOSE.limit, 'Too many sockets of this principal');
    return false;
  }
  session.actor = actor;
  return true;
}

function noRoom({ hub, limits }: SocketDoorDeps, session: SocketSession): GraphQLError | undefined {
  if (session.operations.size > limits.subscriptionsPerSocket) {
    return refusals.tooMany('operations on this socket');
  }
  return hub.full ? refusals.overloaded() : undefined;
}

function callerOf(session: SocketSession): Caller {
  if (!session.actor) throw new Error('an operation before the connection was acknowledged');
  return { actor: session.actor, traceId: session.traceId, requestId: randomUUID() };
}

function operationOf(args: ExecutionArgs): SocketOperation {
  if (args.contextValue instanceof SocketOperation) return args.contextValue;
  throw new Error('an operation that was not prepared');
}

type Count = (kind: string, outcome: string) => void;

async function runSingle(
  deps: SocketDoorDeps,
  operation: SocketOperation,
  count: Count,
): Promise<ExecutionResult> {
  const { prepared, caller } = operation;
  if (!prepared) throw new Error('an operation that was not prepared');
  const leave = deps.inFlight.enter();
  try {
    const result = await deps.pipeline.run(prepared, caller, operation.turns);
    count(prepared.plan.kind, result.errors ? codeOf(result.errors[0]) : 'ok');
    return result as ExecutionResult; // errors are formatted already; `onNext` passes them on as they are
  } finally {
    leave();
  }
}

/** Opens the stream, unless it is over before it began. */
function endOf({ pipeline }: SocketDoorDeps, operation: SocketOperation): Promise<StreamEnd> {
  const { prepared, caller, session } = operation;
  if (operation.cancelled || !prepared) return Promise.resolve({ type: 'closed' });
  const subscription = session.subscribe(operation, prepared);
  if (subscription) return subscription.ended;
  // Others that came in the same packet have taken the last places since `onSubscribe` looked.
  return Promise.resolve({
    type: 'failed',
    errors: pipeline.mask([refusals.overloaded()], caller, 'execute'),
  });
}

/** Carries the life of a stream for graphql-ws: it yields nothing, ends with it, and ends it when asked to. */
function streamOf(deps: SocketDoorDeps, operation: SocketOperation, count: Count): AsyncGenerator<never> {
  const ended = endOf(deps, operation);
  const finished: IteratorReturnResult<undefined> = { done: true, value: undefined };
  void ended.then((end) => count('subscription', end.type === 'failed' ? codeOf(end.errors[0]) : 'ok'));
  const life = {
    async next() {
      const end = await ended;
      if (end.type === 'failed') {
        operation.errors = end.errors;
        throw new GraphQLError('ended'); // `onError` puts the stream's own errors in its place
      }
      return finished;
    },
    return() {
      operation.cancel();
      return Promise.resolve(finished);
    },
    throw: () => Promise.resolve(finished),
    [Symbol.asyncIterator]: () => life,
    [Symbol.asyncDispose]: () => Promise.resolve(operation.cancel()),
  };
  return life;
}
