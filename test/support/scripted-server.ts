/**
 * A peer that speaks GraphQL over HTTP, SSE and graphql-transport-ws and does what a test tells it: a log of numbered
 * ticks that can be resumed by cursor, and every way of ending. For what a real server does rarely or never.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocketServer, type WebSocket } from 'ws';

interface Operation {
  readonly id: string;
  readonly variables: Readonly<Record<string, unknown>>;
  readonly send: (payload: unknown) => void;
  readonly end: (errors?: readonly unknown[]) => void;
  readonly watch: boolean;
  at: number;
}

export interface ScriptedServer {
  readonly url: string;
  readonly port: number;
  /** Payloads of `connection_init`, oldest first. */
  readonly inits: unknown[];
  /** Variables of every subscribe, with the transport and headers it came by. */
  readonly subscribes: {
    readonly variables: Readonly<Record<string, unknown>>;
    readonly via: 'websocket' | 'sse';
    readonly headers: IncomingMessage['headers'];
  }[];
  /** Messages that sockets sent, of all kinds. */
  readonly messages: string[];
  readonly openOperations: number;
  readonly openSockets: number;
  /** Appends ticks; open operations get them. */
  tick(count?: number): void;
  /** Sends one event to all open operations, past the log. */
  say(event: Readonly<Record<string, unknown>>): void;
  closeSockets(code: number, reason?: string): void;
  failOperations(code: string, extensions?: Readonly<Record<string, unknown>>): void;
  /** Ends event streams without `complete`. */
  cutStreams(): void;
  /** How handshakes, acknowledgements and pings are answered from now on. */
  mode: 'normal' | 'refuse-websocket' | 'no-ack' | 'silent';
  /** Operations that begin are refused with this code instead. */
  refuseOperations: { code: string; times: number } | null;
  close(): Promise<void>;
}

const ROOTS = ['ticked', 'watchTicks'];

export async function startScriptedServer(): Promise<ScriptedServer> {
  const operations = new Set<Operation>();
  const sockets = new Set<WebSocket>();
  const streams = new Set<ServerResponse>();
  let head = 0;

  const state: ScriptedServer = {
    url: '',
    port: 0,
    inits: [],
    subscribes: [],
    messages: [],
    get openOperations() {
      return operations.size;
    },
    get openSockets() {
      return sockets.size;
    },
    tick(count = 1) {
      head += count;
      for (const operation of operations) advance(operation);
    },
    say(event) {
      for (const { send, watch } of operations) send({ data: { [watch ? 'watchTicks' : 'ticked']: event } });
    },
    closeSockets(code, reason) {
      for (const socket of sockets) socket.close(code, reason);
    },
    failOperations(code, extensions = {}) {
      for (const operation of operations) {
        operation.end([{ message: code, extensions: { ...extensions, code } }]);
      }
    },
    cutStreams() {
      for (const response of streams) response.destroy();
    },
    mode: 'normal',
    refuseOperations: null,
    async close() {
      for (const socket of sockets) socket.terminate();
      server.closeAllConnections();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
    },
  };

  function advance(operation: Operation): void {
    while (operation.at < head) {
      operation.at += 1;
      const cursor = `c${operation.at}`;
      const root = operation.watch
        ? { __typename: 'TickAdded', tick: { id: `t${operation.at}`, version: 1 } }
        : { number: operation.at };
      operation.send({ data: { [operation.watch ? 'watchTicks' : 'ticked']: { ...root, cursor } } });
    }
  }

  function begin(
    payload: { query: string; variables?: Record<string, unknown> },
    via: 'websocket' | 'sse',
    headers: IncomingMessage['headers'],
    parts: Pick<Operation, 'id' | 'send' | 'end'>,
  ): Operation | undefined {
    const variables = payload.variables ?? {};
    state.subscribes.push({ variables, via, headers });
    const refusal = state.refuseOperations;
    if (refusal && refusal.times > 0) {
      refusal.times -= 1;
      parts.end([{ message: refusal.code, extensions: { code: refusal.code } }]);
      return undefined;
    }
    const after = variables['after'];
    const watch = payload.query.includes('watchTicks');
    const operation = {
      ...parts,
      variables,
      watch,
      at: typeof after === 'string' ? Number(after.slice(1)) : watch ? 0 : head,
    };
    operations.add(operation);
    // A watch without a cursor begins with a snapshot of all ticks there are.
    if (watch && typeof after !== 'string') {
      advance(operation);
      operation.send({ data: { watchTicks: { __typename: 'SnapshotEnd', cursor: `c${head}` } } });
    } else advance(operation);
    return operation;
  }

  const server = createServer((request, response) => {
    response.setHeader('access-control-allow-origin', '*');
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      const payload = JSON.parse(body) as { query: string; variables?: Record<string, unknown> }; // our client writes it
      if (!ROOTS.some((root) => payload.query.includes(root))) {
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ data: { head: `c${head}` } }));
        return;
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(':\n\n');
      streams.add(response);
      const write = (event: string, data: unknown, id?: string) =>
        response.write(
          `event: ${event}\n${id === undefined ? '' : `id: ${id}\n`}data: ${data === undefined ? '' : JSON.stringify(data)}\n\n`,
        );
      const operation = begin(payload, 'sse', request.headers, {
        id: 'sse',
        send: (result) => write('next', result),
        end(errors) {
          if (errors) write('next', { errors });
          write('complete', undefined);
          response.end();
        },
      });
      response.on('close', () => {
        streams.delete(response);
        if (operation) operations.delete(operation);
      });
    });
  });

  const webSockets = new WebSocketServer({ noServer: true, handleProtocols: () => 'graphql-transport-ws' });
  server.on('upgrade', (request, socket, first) => {
    if (state.mode === 'refuse-websocket') {
      socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n');
      return;
    }
    webSockets.handleUpgrade(request, socket, first, (webSocket) => opened(webSocket, request));
  });

  function opened(socket: WebSocket, request: IncomingMessage): void {
    sockets.add(socket);
    const mine = new Map<string, Operation>();
    const say = (message: unknown): void => {
      if (state.mode !== 'silent') socket.send(JSON.stringify(message));
    };
    socket.on('close', () => {
      sockets.delete(socket);
      for (const operation of mine.values()) operations.delete(operation);
    });
    socket.on('message', (data: Buffer) => {
      const text = data.toString();
      state.messages.push(text);
      const message = JSON.parse(text) as { type: string; id: string; payload: { query: string } }; // our client writes it
      if (message.type === 'connection_init') {
        state.inits.push(message.payload);
        if (state.mode !== 'no-ack') say({ type: 'connection_ack' });
      } else if (message.type === 'ping') say({ type: 'pong' });
      else if (message.type === 'complete') drop(message.id);
      else if (message.type === 'subscribe') {
        const { id } = message;
        const operation = begin(message.payload, 'websocket', request.headers, {
          id,
          send: (payload) => say({ id, type: 'next', payload }),
          end(errors) {
            drop(id);
            say(errors ? { id, type: 'error', payload: errors } : { id, type: 'complete' });
          },
        });
        if (operation) mine.set(id, operation);
      }
    });
    const drop = (id: string): void => {
      const operation = mine.get(id);
      mine.delete(id);
      if (operation) operations.delete(operation);
    };
  }

  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo; // it listens on TCP
  return Object.defineProperties(state, {
    port: { value: port },
    url: { value: `http://127.0.0.1:${port}/graphql` },
  });
}
