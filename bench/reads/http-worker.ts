/** Readers over keep-alive connections; the bodies in turn. */
import type { LoadWorker, Target } from '../support/contenders.js';
import { drive } from '../support/drive.js';
import { HttpClient, operate } from '../support/http-client.js';
import { serveWorker } from '../support/worker.js';

export interface ReadStart extends Target {
  readonly bodies: readonly string[];
  readonly clients: number;
}

let clients: HttpClient[] = [];
let bodies: readonly string[] = [];
let serverPid = 0;
let next = 0;

serveWorker({
  async start(start: ReadStart) {
    ({ bodies, pid: serverPid } = start);
    clients = await Promise.all(Array.from({ length: start.clients }, () => HttpClient.open(start.url)));
  },

  round({ seconds }: { readonly seconds: number }) {
    const step = async (index: number) => {
      const client = clients[index];
      const body = bodies[next % bodies.length];
      next += 1;
      if (!client || body === undefined) throw new Error('a client without a request');
      await operate(client, body);
    };
    return drive({ step, clients: clients.length, seconds, pid: serverPid });
  },
} satisfies LoadWorker<ReadStart>);
