/** The limit of patches: one prepared statement a patch through the driver, each client on a session of its own. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';

import type { LoadWorker } from '../support/contenders.js';
import { drive } from '../support/drive.js';
import { serveWorker } from '../support/worker.js';
import { ownDeployments, PATCH_STATEMENT, patchValues, type OwnDeployment } from './patch.js';

export interface LimitStart {
  readonly databaseUrl: string;
  readonly deploymentIds: readonly string[];
  readonly clients: number;
}

let sessions: { readonly client: pg.Client; readonly own: OwnDeployment[]; next: number }[] = [];
let releaseId = '';

serveWorker({
  async start({ databaseUrl, deploymentIds, clients }: LimitStart) {
    sessions = await Promise.all(
      Array.from({ length: clients }, async (_, index) => {
        const client = new pg.Client({ connectionString: databaseUrl });
        await client.connect();
        return { client, own: ownDeployments(deploymentIds, index, clients), next: 0 };
      }),
    );
    const found = await sessions[0]?.client.query<{ id: string }>('SELECT id FROM release LIMIT 1');
    releaseId = found?.rows[0]?.id ?? '';
  },

  round({ seconds }: { readonly seconds: number }) {
    const step = async (index: number) => {
      const session = sessions[index];
      const deployment = session?.own[session.next % session.own.length];
      if (!session || !deployment) throw new Error('a client without a deployment');
      session.next += 1;
      const { rowCount } = await session.client.query({
        name: 'patch',
        text: PATCH_STATEMENT,
        values: patchValues(deployment, releaseId, randomUUID()),
      });
      if (rowCount !== 1) throw new Error(`${deployment.id} is not at version ${deployment.version}`);
      deployment.version += 1;
    };
    return drive({ step, clients: sessions.length, seconds, pid: process.pid });
  },
} satisfies LoadWorker<LimitStart>);
