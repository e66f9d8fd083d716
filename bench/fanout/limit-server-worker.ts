/** The limit of fan-out: `ws` makes the handshake, and each POST writes one pre-built frame to every socket. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';

import '../support/collector.mjs';
import { serveWorker } from '../support/worker.js';

const FIN_TEXT = 0x81;
const KEEP_ALIVE_MS = 600_000;

function frameOf(bytes: number): Buffer {
  const payload = Buffer.alloc(bytes, 'x');
  const head =
    bytes < 126 ? Buffer.from([FIN_TEXT, bytes]) : Buffer.from([FIN_TEXT, 126, bytes >> 8, bytes & 0xff]);
  return Buffer.concat([head, payload]);
}

const methods = {
  async start({ messageBytes }: { readonly messageBytes: number }) {
    const frame = frameOf(Math.round(messageBytes));
    const sockets = new Set<Duplex>();
    const upgrades = new WebSocketServer({ noServer: true });
    const server = createServer((request, response) => {
      request.resume();
      for (const socket of sockets) socket.write(frame);
      response.writeHead(200, { 'content-length': 2 });
      response.end('{}');
    });
    server.on('upgrade', (request, socket, head) => {
      upgrades.handleUpgrade(request, socket, head, (ws) => {
        sockets.add(socket);
        ws.once('close', () => sockets.delete(socket));
      });
    });
    // A contender waits while the others take their turns.
    server.keepAliveTimeout = KEEP_ALIVE_MS;
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return `127.0.0.1:${(server.address() as AddressInfo).port}/`; // it listens on TCP
  },
};

export type LimitServer = typeof methods;
serveWorker(methods);
