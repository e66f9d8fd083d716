import { createServer, connect, type AddressInfo, type NetConnectOpts, type Socket } from 'node:net';

/**
 * What can happen to a connection between a client and a server.
 *
 * `FIN` an orderly end, `RST` an abort, `BLACK_HOLE` nothing arrives any more in either direction and nobody is told:
 * what a side sends is acknowledged by the proxy's kernel and dropped.
 */
export type Fault = 'FIN' | 'RST' | 'BLACK_HOLE';
export const FAULTS: readonly Fault[] = ['FIN', 'RST', 'BLACK_HOLE'];

export interface FaultProxy {
  readonly host: '127.0.0.1';
  readonly port: number;
  /** Connections that pass data, black-holed ones not counted. */
  readonly live: number;
  /** All that were ever accepted. */
  readonly accepted: number;
  /** Where new connections go from now on; those that are open stay where they are. */
  retarget(target: NetConnectOpts): void;
  /** Breaks those connections for which `chosen` says so, all if left out; gives how many. */
  cut(fault: Fault, chosen?: (connection: { readonly index: number }) => boolean): number;
  /** While true, new connections are accepted and then treated as black holes. */
  swallow: boolean;
  close(): Promise<void>;
}

interface Connection {
  readonly index: number;
  readonly near: Socket;
  readonly far: Socket;
}

export async function startFaultProxy(target: NetConnectOpts): Promise<FaultProxy> {
  const live = new Set<Connection>();
  const sockets = new Set<Socket>();
  let goal = target;
  let accepted = 0;
  let swallow = false;

  const own = (socket: Socket): Socket => {
    sockets.add(socket);
    socket.setNoDelay(true);
    // Broken on purpose, here or by a side that was killed.
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
    return socket;
  };

  const server = createServer({ allowHalfOpen: true }, (near) => {
    accepted += 1;
    own(near);
    if (swallow) {
      near.resume();
      return;
    }
    const far = own(connect({ ...goal, allowHalfOpen: true }));
    const connection = { index: accepted, near, far };
    live.add(connection);
    near.pipe(far);
    far.pipe(near);
    // One side gone without an end: the other one is told the same way.
    near.on('close', () => passEnd(connection, far, near));
    far.on('close', () => passEnd(connection, near, far));
  });

  function passEnd(connection: Connection, other: Socket, gone: Socket): void {
    // A black-holed connection is not in the set any more: its other side must not notice.
    if (!live.delete(connection) || other.destroyed) return;
    if (gone.readableEnded) other.end();
    else abort(other);
  }

  function breakOne(connection: Connection, fault: Fault): void {
    live.delete(connection);
    for (const socket of [connection.near, connection.far]) {
      socket.unpipe();
      if (fault === 'FIN') socket.end(() => socket.destroy());
      else if (fault === 'RST') abort(socket);
      else socket.resume();
    }
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo; // it listens on TCP

  return {
    host: '127.0.0.1',
    port,
    get live() {
      return live.size;
    },
    get accepted() {
      return accepted;
    },
    retarget(next) {
      goal = next;
    },
    cut(fault, chosen = () => true) {
      const broken = [...live].filter(chosen);
      for (const connection of broken) breakOne(connection, fault);
      return broken.length;
    },
    get swallow() {
      return swallow;
    },
    set swallow(value) {
      swallow = value;
    },
    async close() {
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** A local socket knows no reset; its end without a word is the same to the other side. */
function abort(socket: Socket): void {
  if (socket.remoteFamily === undefined) socket.destroy();
  else socket.resetAndDestroy();
}
