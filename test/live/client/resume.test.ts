import { afterAll, describe, expect, it } from 'vitest';
import { createDatabase, externalPostgres, type TestDatabase } from '../../support/database.js';
import { faultsIn, runResumeCourse, type CourseResult } from '../../support/resume-course.js';

/** As DeploymentPhaseChanged, but without a cursor to resume from; whoever uses it accepts gaps. */
const FORGETFUL = 'subscription { deploymentPhaseChanged { deployment { id version } } }';

const databases: TestDatabase[] = [];
afterAll(async () => {
  await Promise.all(databases.map((database) => database.drop()));
});

async function kept(database: Promise<TestDatabase>): Promise<TestDatabase> {
  databases.push(await database);
  return database;
}

function expectNothingLost(result: CourseResult): void {
  expect(result.received.flatMap((got) => faultsIn(result.written, got))).toEqual([]);
  expect(result.repeated).toEqual([]);
  for (const names of result.held) expect(names).toEqual(result.stored);
}

describe('clients whose connections are cut at random', () => {
  it(
    'lose nothing and see nothing twice while their server is killed and started again',
    { timeout: 120_000 },
    async () => {
      const database = await kept(createDatabase());
      const result = await runResumeCourse({ database, servers: 1, clients: 12, rounds: 20, killEvery: 7 });
      expectNothingLost(result);
      expect(result.kills).toBe(2);
      expect(Object.values(result.cuts).reduce((sum, count) => sum + count, 0)).toBeGreaterThan(40);
      expect(result.written.length).toBeGreaterThan(200);
    },
  );

  it(
    'lose nothing when they move between two servers on an external PostgreSQL',
    { timeout: 120_000 },
    async () => {
      const external = await externalPostgres();
      const database = await kept(external.createEmptyDatabase());
      const result = await runResumeCourse({ database, servers: 2, clients: 12, rounds: 20, killEvery: 7 });
      expectNothingLost(result);
      expect(result.kills).toBe(2);
    },
  );

  it('would be seen to lose events if they did not resume by cursor', { timeout: 120_000 }, async () => {
    const database = await kept(createDatabase());
    const result = await runResumeCourse({
      database,
      servers: 1,
      clients: 4,
      rounds: 9,
      killEvery: 100,
      settleMs: 2_000,
      phases: (client) => client.subscribe(FORGETFUL, {}, { onGap: () => undefined }),
    });
    const faults = result.received.flatMap((got) => faultsIn(result.written, got));
    expect(faults.some((fault) => fault.startsWith('lost'))).toBe(true);
  });
});
