import { once } from 'node:events';

/** Reads an event stream of the server, event by event, as the HTML specification has it. */
export interface StreamEvent {
  readonly id?: string;
  readonly event: string;
  /** Parsed; absent if empty. */
  readonly data?: unknown;
}

export interface EventStreamClient {
  readonly response: Response;
  /** Undefined when the stream has ended. */
  next(): Promise<StreamEvent | undefined>;
  /** So far. */
  readonly comments: number;
  /** What a browser would send as `Last-Event-ID`. */
  readonly lastEventId: string;
  close(): void;
}

export interface EventStreamOptions {
  readonly method?: 'GET' | 'POST';
  readonly headers?: Record<string, string>;
  /** Reads nothing of the body. */
  readonly stalled?: boolean;
}

export async function openEventStream(
  url: string,
  request: { readonly query: string; readonly variables?: object },
  { method = 'POST', headers = {}, stalled = false }: EventStreamOptions = {},
): Promise<EventStreamClient> {
  const abort = new AbortController();
  const parameters = new URLSearchParams({
    query: request.query,
    variables: JSON.stringify(request.variables ?? {}),
  });
  const response = await fetch(method === 'GET' ? `${url}?${parameters.toString()}` : url, {
    method,
    headers: {
      accept: 'text/event-stream',
      ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
      ...headers,
    },
    ...(method === 'POST' ? { body: JSON.stringify(request) } : {}),
    signal: abort.signal,
  });
  if (!response.body) throw new Error('no body');

  const events: StreamEvent[] = [];
  let comments = 0;
  let lastEventId = '';
  const state = { ended: false };
  let wake = () => undefined as void;
  const read = async (body: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder();
    let text = '';
    for await (const chunk of body) {
      text += decoder.decode(chunk, { stream: true });
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const block = text.slice(0, end);
        text = text.slice(end + 2);
        if (block.startsWith(':')) comments += 1;
        lastEventId = /^id: (.*)$/m.exec(block)?.[1] ?? lastEventId;
        if (/^data:/m.test(block)) events.push(parsed(block));
        wake();
      }
    }
  };
  void (stalled ? once(abort.signal, 'abort') : read(response.body))
    .catch(() => undefined) // aborted, or cut: the stream has ended either way
    .then(() => {
      state.ended = true;
      wake();
    });

  return {
    response,
    async next() {
      while (events.length === 0 && !state.ended) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      return events.shift();
    },
    get comments() {
      return comments;
    },
    get lastEventId() {
      return lastEventId;
    },
    close: () => abort.abort(),
  };
}

function parsed(block: string): StreamEvent {
  const fields = new Map(
    block.split('\n').map((line) => {
      const at = line.indexOf(':');
      return [line.slice(0, at), line.slice(at + 1).replace(/^ /, '')] as const;
    }),
  );
  const id = fields.get('id');
  const data = fields.get('data');
  return {
    ...(id === undefined ? {} : { id }),
    event: fields.get('event') ?? 'message',
    ...(data === undefined || data === '' ? {} : { data: JSON.parse(data) as unknown }),
  };
}
