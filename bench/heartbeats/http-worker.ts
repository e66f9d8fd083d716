/** Agents that beat: `heartbeatAgent` over keep-alive connections, the agents in turn. */
import type { LoadWorker, Target } from '../support/contenders.js';
import { drive } from '../support/drive.js';
import type { BenchAgent } from '../support/fixture.js';
import { HttpClient, operate } from '../support/http-client.js';
import { serveWorker } from '../support/worker.js';
import { beatBody, ownAgents, type BeatingAgent } from './beat.js';

export interface HttpStart {
  readonly agents: readonly BenchAgent[];
  readonly clients: number;
}

let sessions: { readonly client: HttpClient; readonly own: BeatingAgent[]; next: number }[] = [];
let serverPid = 0;

serveWorker({
  async start({ url, pid, agents, clients }: HttpStart & Target) {
    serverPid = pid;
    sessions = await Promise.all(
      Array.from({ length: clients }, async (_, index) => {
        return { client: await HttpClient.open(url), own: ownAgents(agents, index, clients), next: 0 };
      }),
    );
  },

  round({ seconds }: { readonly seconds: number }) {
    const step = async (index: number) => {
      const session = sessions[index];
      const agent = session?.own[session.next % session.own.length];
      if (!session || !agent) throw new Error('a client without an agent');
      session.next += 1;
      agent.sequence += 1;
      const answer = await operate(session.client, beatBody(agent));
      if (!answer.includes('"applied":true')) throw new Error(`refused: ${answer.toString()}`);
    };
    return drive({ step, clients: sessions.length, seconds, pid: serverPid });
  },
} satisfies LoadWorker<HttpStart & Target>);
