import { createServer, connect, type AddressInfo, type NetConnectOpts, type Socket } from 'node:net';

/**
 * What can happen to a connection between a client and a server.
 *
 * `FIN` an orderly end, `RST` an abort, `BLACK_HOLE` nothing arrives any more in either direction and nobody is told:
 * what a side sends is acknowledged by the proxy's kernel and dropped. `HALF_OPEN` the far side is gone, and the near one
 * believes that it is there.
 */
export type Fault = 'FIN' | 'RST' | 'BLACK_HOLE' | 'HALF_OPEN';
export const FAULTS: readonly Fault[] = ['FIN', 'RST', 'BLACK_HOLE', 'HALF_OPEN'];

/** What the way to the near side is like. Left out: as fast as it goes. */
export interface Shape {
  readonly delayMs?: number;
  readonly bytesPerSecond?: number;
}

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
  cut(fault: Fault, chosen?: Chosen): number;
  /** The same, but each only when so many more bytes have gone to the near side: in the middle of a frame, mostly. */
  cutAfter(bytes: number, fault: Fault, chosen?: Chosen): number;
  /** For connections that are open, those for which `chosen` says so, and until it is called again for new ones. */
  shape(shape: Shape, chosen?: Chosen): number;
  /** While true, new connections are accepted and then treated as black holes. */
  swallow: boolean;
  close(): Promise<void>;
}
type Chosen = (connection: { readonly index: number }) => boolean;

interface Connection {
  readonly index: number;
  readonly near: Socket;
  readonly far: Socket;
  shape: Shape;
  cutAfter: { bytes: number; readonly fault: Fault } | undefined;
  /** False once it was broken here, or one side went away. */
  passes: boolean;
}

export async function startFaultProxy(target: NetConnectOpts): Promise<FaultProxy> {
  const live = new Set<Connection>();
  const sockets = new Set<Socket>();
  let goal = target;
  let accepted = 0;
  let swallow = false;
  let shape: Shape = {};

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
    const connection: Connection = { index: accepted, near, far, shape, cutAfter: undefined, passes: true };
    live.add(connection);
    for (const socket of [near, far]) socket.on('close', () => live.delete(connection));
    join(connection);
  });

  const those = (chosen: Chosen): Connection[] => [...live].filter((one) => one.passes && chosen(one));

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, resolve);
  });
  const { port } = server.address() as AddressInfo; // it listens on TCP

  return {
    host: '127.0.0.1',
    port,
    get live() {
      return those(() => true).length;
    },
    get accepted() {
      return accepted;
    },
    retarget(next) {
      goal = next;
    },
    cut(fault, chosen = () => true) {
      const broken = those(chosen);
      for (const connection of broken) breakOne(connection, fault);
      return broken.length;
    },
    cutAfter(bytes, fault, chosen = () => true) {
      const marked = those(chosen);
      for (const connection of marked) connection.cutAfter = { bytes, fault };
      return marked.length;
    },
    shape(next, chosen) {
      if (!chosen) shape = next;
      const shaped = those(chosen ?? (() => true));
      for (const connection of shaped) connection.shape = next;
      return shaped.length;
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

function join(connection: Connection): void {
  const { near, far } = connection;
  near.pipe(far);
  far.on('data', (chunk: Buffer) => pass(connection, chunk));
  far.on('end', () => near.end());
  // One side gone without an end: the other one is told the same way.
  near.on('close', () => passEnd(connection, far, near));
  far.on('close', () => passEnd(connection, near, far));
}

/** One chunk to the near side; the next one comes when this one has gone. */
function pass(connection: Connection, chunk: Buffer): void {
  const { near, far, cutAfter, shape } = connection;
  if (!connection.passes) return;
  if (cutAfter && chunk.length > cutAfter.bytes) {
    near.write(chunk.subarray(0, cutAfter.bytes));
    breakOne(connection, cutAfter.fault);
    return;
  }
  if (cutAfter) cutAfter.bytes -= chunk.length;
  const { delayMs = 0, bytesPerSecond = Infinity } = shape;
  const waitMs = delayMs + (chunk.length / bytesPerSecond) * 1_000;
  const write = (): void => {
    if (!connection.passes) return;
    if (near.write(chunk)) far.resume();
    else near.once('drain', () => far.resume());
  };
  far.pause();
  if (waitMs === 0) write();
  else setTimeout(write, waitMs);
}

function passEnd(connection: Connection, other: Socket, gone: Socket): void {
  // Of one that was broken here the other side must not notice.
  if (!connection.passes) return;
  connection.passes = false;
  if (other.destroyed) return;
  if (gone.readableEnded) other.end();
  else abort(other);
}

function breakOne(connection: Connection, fault: Fault): void {
  connection.passes = false;
  const { near, far } = connection;
  for (const socket of [near, far]) {
    socket.unpipe();
    socket.removeAllListeners('data');
    if (fault === 'FIN') socket.end(() => socket.destroy());
    else if (fault === 'RST' || (fault === 'HALF_OPEN' && socket === far)) abort(socket);
    else socket.resume();
  }
}

/** A local socket knows no reset; its end without a word is the same to the other side. */
function abort(socket: Socket): void {
  if (socket.remoteFamily === undefined) socket.destroy();
  else socket.resetAndDestroy();
}
