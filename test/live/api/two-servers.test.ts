import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ask, deploy, patchStatus, valueOf, watch, type PatchResult } from '../../support/api.js';
import { createDatabase, withClient, type TestDatabase } from '../../support/database.js';
import { startServerProcess, type ServerProcess } from '../../support/server.js';

interface PhaseChange {
  readonly from: string | null;
  readonly to: string;
  readonly version: number;
  readonly actor: string;
  readonly reason: string | null;
  readonly deployment: { readonly id: string };
}
const PHASES = `subscription ($filter: DeploymentFilter, $after: ChangeCursor) {
  deploymentPhaseChanged(filter: $filter, after: $after) { from to version actor reason deployment { id } }
}`;
interface Watched {
  readonly __typename: string;
  readonly deployment?: { readonly id: string; readonly version: number; readonly labels: object };
}
const WATCH = `subscription ($filter: DeploymentFilter) {
  watchDeployments(filter: $filter) {
    __typename
    ... on DeploymentAdded { deployment { id version labels } }
    ... on DeploymentChanged { deployment { id version labels } }
  }
}`;

describe('two servers on one database', () => {
  let database: TestDatabase;
  let servers: readonly [ServerProcess, ServerProcess];
  const start = () => startServerProcess({ databaseUrl: database.url });
  beforeAll(async () => {
    database = await createDatabase();
    servers = await Promise.all([start(), start()]);
  });
  afterAll(async () => {
    for (const server of servers) server.kill('SIGKILL');
    await Promise.all(servers.map(({ exited }) => exited));
    await database.drop();
  });

  it('tell their own subscribers what came through the other', async () => {
    const [one, other] = servers;
    const { id, name, version } = await deploy(one.url);
    const filter = { name: { equals: name } };
    const board = watch<Watched>(other.url, WATCH, { filter });
    await board.seen(({ __typename }) => __typename === 'SnapshotEnd', 'the snapshot');
    const after = await valueOf<string>(ask(one.url, '{ head }'));
    const phases = watch<PhaseChange>(other.url, PHASES, { filter, after });
    await patchStatus(one.url, { id, expectedVersion: version, phase: 'INITIAL_SETUP' });
    expect(await phases.seen(() => true, 'the phase')).toMatchObject({
      ...{ from: 'PENDING', to: 'INITIAL_SETUP', version: version + 1, deployment: { id } },
    });
    await board.seen(({ deployment }) => deployment?.version === version + 1, 'the change');
  });

  it('tell of a change that psql made behind their backs, and who made it', async () => {
    const [one, other] = servers;
    const { id, name, version } = await deploy(one.url);
    const filter = { name: { equals: name } };
    const after = await valueOf<string>(ask(one.url, '{ head }'));
    const streams = [one, other].map(({ url }) => ({
      board: watch<Watched>(url, WATCH, { filter }),
      phases: watch<PhaseChange>(url, PHASES, { filter, after }),
    }));
    for (const { board } of streams) {
      await board.seen(({ __typename }) => __typename === 'SnapshotEnd', 'the snapshot');
    }
    await withClient(database.connection, (client) =>
      client.query(
        `update deployment set phase = 'INITIAL_SETUP', labels = '{"by":"hand"}', version = version + 1 where id = $1`,
        [id],
      ),
    );
    for (const { board, phases } of streams) {
      expect(await phases.seen(() => true, 'the phase')).toMatchObject({
        ...{ from: 'PENDING', to: 'INITIAL_SETUP', version: version + 1 },
        actor: `sql:${database.connection.user}`,
      });
      const changed = await board.seen(({ deployment }) => deployment?.version === version + 1, 'the change');
      expect(changed.deployment?.labels).toEqual({ by: 'hand' });
    }
  });

  it('let exactly one of racing patches win, and give the others the fresh object', async () => {
    const RACERS = 20;
    const ROUNDS = 5;
    const deployments = await Promise.all(Array.from({ length: 10 }, () => deploy(servers[0].url)));
    await Promise.all(
      deployments.map(async ({ id, version: first }) => {
        for (let round = 0; round < ROUNDS; round += 1) {
          const expectedVersion = first + round;
          const results = await Promise.all(
            Array.from({ length: RACERS }, (_, racer): Promise<PatchResult> => {
              const server = racer % 2 === 0 ? servers[0] : servers[1];
              // Another one for each: a patch that changes nothing would have nothing to lose.
              const condition = {
                type: 'Ready',
                status: 'FALSE',
                reason: 'Raced',
                message: `${round}/${racer}`,
              };
              return patchStatus(server.url, { id, expectedVersion, conditions: [condition] });
            }),
          );
          const won = results.filter(({ deployment }) => deployment !== undefined);
          const lost = results.filter(({ __typename }) => __typename === 'DeploymentVersionConflict');
          expect([won.length, lost.length]).toEqual([1, RACERS - 1]);
          expect(won[0]?.deployment?.version).toBe(expectedVersion + 1);
          for (const { current, currentVersion } of lost) {
            expect(current?.version).toBe(currentVersion);
            expect(currentVersion).toBe(expectedVersion + 1);
          }
        }
      }),
    );
    const { rows } = await withClient(database.connection, (client) =>
      client.query(
        `select c.object_id, count(*)::int as changes, max(c.version) as version, count(distinct c.version)::int as versions
           from change c where c.object_id = any ($1) group by 1`,
        [deployments.map(({ id }) => id)],
      ),
    );
    expect(rows).toHaveLength(10);
    for (const row of rows) expect(row).toMatchObject({ changes: ROUNDS + 1, versions: ROUNDS + 1 });
  });
});
