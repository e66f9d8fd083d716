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

let sessions: { readonly client: HttpClient; readonly own: OwnDeployment[]; next: number }[] = [];
let serverPid = 0;

serveWorker({
  async start({ url, pid, deploymentIds, clients }: HttpStart & Target) {
    serverPid = pid;
    sessions = await Promise.all(
      Array.from({ length: clients }, async (_, index) => {
        const own = ownDeployments(deploymentIds, index, clients);
        return { client: await HttpClient.open(url), own, next: 0 };
      }),
    );
  },

  round({ seconds }: { readonly seconds: number }) {
    const step = async (index: number) => {
      const session = sessions[index];
      const deployment = session?.own[session.next % session.own.length];
      if (!session || !deployment) throw new Error('a client without a deployment');
      session.next += 1;
      const answer = await operate(session.client, patchBody(deployment));
      deployment.version += 1;
      if (!answer.includes(`"version":${deployment.version},`)) {
        throw new Error(`refused: ${answer.toString()}`);
      }
    };
    return drive({ step, clients: sessions.length, seconds, pid: serverPid });
  },
} satisfies LoadWorker<HttpStart & Target>);
