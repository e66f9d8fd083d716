import { Socket, type WebSocketConstructor } from './socket.js';
import type { ClientClock, Timing } from './timing.js';
import { resolveToken, type StreamEnd, type StreamTransport, type TokenSource } from './transport.js';

interface WebSocketTransportOptions {
  /** `http:` and `https:` become `ws:` and `wss:`. */
  readonly url: string;
  readonly token: TokenSource;
  readonly webSocketImpl: WebSocketConstructor;
  readonly clock: ClientClock;
  readonly timing: Timing;
  readonly random: () => number;
}

interface Connection {
  readonly socket: Promise<Socket>;
  /** One draw for all that are lost with it. */
  readonly draw: number;
  users: number;
  cancelLinger: () => void;
}

/** All subscriptions of a client over one socket, opened for the first and closed a moment after the last. */
export function webSocketTransport(options: WebSocketTransportOptions): StreamTransport {
  const url = options.url.replace(/^http/, 'ws');
  let current: Connection | null = null;

  function connect(): Connection {
    const connection: Connection = {
      socket: openSocket(() => forget(connection)),
      draw: options.random(),
      users: 0,
      cancelLinger: () => undefined,
    };
    // Without a token there is no socket; each operation learns it by itself, and the next one tries anew.
    connection.socket.catch(() => forget(connection));
    return connection;
  }

  async function openSocket(onClosed: () => void): Promise<Socket> {
    const { webSocketImpl, clock, timing } = options;
    const token = await resolveToken(options.token);
    return new Socket({ url, webSocketImpl, token, clock, timing, onClosed });
  }

  function forget(connection: Connection): void {
    connection.cancelLinger();
    if (current === connection) current = null;
  }

  function release(connection: Connection): void {
    connection.users -= 1;
    if (connection.users > 0) return;
    connection.cancelLinger = options.clock.after(options.timing.lingerMs, () => {
      forget(connection);
      connection.socket.then(
        (socket) => socket.close(),
        () => undefined,
      );
    });
  }

  return {
    name: 'websocket',
    open(request, sink) {
      const connection = (current ??= connect());
      connection.cancelLinger();
      connection.users += 1;
      let live = true;
      let cancel: () => void = () => undefined;
      const settle = (): boolean => {
        if (!live) return false;
        live = false;
        release(connection);
        return true;
      };
      const ended = (end: StreamEnd): void => {
        if (settle()) sink.ended(end, connection.draw);
      };
      const { query, operationName, variables } = request;
      const begin = (socket: Socket): void => {
        if (!live) return;
        cancel = socket.run(
          { query, operationName, variables },
          { accepted: () => sink.accepted(), next: (result) => sink.next(result), ended },
        );
      };
      connection.socket.then(begin, (cause: unknown) => ended({ type: 'unreachable', cause }));
      return () => {
        if (settle()) cancel();
      };
    },
    close() {
      const connection = current;
      if (!connection) return;
      forget(connection);
      connection.socket.then(
        (socket) => socket.close(),
        () => undefined,
      );
    },
  };
}
