/** Readers over keep-alive connections; the bodies in turn. */
import type { LoadWorker, Target } from '../support/contenders.js';
import { drive } from '../support/drive.js';
import { HttpClient, operate } from '../support/http-client.js';
import { serveWorker } from '../support/worker.js';

export interface ReadStart extends Target {
  readonly bodies: readonly string[];
  readonly clients: number;
}

let url = '';
let connections = 0;
let bodies: readonly string[] = [];
let serverPid = 0;
let next = 0;

serveWorker({
  start(start: ReadStart) {
    ({ bodies, url, pid: serverPid, clients: connections } = start);
    return Promise.resolve();
  },

  async round({ seconds }: { readonly seconds: number }) {
    // For each round: some servers close what is idle for a few seconds, and others have their turns meanwhile.
    const clients = await Promise.all(Array.from({ length: connections }, () => HttpClient.open(url)));
    const step = async (index: number) => {
      const client = clients[index];
      const body = bodies[next % bodies.length];
      next += 1;
      if (!client || body === undefined) throw new Error('a client without a request');
      await operate(client, body);
    };
    try {
      return await drive({ step, clients: connections, seconds, pid: serverPid });
    } finally {
      for (const client of clients) client.close();
    }
  },
} satisfies LoadWorker<ReadStart>);
