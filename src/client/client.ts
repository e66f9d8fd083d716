import { autoTransport } from './auto-transport.js';
import { documentFacts, type SlipwayDocument, type Arguments } from './document.js';
import { SlipwayRequestError } from './errors.js';
import { sendRequest, type RequestOptions } from './request.js';
import type { ResyncReason, StreamKind } from './resume-model.js';
import { sseTransport } from './sse-transport.js';
import { statusBoard, type ClientStatus } from './status-board.js';
import { ResumingStream, type StreamStatus } from './stream.js';
import { DEFAULT_TIMING, systemClientClock, type ClientClock, type Timing } from './timing.js';
import type { StreamTransport, TokenSource } from './transport.js';
import { webSocketTransport } from './websocket-transport.js';
import type { WebSocketConstructor } from './socket.js';

export interface SlipwayClientOptions {
  /** Of the GraphQL endpoint: `http://127.0.0.1:4000/graphql`. */
  readonly url: string;
  /** Asked again for each request and each attempt to connect, so a function can give a fresh one. None if left out. */
  readonly token?: TokenSource;
  /** The platform's own if left out. */
  readonly fetch?: typeof fetch | undefined;
  /** The platform's own if left out; Node 20 has none, there pass the one of the package `ws`. */
  readonly webSocketImpl?: WebSocketConstructor | undefined;
  /** `auto` (the default): WebSocket, and SSE if no WebSocket ever opened or the platform has none. */
  readonly transport?: 'auto' | 'websocket' | 'sse' | undefined;
  /** Hears how all subscriptions together are doing. Called at once, inside of what caused it; must not throw. */
  readonly onStatus?: ((status: ClientStatus) => void) | undefined;
  /** Changes single waits; the rest stays at DEFAULT_TIMING. */
  readonly timing?: Partial<Timing> | undefined;
  readonly clock?: ClientClock | undefined;
  /** In [0, 1). */
  readonly random?: (() => number) | undefined;
}

export interface SubscribeOptions {
  /** Ends the iteration, without a failure. */
  readonly signal?: AbortSignal | undefined;
  readonly onStatus?: ((status: StreamStatus) => void) | undefined;
  /**
   * What was received until now is about to be replaced by a new snapshot. Called in order with the events, when the
   * reader gets there.
   */
  readonly onResync?: ((reason: ResyncReason) => void) | undefined;
  /** Events were missed: go on from now. Without it the iteration fails (CURSOR_EXPIRED or GAP). In order, as above. */
  readonly onGap?: ((reason: string) => void) | undefined;
  /** `watch` if the root field's name begins so, `every` otherwise. */
  readonly kind?: StreamKind | undefined;
}

/** The events of one subscription, for one reader. It is open from the call of `subscribe`, not from the first read. */
export interface SlipwayStream<Result> extends AsyncIterableIterator<Result> {
  /** Resolves once the server has accepted it: what changes from then on is delivered. Rejects if it ends before. */
  readonly opened: Promise<void>;
  /** What was read lies before it. Store it with what you made of the events, and pass it as `after` later. */
  readonly cursor: string | null;
  return(): Promise<IteratorResult<Result, undefined>>;
}

export interface SlipwayClient {
  readonly url: string;
  query<Result, Variables>(
    document: SlipwayDocument<Result, Variables>,
    ...rest: Arguments<Variables, RequestOptions>
  ): Promise<Result>;
  /** As `query`. Never sent twice by itself: use an idempotency key where you want to repeat it. */
  mutate<Result, Variables>(
    document: SlipwayDocument<Result, Variables>,
    ...rest: Arguments<Variables, RequestOptions>
  ): Promise<Result>;
  /**
   * Comes back by itself for as long as that can help, and goes on where it was. Needs the document to take
   * `$after: ChangeCursor` and to select `cursor` (and, for `watch…` fields, `__typename`) directly below its root field.
   */
  subscribe<Result, Variables>(
    document: SlipwayDocument<Result, Variables>,
    ...rest: Arguments<Variables, SubscribeOptions>
  ): SlipwayStream<Result>;
  /** Ends all subscriptions and closes the connection. Requests that are under way are finished. */
  close(): void;
}

const HEAD = 'query Head { head }';

