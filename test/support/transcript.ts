/** Everything that leaves a live server, kept as the bytes it came in: what a scan of answers has to look at. */
import { once } from 'node:events';

import { WebSocket } from 'ws';

export interface Heard {
  /** What was asked, for the message of a failure. */
  readonly what: string;
  readonly by: 'http' | 'websocket' | 'sse';
  /** Status, headers and body; a handshake's headers; a frame; a part of an event stream. */
  readonly text: string;
}

export interface LiveStream {
  /** All that came so far. */
  readonly text: string;
  close(): void;
}

export interface Request {
  readonly query?: unknown;
  readonly variables?: object;
}

export class Transcript {
  readonly heard: Heard[] = [];
  readonly #url: string;

  /** `url`: the server's, without a path. */
  constructor(url: string) {
    this.#url = url;
  }

  /** An operation, or anything else by `more`. The body as text. */
  async http(what: string, path: string, more: RequestInit): Promise<string> {
    const response = await fetch(this.#url + path, more);
    const body = await response.text();
    const text = `${response.status} ${JSON.stringify([...response.headers])} ${body}`;
    this.heard.push({ what, by: 'http', text });
    return body;
  }

  post(what: string, request: Request, token?: string): Promise<string> {
    const headers = {
      'content-type': 'application/json',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    };
    return this.http(what, '/graphql', { method: 'POST', headers, body: JSON.stringify(request) });
  }

  async sse(what: string, request: Request, token?: string): Promise<LiveStream> {
    const abort = new AbortController();
    const response = await fetch(`${this.#url}/graphql`, {
      method: 'POST',
      headers: {
        accept: 'text/event-stream',
        'content-type': 'application/json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(request),
      signal: abort.signal,
    });
    const stream = { text: '', close: () => abort.abort() };
    const hear = (text: string) => {
      stream.text += text;
      this.heard.push({ what, by: 'sse', text });
    };
    hear(`${response.status} ${JSON.stringify([...response.headers])}\n`);
    const read = async () => {
      const decoder = new TextDecoder();
      for await (const chunk of response.body ?? []) hear(decoder.decode(chunk, { stream: true }));
    };
    void read().catch(() => undefined); // closed by us
    return stream;
  }

  /** One socket with one operation; without `request` only the init. */
  async websocket(what: string, request: Request | undefined, token?: string): Promise<LiveStream> {
    const socket = new WebSocket(`${this.#url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
    const stream = { text: '', close: () => socket.close() };
    const hear = (text: string) => {
      stream.text += `${text}\n`;
      this.heard.push({ what, by: 'websocket', text });
    };
    socket.on('upgrade', ({ rawHeaders }) => hear(rawHeaders.join(' ')));
    socket.on('close', (code, reason) => hear(`closed ${code} ${reason.toString()}`));
    socket.on('message', (data) => {
      const text = (data as Buffer).toString(); // ws gives one Buffer
      hear(text);
      const { type } = JSON.parse(text) as { type: string }; // the server sends messages of the protocol
      if (type === 'connection_ack' && request) {
        socket.send(JSON.stringify({ id: 'one', type: 'subscribe', payload: request }));
      }
    });
    await once(socket, 'open');
    const payload = token === undefined ? {} : { authorization: `Bearer ${token}` };
    socket.send(JSON.stringify({ type: 'connection_init', payload }));
    return stream;
  }
}
