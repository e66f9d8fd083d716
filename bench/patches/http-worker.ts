/** Controllers that report to the server: `patchDeploymentStatus` over keep-alive connections. */
import type { LoadWorker, Target } from '../support/contenders.js';
import { drive } from '../support/drive.js';
import { HttpClient, operate } from '../support/http-client.js';
import { serveWorker } from '../support/worker.js';
import { ownDeployments, patchBody, type OwnDeployment } from './patch.js';

export interface HttpStart {
  readonly deploymentIds: readonly string[];
  readonly clients: number;
}

let sessions: { readonly own: OwnDeployment[]; next: number }[] = [];
let server: Target = { url: '', pid: 0 };

serveWorker({
  start({ url, pid, deploymentIds, clients }: HttpStart & Target) {
    server = { url, pid };
    sessions = Array.from({ length: clients }, (_, index) => {
      return { own: ownDeployments(deploymentIds, index, clients), next: 0 };
    });
    return Promise.resolve();
  },

  async round({ seconds }: { readonly seconds: number }) {
    // For each round: some servers close what is idle for a few seconds, and others have their turns meanwhile.
    const connections = await Promise.all(sessions.map(() => HttpClient.open(server.url)));
    const step = async (index: number) => {
      const session = sessions[index];
      const connection = connections[index];
      const deployment = session?.own[session.next % session.own.length];
      if (!session || !connection || !deployment) throw new Error('a client without a deployment');
      session.next += 1;
      const answer = await operate(connection, patchBody(deployment));
      deployment.version += 1;
      if (!answer.includes(`"version":${deployment.version},`)) {
        throw new Error(`refused: ${answer.toString()}`);
      }
    };
    try {
      return await drive({ step, clients: sessions.length, seconds, pid: server.pid });
    } finally {
      for (const connection of connections) connection.close();
    }
  },
} satisfies LoadWorker<HttpStart & Target>);
