import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { StepReader } from '../../../src/changes/step-reader.js';
import { silentLog } from '../../../src/kernel/log.js';
import { openDatabase, type Database } from '../../../src/store/database.js';
import { makePool } from '../../../src/store/pool.js';
import { sessionsLike, type Session } from '../../../src/store/session.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { bump, seedDeployments } from '../../support/log-writers.js';
import { ManualClock } from '../../support/manual-clock.js';
import { waitFor } from '../../support/wait-for.js';

describe('the reader of steps', () => {
  let test: TestDatabase;
  let database: Database;
  let session: Session | undefined;
  let reader: StepReader;
  /** Stands still unless a test moves it: nothing is polled. */
  let clock: ManualClock;
  const steps: number[] = [];
  beforeEach(async () => {
    test = await createDatabase();
    const pool = (applicationName: string) =>
      makePool({ database: { connection: test.connection }, size: 4, applicationName, log: silentLog });
    database = openDatabase({ pool: pool('test'), readPool: pool('test-read') });
    clock = new ManualClock();
    await start();
  });
  afterEach(async () => {
    await reader.stop();
    await database.close();
    await test.drop();
  });
  const start = async () => {
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
    reader = new StepReader({ database, openSession, clock, log: silentLog }, sink);
    await reader.start();
  };
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

  it('waits a moment behind a step of many rows, so that what comes next comes together', async () => {
    const ids = await seedDeployments(database.pool, 8);
    reader.wake();
    await waitFor(() => total() > 8, 'the objects are told');
    const before = steps.length;
    for (const id of ids) {
      await bump(database.pool, id);
      reader.wake();
    }
    expect(steps.length).toBe(before);
    clock.advance(8);
    await waitFor(() => steps.length > before, 'the step is read');
    expect(steps.slice(before)).toEqual([8]);
  });

  it('does not wait behind a step of one row', async () => {
    await reader.stop();
    const [id = ''] = await seedDeployments(database.pool, 1);
    await start();
    for (let i = 1; i <= 3; i += 1) {
      const before = total();
      await bump(database.pool, id);
      reader.wake();
      await waitFor(() => total() === before + 1, 'the change is told');
    }
  });
});
