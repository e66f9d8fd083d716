/** The small forms of scenarios as tests. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { makeTestFolder } from '../../support/database.js';
import { commandOf } from './past-bugs.js';
import { startPostgres, type Postgres } from './postgres.js';
import { SCENARIOS } from './scenarios.js';

/** Chance belongs into soaks; here a failure must come again. */
const SEED = 1;
const KEPT = '.slipway/histories';

export function smallForms(names: readonly string[]): void {
  describe('under faults', () => {
    let postgres: Postgres;
    beforeAll(async () => {
      postgres = await startPostgres(makeTestFolder('faults'));
    });
    afterAll(() => postgres.stop());

    it.each(names)('%s holds', { timeout: 300_000 }, async (name) => {
      const one = SCENARIOS[name];
      if (!one) throw new RangeError(`there is no scenario ${name}`);
      const verdict = await one.run({ scenario: name, seed: SEED, postgres, keepIn: KEPT }, one.small);
      expect(verdict.problems, `${one.shows}; again: ${commandOf({ scenario: name, seed: SEED })}`).toEqual(
        [],
      );
    });
  });
}

/** In a file of their own, since they take the longest. */
export const LONG = ['chaos', 'resumes'];
