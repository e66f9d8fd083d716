import type { GraphError } from './errors.js';
import { sseParser, type ServerSentEvent } from './sse-parser.js';
import type { ClientClock, Timing } from './timing.js';
import {
  resolveToken,
  type GraphResult,
  type StreamEnd,
  type StreamRequest,
  type StreamTransport,
  type TokenSource,
} from './transport.js';

interface SseTransportOptions {
  readonly url: string;
  readonly token: TokenSource;
  readonly fetch: typeof fetch;
  readonly clock: ClientClock;
  readonly timing: Timing;
  readonly random: () => number;
}

/**
 * One POST for each subscription, answered by a text/event-stream ("distinct connections" of the GraphQL over SSE
 * protocol). By fetch rather than EventSource: that one can send neither a token nor a body.
 */
export function sseTransport(options: SseTransportOptions): StreamTransport {
  const running = new Set<AbortController>();
  return {
    name: 'sse',
    open(request, sink) {
      const controller = new AbortController();
      running.add(controller);
      const cancelTimer = { run: (): void => undefined };
      const expect = (ms: number): void => {
        cancelTimer.run();
        cancelTimer.run = options.clock.after(ms, () =>
          controller.abort(new Error('The server was silent for too long.')),
        );
      };
      let live = true;
      const stop = (): boolean => {
        if (!live) return false;
        live = false;
        cancelTimer.run();
        running.delete(controller);
        return true;
      };
      expect(options.timing.connectMs);
      const events = {
        accepted: () => {
          if (live) sink.accepted();
        },
        next: (result: GraphResult) => {
          if (live) sink.next(result);
        },
        heard: () => {
          if (live) expect(options.timing.idleMs);
        },
      };
      void run(options, request, controller, events)
        .catch((cause: unknown): StreamEnd => ({ type: 'unreachable', cause }))
        .then((end) => {
          if (!stop()) return;
          controller.abort();
          sink.ended(end, options.random());
        });
      return () => {
        if (stop()) controller.abort();
      };
    },
    close() {
      for (const controller of running) controller.abort();
      running.clear();
    },
  };
}

interface RunEvents {
  accepted(): void;
  next(result: GraphResult): void;
  heard(): void;
}

async function run(
  options: SseTransportOptions,
  request: StreamRequest,
  controller: AbortController,
  events: RunEvents,
): Promise<StreamEnd> {
  const token = await resolveToken(options.token);
  const { query, operationName, variables, after } = request;
  const response = await options.fetch(options.url, {
    method: 'POST',
    headers: {
      accept: 'text/event-stream',
      'content-type': 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(after !== null && { 'last-event-id': after }),
    },
    body: JSON.stringify({ query, operationName, variables }),
    signal: controller.signal,
  });
  const type = response.headers.get('content-type') ?? '';
  if (!response.ok || !type.startsWith('text/event-stream') || !response.body) {
    const errors = errorsIn(await response.text());
    return { type: 'refused', status: response.status, errors };
  }
  events.accepted();
  events.heard();
  return readEvents(response.body, events);
}

async function readEvents(body: ReadableStream<Uint8Array>, events: RunEvents): Promise<StreamEnd> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parse = sseParser();
  while (true) {
    const { done, value } = await reader.read();
    // A stream that is over says so by `complete`; one that only stops was cut.
    if (done) return { type: 'unreachable', cause: new Error('The stream was cut.') };
    events.heard();
    for (const event of parse(decoder.decode(value, { stream: true }))) {
      const end = take(event, events);
      if (end) return end;
    }
  }
}

function take(event: ServerSentEvent, events: RunEvents): StreamEnd | null {
  switch (event.event) {
    case 'next': {
      const result: unknown = JSON.parse(event.data);
      if (!isObject(result)) throw new Error('The stream carries something else than results.');
      // A refusal without data is the operation's end, told in the shape of a result.
      const errors = errorsIn(event.data);
      if (errors.length > 0 && !isObject(result['data'])) return { type: 'errors', errors };
      events.next(result);
      return null;
    }
    case 'complete':
      return { type: 'completed' };
    default:
      return null;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The `errors` of a JSON answer; none if it is not one. */
export function errorsIn(text: string): readonly GraphError[] {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return []; // A page of a proxy, say: its status has to do.
  }
  const errors = isObject(body) ? body['errors'] : undefined;
  return Array.isArray(errors) ? errors.filter(isGraphError) : [];
}

function isGraphError(value: unknown): value is GraphError {
  return isObject(value) && typeof value['message'] === 'string';
}
