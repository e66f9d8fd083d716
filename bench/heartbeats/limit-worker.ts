/** The limit of heartbeats: one prepared statement a beat through the driver, each client on a session of its own. */
import pg from 'pg';

import type { LoadWorker } from '../support/contenders.js';
import { drive } from '../support/drive.js';
import type { BenchAgent } from '../support/fixture.js';
import { serveWorker } from '../support/worker.js';
import { BEAT_STATEMENT, lagOf, ownAgents, type BeatingAgent } from './beat.js';

export interface LimitStart {
  readonly databaseUrl: string;
  readonly agents: readonly BenchAgent[];
  readonly clients: number;
}

let sessions: { readonly client: pg.Client; readonly own: BeatingAgent[]; next: number }[] = [];

serveWorker({
  async start({ databaseUrl, agents, clients }: LimitStart) {
    sessions = await Promise.all(
      Array.from({ length: clients }, async (_, index) => {
        const client = new pg.Client({ connectionString: databaseUrl });
        await client.connect();
        return { client, own: ownAgents(agents, index, clients), next: 0 };
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
      const values = [agent.id, agent.session, agent.sequence, lagOf(agent.sequence)];
      const { rowCount } = await session.client.query({ name: 'beat', text: BEAT_STATEMENT, values });
      if (rowCount !== 1) throw new Error(`the beat of ${agent.id} was not taken`);
    };
    return drive({ step, clients: sessions.length, seconds, pid: process.pid });
  },
} satisfies LoadWorker<LimitStart>);
