import type { IncomingMessage, ServerResponse } from 'node:http';

import { GraphQLError } from 'graphql';

import type { Caller } from '../access/caller.js';
import { AuthFailure } from '../access/errors.js';
import type { Clock } from '../kernel/clock.js';
import type { Log } from '../kernel/log.js';
import { readTurns } from '../kernel/read-turns.js';
import type { GraphiQLPage } from './graphiql.js';
import type { InFlight } from './in-flight.js';
import type { TransportLimits } from './limits.js';
import type { TransportMetrics } from './metrics.js';
import type { Answer, OperationRequest, Pipeline, Preparation, Prepared } from './pipeline.js';
import type { OperationKind } from './plans.js';
import type { Authenticator } from './ports.js';
import { codeOf, refusals, statusOf } from './refusal.js';
import {
  acceptedOf,
  bearerOf,
  bodyOf,
  carriesJson,
  peerOf,
  requestFromBody,
  requestFromQuery,
  traceIdOf,
  type Accepted,
  type Target,
} from './request.js';
import type { EventStreams } from './sse.js';

/**
 * GraphQL over HTTP on node:http itself: the pipeline does all that a GraphQL server library would, and its layers of requests and
 * responses would cost more than a small operation does. GET carries queries (and event streams), POST carries JSON
 * only: any other body could be sent by a foreign page without a preflight.
 */
export interface GraphQLDoor {
  serve(request: IncomingMessage, response: ServerResponse, target: Target, requestId: string): Promise<void>;
}

export interface GraphQLDoorDeps {
  readonly pipeline: Pipeline;
  readonly streams: EventStreams;
  readonly graphiql: GraphiQLPage | undefined;
  readonly authenticator: Authenticator;
  readonly limits: TransportLimits;
  readonly metrics: TransportMetrics;
  readonly clock: Clock;
  readonly log: Log;
  readonly inFlight: InFlight;
  /** Queries by GET. Off: POST only, apart from GraphiQL and event streams. */
  readonly getQueries: boolean;
}

const BY_POST: ReadonlySet<OperationKind> = new Set(['query', 'mutation']);
const BY_GET: ReadonlySet<OperationKind> = new Set(['query']);
const BY_POST_STREAM: ReadonlySet<OperationKind> = new Set(['query', 'mutation', 'subscription']);
const BY_GET_STREAM: ReadonlySet<OperationKind> = new Set(['query', 'subscription']);