export function createSlipwayClient(options: SlipwayClientOptions): SlipwayClient {
  const { url, token } = options;
  // Fails here, with the caller on the stack, instead of later and for ever.
  if (!/^https?:$/.test(new URL(url).protocol)) {
    throw new TypeError(`The URL of a server begins with http: or https:, not ${url}`);
  }
  const clock = options.clock ?? systemClientClock;
  const timing = { ...DEFAULT_TIMING, ...options.timing };
  const random = options.random ?? Math.random;
  // Bound: the browsers' fetch refuses to be called as a method of something else.
  const ownFetch = options.fetch ?? globalThis.fetch.bind(globalThis);
  const transport = makeTransport({ ...options, fetch: ownFetch, clock, timing, random });
  const streams = new Set<ResumingStream>();
  const board = statusBoard(options.onStatus ?? (() => undefined));
  const requests = { url, token, fetch: ownFetch, clock, timeoutMs: timing.requestMs };

  async function request<Result>(
    document: SlipwayDocument<Result, never>,
    variables: object,
    request: RequestOptions | undefined,
  ): Promise<Result> {
    const { text, operationName } = documentFacts(document);
    const data = await sendRequest(
      requests,
      { query: text, operationName, variables: { ...variables } },
      request,
    );
    return data as Result; // the document's type was generated from the schema that the server answers by
  }

  async function head(): Promise<string> {
    const { head: cursor } = await request<{ head?: unknown }>(HEAD, {}, undefined);
    if (typeof cursor === 'string') return cursor;
    throw new SlipwayRequestError({ code: 'BAD_RESPONSE', message: 'The server has no `head`.' });
  }

  function open(
    document: SlipwayDocument<unknown, never>,
    variables: object,
    chosen: SubscribeOptions,
  ): ResumingStream {
    const facts = documentFacts(document);
    const key = {};
    const stream = new ResumingStream(
      { transport, head, clock, timing, random },
      {
        document: facts,
        variables: { ...variables },
        kind: chosen.kind ?? (/^watch[A-Z]/.test(facts.rootField) ? 'watch' : 'every'),
        acceptsGaps: chosen.onGap !== undefined,
        onStatus(status) {
          if (status.condition === 'ended') streams.delete(stream);
          board.set(key, status);
          chosen.onStatus?.(status);
        },
      },
    );
    streams.add(stream);
    const stop = (): void => stream.stop();
    if (chosen.signal?.aborted) stop();
    chosen.signal?.addEventListener('abort', stop, { once: true });
    return stream;
  }

  return {
    url,
    query: (document, ...[variables, chosen]) => request(document, variables ?? {}, chosen),
    mutate: (document, ...[variables, chosen]) => request(document, variables ?? {}, chosen),
    subscribe: (document, ...[variables, chosen]) =>
      iterate(open(document, variables ?? {}, chosen ?? {}), chosen ?? {}),
    close() {
      for (const stream of [...streams]) stream.stop();
      transport.close();
    },
  };
}

interface TransportParts extends SlipwayClientOptions {
  readonly fetch: typeof fetch;
  readonly clock: ClientClock;
  readonly timing: Timing;
  readonly random: () => number;
}

function makeTransport(parts: TransportParts): StreamTransport {
  const { url, token, clock, timing, random } = parts;
  const sse = sseTransport({ url, token, fetch: parts.fetch, clock, timing, random });
  // Typed by hand: the platform's class has more than `WebSocketLike`, and Node 20 has none at all.
  const platform = (globalThis as { WebSocket?: WebSocketConstructor }).WebSocket;
  const webSocketImpl = parts.webSocketImpl ?? platform;
  if (parts.transport === 'sse') return sse;
  if (webSocketImpl === undefined) {
    if (parts.transport === 'websocket') {
      throw new TypeError('This platform has no WebSocket: pass `webSocketImpl`.');
    }
    return sse;
  }
  const webSocket = webSocketTransport({ url, token, webSocketImpl, clock, timing, random });
  return parts.transport === 'websocket' ? webSocket : autoTransport(webSocket, sse);
}

function iterate<Result>(stream: ResumingStream, options: SubscribeOptions): SlipwayStream<Result> {
  const ended = { done: true, value: undefined } as const;
  return {
    opened: stream.opened,
    get cursor() {
      return stream.cursor;
    },
    async next() {
      while (true) {
        const item = await stream.next();
        if (item === undefined) return ended;
        switch (item.type) {
          case 'data':
            return { done: false, value: item.data as Result }; // as in `request`: typed by the document
          case 'resync':
            options.onResync?.(item.reason);
            break;
          case 'gap':
            options.onGap?.(item.reason);
            break;
        }
      }
    },
    async return() {
      stream.stop();
      return ended;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
