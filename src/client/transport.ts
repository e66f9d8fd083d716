import type { GraphError } from './errors.js';

/** A result of one execution, as both protocols carry it. */
export interface GraphResult {
  readonly data?: Readonly<Record<string, unknown>> | null | undefined;
  readonly errors?: readonly GraphError[] | undefined;
  readonly extensions?: Readonly<Record<string, unknown>> | undefined;
}

export interface StreamRequest {
  readonly query: string;
  readonly operationName: string | undefined;
  /** With `after` already in it, where the document declares it. */
  readonly variables: Readonly<Record<string, unknown>>;
  /** Sent as `Last-Event-ID` by transports that have it. */
  readonly after: string | null;
}

/** Why one attempt at a stream is over. */
export type StreamEnd =
  /** The server said that nothing more comes. */
  | { readonly type: 'completed' }
  /** The server ended or refused this operation; others on the same connection go on. */
  | { readonly type: 'errors'; readonly errors: readonly GraphError[] }
  /** The WebSocket was closed. 1006 if it broke or never opened. */
  | { readonly type: 'closed'; readonly code: number; readonly reason: string }
  /** An HTTP answer other than a stream. */
  | { readonly type: 'refused'; readonly status: number; readonly errors: readonly GraphError[] }
  /** Nothing answered, the connection broke, or it stayed silent for too long. */
  | { readonly type: 'unreachable'; readonly cause: unknown };

/** Receives one attempt. `ended` is the last call, exactly once, and never comes from inside `open`. */
export interface StreamSink {
  /** The server has taken the operation; events may follow. */
  accepted(): void;
  next(result: GraphResult): void;
  /**
   * `draw` in [0, 1) is the random part of the wait before the next attempt. Operations lost with one connection get
   * the same one, so that they come back together on one connection, while other clients come at other moments.
   */
  ended(end: StreamEnd, draw: number): void;
}

export type TransportName = 'websocket' | 'sse';

export interface StreamTransport {
  /** Which protocol the next attempt uses. */
  readonly name: TransportName;
  /** Starts one attempt. The returned function gives it up; the sink hears nothing afterwards. */
  open(request: StreamRequest, sink: StreamSink): () => void;
  /** Ends everything that is open, without telling sinks. */
  close(): void;
}

/** Called for each attempt and each request, so that an expired token is replaced by whoever knows how. */
export type TokenSource = string | (() => string | Promise<string>) | undefined;

export async function resolveToken(source: TokenSource): Promise<string | undefined> {
  return typeof source === 'function' ? await source() : source;
}
