import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { StepReader } from '../../../src/changes/step-reader.js';
import { systemClock } from '../../../src/kernel/clock.js';
import { silentLog } from '../../../src/kernel/log.js';
import { openDatabase, type Database } from '../../../src/store/database.js';
import { makePool } from '../../../src/store/pool.js';
import { sessionsLike, type Session } from '../../../src/store/session.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { bump, seedDeployments } from '../../support/log-writers.js';
import { waitFor } from '../../support/wait-for.js';

describe('the reader of steps', () => {
  let test: TestDatabase;
  let database: Database;
  let session: Session | undefined;
  let reader: StepReader;
  const steps: number[] = [];
  beforeEach(async () => {
    test = await createDatabase();
    const pool = (applicationName: string) =>
      makePool({ database: { connection: test.connection }, size: 4, applicationName, log: silentLog });
    database = openDatabase({ pool: pool('test'), readPool: pool('test-read') });
    const open = sessionsLike(database.pool);
    const openSession: typeof open = async (...purpose) => (session = await open(...purpose));
    steps.length = 0;
    let told = 0;
    const sink = {
      began: () => undefined,
      told: (rows: readonly unknown[]) => (told += rows.length),
      reached: () => {
        steps.push(told);
        told = 0;
      },
      stuck: () => undefined,
      reconnected: () => undefined,
    };
    reader = new StepReader({ database, openSession, clock: systemClock, log: silentLog }, sink);
    await reader.start();
  });
  afterEach(async () => {
    await reader.stop();
    await database.close();
    await test.drop();
  });
  const total = () => steps.reduce((sum, rows) => sum + rows, 0);

  it('has its statement planned once, not at each step', async () => {
    const seen = steps.length;
    for (let i = 1; i <= 8; i += 1) {
      reader.wake();
      await waitFor(() => steps.length >= seen + i, 'a step is read');
    }
    const plans = await session?.query<{ generic: number; custom: number }>({
      text: "select generic_plans::int as generic, custom_plans::int as custom from pg_prepared_statements where name = 'log_step'",
    });
    expect(plans?.rows[0]).toMatchObject({ custom: 0 });
    expect(plans?.rows[0]?.generic).toBeGreaterThanOrEqual(8);
  });

  it('reads many commits in fewer steps, and every one of them', async () => {
    const ids = await seedDeployments(database.pool, 8);
    reader.wake();
    await waitFor(() => total() >= 8, 'the objects are told');
    const before = { steps: steps.filter((rows) => rows > 0).length, rows: total() };
    await Promise.all(
      ids.map(async (id) => {
        for (let i = 0; i < 25; i += 1) {
          await bump(database.pool, id);
          reader.wake();
        }
      }),
    );
    await waitFor(() => total() - before.rows >= 200, 'all changes are told');
    expect(total() - before.rows).toBe(200);
    expect(steps.filter((rows) => rows > 0).length - before.steps).toBeLessThan(150);
  });
});
