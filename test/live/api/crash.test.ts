import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { SOCKET_PORT } from '../../../src/store/embedded/cluster.js';
import { ask, deploy, patchStatus, valueOf, type Deployed } from '../../support/api.js';
import { makeTestFolder, withClient } from '../../support/database.js';
import { startServerProcess, type ServerProcess } from '../../support/server.js';
import { waitFor } from '../../support/wait-for.js';

const CRASHES = 3;
const PATCHES_BETWEEN = 60;

/** Patches one deployment again and again, until the server is gone. Counts what was acknowledged. */
async function patchOn(url: string, deployment: Deployed, acknowledged: Map<string, number>): Promise<void> {
  for (let turn = 0; ; turn += 1) {
    const expectedVersion = acknowledged.get(deployment.id) ?? deployment.version;
    const condition = {
      type: 'Ready',
      status: 'TRUE',
      reason: 'Turned',
      message: `${expectedVersion}.${turn}`,
    };
    const result = await patchStatus(url, {
      id: deployment.id,
      expectedVersion,
      conditions: [condition],
    }).catch(() => undefined);
    if (result === undefined) return;
    // A conflict is told of a patch that was carried out and whose answer was lost in the last crash.
    const version = result.deployment?.version ?? result.currentVersion;
    if (version !== undefined) acknowledged.set(deployment.id, version);
  }
}

describe('a server and its database that are both killed', () => {
  it('have every acknowledged mutation afterwards, each with exactly one change', async () => {
    const dataDir = makeTestFolder('crash');
    const start = () => startServerProcess({ env: { SLIPWAY_DATA_DIR: dataDir } });
    let server: ServerProcess = await start();
    onTestFinished(async () => {
      server.kill('SIGKILL');
      await server.exited;
    });
    const deployments = [await deploy(server.url), await deploy(server.url), await deploy(server.url)];
    const acknowledged = new Map(deployments.map(({ id, version }) => [id, version]));
    const total = () => [...acknowledged.values()].reduce((sum, version) => sum + version, 0);

    for (let crash = 0; crash < CRASHES; crash += 1) {
      const before = total();
      const patching = deployments.map((one) => patchOn(server.url, one, acknowledged));
      await waitFor(() => total() >= before + PATCHES_BETWEEN, 'patches were acknowledged', 20_000);
      const postgres = Number(
        readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[0],
      );
      process.kill(postgres, 'SIGKILL');
      server.kill('SIGKILL');
      await Promise.all([server.exited, ...patching]);
      server = await start();
      for (const [id, version] of acknowledged) {
        const { version: now } = await valueOf<{ version: number }>(
          ask(server.url, 'query ($id: ID) { deployment(id: $id) { version } }', { id }),
        );
        // One more, where the answer to the last one did not get through.
        expect(now - version).toBeOneOf([0, 1]);
      }
    }

    const { rows } = await withClient(
      { host: join(dataDir, 'postgres'), port: SOCKET_PORT, user: 'slipway', database: 'slipway' },
      (client) =>
        client.query<{ id: string; version: number; versions: number[] }>(
          `select d.id, d.version, array_agg(c.version::int order by c.version) as versions
             from deployment d join change c on c.object_id = d.id group by d.id`,
        ),
    );
    expect(rows).toHaveLength(3);
    for (const { version, versions } of rows) {
      expect(versions).toEqual(Array.from({ length: version }, (_, index) => index + 1));
    }
    expect(await server.stop()).toMatchObject({ code: 0 });
  });
});
