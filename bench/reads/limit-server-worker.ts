/** The limit of reads: node:http that passes through what one prepared statement made. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';

import { serveWorker } from '../support/worker.js';
import { STATEMENTS, type Read } from './query.js';

/** As many sessions as the server has for reads. */
const SESSIONS = 10;
const KEEP_ALIVE_MS = 600_000;

async function answer(
  pool: pg.Pool,
  read: Read,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer); // no encoding is set
  const { variables } = JSON.parse(Buffer.concat(chunks).toString()) as {
    variables: Record<string, unknown>;
  }; // ours
  const { rows } = await pool.query<{ body: string }>({
    name: read,
    text: STATEMENTS[read],
    values: Object.values(variables),
  });
  const body = Buffer.from(rows[0]?.body ?? 'null');
  response.writeHead(200, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': body.length,
  });
  response.end(body);
}

const methods = {
  async start({ databaseUrl, read }: { readonly databaseUrl: string; readonly read: Read }) {
    const pool = new pg.Pool({ connectionString: databaseUrl, max: SESSIONS });
    const server = createServer((request, response) => {
      answer(pool, read, request, response).catch((error: unknown) => {
        process.stderr.write(`${String(error)}\n`);
        response.destroy();
      });
    });
    // A contender waits while the others take their turns.
    server.keepAliveTimeout = KEEP_ALIVE_MS;
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`; // it listens on TCP
  },
};

export type LimitServer = typeof methods;
serveWorker(methods);