export function createGraphQLDoor(deps: GraphQLDoorDeps): GraphQLDoor {
  const { authenticator, limits, pipeline, streams } = deps;

  async function run(prepared: Prepared, { http: { response }, caller }: Exchange): Promise<Answer> {
    const leave = deps.inFlight.enter();
    const startMs = deps.clock.monotonicMs();
    const { kind } = prepared.plan;
    const turns = readTurns();
    // Who goes away need not be read for any more. A mutation goes on, whoever waits for it.
    if (kind === 'query') response.once('close', () => turns.end());
    try {
      const answer = await pipeline.run(prepared, caller, turns);
      deps.metrics.operationSeconds.observe({ kind }, (deps.clock.monotonicMs() - startMs) / 1_000);
      return answer;
    } finally {
      leave();
    }
  }

  /** Answers, or returns the event stream to be served: one that may last for hours is nothing a drain waits for. */
  async function operate(request: OperationRequest, exchange: Exchange): Promise<Stream | undefined> {
    const { http, accepted, caller, isGet } = exchange;
    // With both types accepted the operation decides: a subscription cannot be answered at once.
    const kinds = accepted.stream ? (isGet ? BY_GET_STREAM : BY_POST_STREAM) : isGet ? BY_GET : BY_POST;
    const preparation = pipeline.prepare(request, caller, kinds);
    const { prepared } = preparation;
    if (accepted.onlyStream || (accepted.stream && prepared?.plan.kind === 'subscription')) {
      return () => serveStream(preparation, exchange);
    }
    if (!prepared) {
      note('refused', preparation.errors, caller);
      // GET is refused for what it must not carry, whatever JSON type was asked for.
      const wrongMethod = isGet && pipeline.prepare(request, caller, BY_POST_STREAM).prepared !== undefined;
      answerJson(http.response, accepted, { errors: preparation.errors }, wrongMethod ? 405 : undefined);
      return undefined;
    }
    const answer = await run(prepared, exchange);
    note(prepared.plan.kind, answer.errors, caller);
    answerJson(http.response, accepted, answer);
    return undefined;
  }

  function serveStream(preparation: Preparation, exchange: Exchange): Promise<void> {
    const { http, caller } = exchange;
    const last = http.request.headers['last-event-id'];
    if (!preparation.prepared) note('refused', preparation.errors, caller);
    return streams.serve(http.response, caller, {
      prepared: preparation.prepared,
      errors: preparation.errors,
      after: typeof last === 'string' && last !== '' ? last : undefined,
      async run(prepared) {
        const answer = await run(prepared, exchange);
        note(prepared.plan.kind, answer.errors, caller);
        return answer;
      },
    });
  }

  function note(kind: string, errors: Answer['errors'], caller: Caller): void {
    const outcome = errors ? codeOf(errors[0]) : 'ok';
    deps.metrics.operations.inc({ transport: 'http', kind, outcome });
    deps.log.debug({ requestId: caller.requestId, actor: caller.actor.id, kind, outcome }, 'operation');
  }

  async function handle(
    request: IncomingMessage,
    response: ServerResponse,
    target: Target,
    requestId: string,
  ): Promise<Stream | undefined> {
    const accepted = acceptedOf(request);
    const isGet = request.method === 'GET' || request.method === 'HEAD';
    const refuse = (status: number, error: GraphQLError): undefined => {
      deps.metrics.operations.inc({ transport: 'http', kind: 'refused', outcome: codeOf(error) });
      answerJson(response, accepted, { errors: [error.toJSON()] }, status);
    };
    if (!isGet && request.method !== 'POST') {
      response.setHeader('allow', 'GET, HEAD, POST, OPTIONS');
      return refuse(405, refusals.badRequest('Use POST, or GET for queries.'));
    }
    if (isGet && !deps.getQueries && !accepted.stream) {
      response.setHeader('allow', 'POST, OPTIONS');
      return refuse(405, refusals.badRequest('Use POST.'));
    }
    // Before the body is read: a stranger's bodies cost nothing.
    const actor = await authenticator.fromBearer(bearerOf(request.headers.authorization), peerOf(request));
    if (actor instanceof AuthFailure) {
      response.setHeader('www-authenticate', 'Bearer');
      return refuse(401, refusals.unauthenticated(actor.message, actor.reason));
    }
    const asked = isGet
      ? requestFromQuery(target.query)
      : await deps.inFlight.receive(requestFromPost(request, limits));
    if (asked instanceof Refused) return refuse(asked.status, asked.error);
    if (asked instanceof GraphQLError) return refuse(400, asked);
    const caller: Caller = { actor, requestId, traceId: traceIdOf(request) };
    return operate(asked, { http: { request, response }, accepted, caller, isGet });
  }

  return {
    async serve(request, response, target, requestId) {
      const isGet = request.method === 'GET' || request.method === 'HEAD';
      if (isGet && deps.graphiql && target.query === '' && acceptedOf(request).html) {
        return deps.graphiql.serve(request, response);
      }
      const leave = deps.inFlight.enter();
      let stream: Stream | undefined;
      try {
        stream = await handle(request, response, target, requestId);
      } finally {
        leave();
      }
      await stream?.();
    },
  };
}

type Stream = () => Promise<void>;

interface Exchange {
  readonly http: { readonly request: IncomingMessage; readonly response: ServerResponse };
  readonly accepted: Accepted;
  readonly caller: Caller;
  readonly isGet: boolean;
}

/** Refused by HTTP, before there is a GraphQL request. */
class Refused {
  readonly status: number;
  readonly error: GraphQLError;
  constructor(status: number, error: GraphQLError) {
    this.status = status;
    this.error = error;
  }
}

async function requestFromPost(
  request: IncomingMessage,
  limits: TransportLimits,
): Promise<OperationRequest | GraphQLError | Refused> {
  if (!carriesJson(request)) {
    return new Refused(415, refusals.badRequest('Send `content-type: application/json`, in UTF-8.'));
  }
  // Unpacking would let a small body become a large one.
  if (
    request.headers['content-encoding'] !== undefined &&
    request.headers['content-encoding'] !== 'identity'
  ) {
    return new Refused(415, refusals.badRequest('Send the body without compression.'));
  }
  const body = await bodyOf(request, limits.payloadBytes);
  return body === undefined ? new Refused(413, refusals.tooLarge()) : requestFromBody(body);
}

const ONE_WRITE_MAX = 4_096;

/** `status` overrides the rule: 200 for `application/json`, the first error's own for the other type without data. */
function answerJson(response: ServerResponse, accepted: Accepted, answer: Answer, status?: number): void {
  const refused = answer.errors !== undefined && answer.data === undefined;
  const own = refused && accepted.json !== 'application/json' ? statusOf(codeOf(answer.errors[0])) : 200;
  const text = JSON.stringify(answer);
  // Node sends a short text with the head in one write; a long one it would copy once more.
  const body = text.length <= ONE_WRITE_MAX ? text : Buffer.from(text);
  const again = answer.errors?.[0]?.extensions?.['retryAfterSeconds'];
  if (typeof again === 'number') response.setHeader('retry-after', again);
  response.writeHead(status ?? own, {
    'content-type': `${accepted.json}; charset=utf-8`,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
  });
  response.end(body);
}
