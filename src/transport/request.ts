import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

import type { GraphQLError } from 'graphql';

import type { OperationRequest } from './pipeline.js';
import { refusals } from './refusal.js';

/**
 * Reading a request of node:http: its ids, its credentials, what it accepts, its body up to a bound, and the GraphQL
 * request in it. Nothing here is logged.
 */

export const GRAPHQL_PATH = '/graphql';

const REQUEST_ID = /^[A-Za-z0-9_.:-]{8,128}$/;
/** The client's own id if it is well-formed, so that its log and ours can be joined; otherwise one of ours. */
export function requestIdOf(request: IncomingMessage): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID();
}

/**
 * Whether the Host header is there more than once. Node keeps the first; a proxy in front may have judged by the other,
 * so neither is believed.
 */
export function hasManyHosts({ rawHeaders }: IncomingMessage): boolean {
  let hosts = 0;
  // Names and values take turns.
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts > 1;
}

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(-|$)/;
/** The trace id of a W3C `traceparent`, or null. */
export function traceIdOf(request: IncomingMessage): string | null {
  const given = request.headers['traceparent'];
  const traceId = typeof given === 'string' ? TRACEPARENT.exec(given)?.[1] : undefined;
  return traceId === undefined || /^0+$/.test(traceId) ? null : traceId;
}

/** The token of `Bearer <token>`; null when there is none. Another scheme is a token that nobody has. */
export function bearerOf(authorization: unknown): string | null {
  if (typeof authorization !== 'string' || authorization === '') return null;
  return /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? '';
}

/** The remote address; empty once the socket is gone. */
export function peerOf(request: IncomingMessage): { readonly address: string } {
  return { address: request.socket.remoteAddress ?? '' };
}

export interface Target {
  readonly path: string;
  readonly query: string;
}
/** Undefined for targets that are no path (proxy requests, `*`). */
export function targetOf(request: IncomingMessage): Target | undefined {
  const url = request.url ?? '';
  if (!url.startsWith('/')) return undefined;
  const at = url.indexOf('?');
  return at < 0 ? { path: url, query: '' } : { path: url.slice(0, at), query: url.slice(at + 1) };
}

const JSON_TYPE = 'application/json';
const GRAPHQL_TYPE = 'application/graphql-response+json';
const STREAM_TYPE = 'text/event-stream';

export interface Accepted {
  readonly json: typeof JSON_TYPE | typeof GRAPHQL_TYPE;
  readonly stream: boolean;
  /** Streams are asked for, and JSON is not: every answer comes as an event stream. */
  readonly onlyStream: boolean;
  readonly html: boolean;
}

const ONLY_JSON: Accepted = { json: JSON_TYPE, stream: false, onlyStream: false, html: false };

/** The first of the two JSON types that is named; `application/json` for whoever names none. */
export function acceptedOf(request: IncomingMessage): Accepted {
  if (request.headers.accept === JSON_TYPE) return ONLY_JSON;
  const types = (request.headers.accept ?? '')
    .toLowerCase()
    .split(',')
    .map((part) => part.split(';', 1)[0]?.trim() ?? '');
  const json = types.find((type) => type === JSON_TYPE || type === GRAPHQL_TYPE);
  const stream = types.includes(STREAM_TYPE);
  return {
    json: json === GRAPHQL_TYPE ? GRAPHQL_TYPE : JSON_TYPE,
    stream,
    onlyStream: stream && json === undefined,
    html: types.includes('text/html'),
  };
}

/** A browser sends this type across origins only after a preflight; the others could be sent by any page. */
export function carriesJson(request: IncomingMessage): boolean {
  if (request.headers['content-type'] === JSON_TYPE) return true;
  const [type, ...parameters] = (request.headers['content-type'] ?? '').toLowerCase().split(';');
  if (type?.trim() !== JSON_TYPE) return false;
  const charset = parameters.map((one) => one.trim()).find((one) => one.startsWith('charset='));
  return charset === undefined || /^charset="?utf-?8"?$/.test(charset);
}

/** The body's text, or undefined when it is larger than `maxBytes`: no more than that is ever held. */
export function bodyOf(request: IncomingMessage, maxBytes: number): Promise<string | undefined> {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) return Promise.resolve(undefined);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const take = (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBytes) {
        request.off('data', take);
        resolve(undefined);
      } else {
        chunks.push(chunk);
      }
    };
    request.on('data', take);
    request.once('end', () =>
      resolve((chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)).toString('utf8')),
    );
    request.once('error', reject);
    request.once('close', () => {
      // Comes after every request; what was read to its end was not aborted.
      if (!request.readableEnded) reject(new Error('the request was aborted'));
    });
  });
}

export function requestFromQuery(query: string): OperationRequest | GraphQLError {
  const parameters = new URLSearchParams(query);
  const json = (name: string): unknown => {
    const text = parameters.get(name);
    if (text === null || text === '') return undefined;
    try {
      return JSON.parse(text);
    } catch {
      return text; // refused below: it is no object
    }
  };
  return requestFromParameters({
    query: parameters.get('query') ?? undefined,
    documentId: parameters.get('documentId') ?? undefined,
    operationName: parameters.get('operationName') ?? undefined,
    variables: json('variables'),
    extensions: json('extensions'),
  });
}

export function requestFromBody(body: string): OperationRequest | GraphQLError {
  let parameters: unknown;
  try {
    parameters = JSON.parse(body);
  } catch {
    return refusals.badRequest('The body is no JSON.');
  }
  if (Array.isArray(parameters)) return refusals.badRequest('Send one operation at a time, not a list.');
  if (!isRecord(parameters)) return refusals.badRequest('The body must be a JSON object with `query`.');
  return requestFromParameters(parameters);
}

function requestFromParameters(
  parameters: Readonly<Record<string, unknown>>,
): OperationRequest | GraphQLError {
  const { query = '', documentId, operationName, variables, extensions } = parameters;
  if (isSet(documentId) && typeof documentId !== 'string') {
    return refusals.badRequest('`documentId` must be text.');
  }
  if (typeof query !== 'string' || (query === '' && !isSet(documentId))) {
    return refusals.badRequest('`query` must be the text of a document.');
  }
  if (isSet(operationName) && typeof operationName !== 'string') {
    return refusals.badRequest('`operationName` must be text.');
  }
  if (isSet(variables) && !isRecord(variables)) return refusals.badRequest('`variables` must be an object.');
  if (isSet(extensions) && !isRecord(extensions)) {
    return refusals.badRequest('`extensions` must be an object.');
  }
  return {
    query,
    documentId: typeof documentId === 'string' ? documentId : undefined,
    operationName: typeof operationName === 'string' ? operationName : null,
    variables: isRecord(variables) ? variables : null,
  };
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
