import type { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { newId } from '../../../src/kernel/ids.js';
import type { Database, Statement } from '../../../src/store/database.js';
import { agentsOf, valueOf } from '../../support/agents.js';
import { local, someone } from '../../support/callers.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { openStore } from '../../support/open-store.js';
import { waitFor } from '../../support/wait-for.js';

const AGENTS = 2_000;
const ROUNDS = 3;

/** The same database, whose statements are written down as they go by. */
function watched(database: Database): { database: Database; names: string[] } {
  const names: string[] = [];
  const note = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(owner, key) {
        const member: unknown = Reflect.get(owner, key);
        if (key !== 'query' || typeof member !== 'function') return member;
        return (statement: Statement) => {
          names.push(statement.name ?? statement.text);
          return member.call(owner, statement) as unknown; // whatever the real one answers
        };
      },
    });
  return {
    database: {
      ...database,
      pool: note<Pool>(database.pool),
      quiet: note(database.quiet),
      writer: note(database.writer),
    },
    names,
  };
}

describe('a fleet of 2,000 agents', () => {
  let test: TestDatabase;
  let store: Database;
  const ids = Array.from({ length: AGENTS }, () => newId('AGENT'));
  beforeAll(async () => {
    test = await createDatabase();
    store = openStore(test);
    const seeding = openStore(test, 'seeding');
    await seeding.pool.query(
      `INSERT INTO agent (id, name, topic, service_types) SELECT id, id, id, '{}' FROM unnest($1::text[]) AS id`,
      [ids],
    );
    await seeding.pool.query(
      `INSERT INTO agent_internal (agent_id, session) SELECT id, 'ses_' || id FROM unnest($1::text[]) AS id`,
      [ids],
    );
    await seeding.close();
    await waitFor(async () => (await written()).agent_internal === AGENTS, 'the numbers of the seeds');
  });
  afterAll(async () => {
    await store.close();
    await test.drop();
  });

  const numbers = async () => {
    const { rows } = await store.pool.query<{ changes: number; versions: number }>(
      'SELECT (SELECT count(*)::int FROM change) AS changes, (SELECT sum(version)::int FROM agent) AS versions',
    );
    return rows[0];
  };
  /** Rows written, by table. A session hands its numbers over as it ends: soon after its pool is closed. */
  const written = async () => {
    const { rows } = await store.pool.query<{ relname: string; n: number }>(
      `SELECT relname, (n_tup_ins + n_tup_upd + n_tup_del)::int AS n FROM pg_stat_user_tables WHERE n_tup_ins + n_tup_upd + n_tup_del > 0`,
    );
    return Object.fromEntries(rows.map(({ relname, n }) => [relname, n]));
  };

  it.each([
    ['anybody', local],
    ['a token for a prefix of names', someone({ roles: ['AGENT'], agentName: 'agt_*' })],
  ])(
    'costs one small write a beat that changes no health, and wakes nobody: sent by %s',
    async (_who, caller) => {
      const beating = openStore(test, 'beating', 8);
      const before = { ...(await numbers()), written: await written() };
      let wakes = 0;
      beating.onCommit(() => (wakes += 1));
      const { database, names } = watched(beating);
      const { heartbeatAgent } = agentsOf(database);
      const base = caller === local ? 0 : 100;
      for (let round = 1; round <= ROUNDS; round += 1) {
        const outcomes = await Promise.all(
          ids.map(async (id) =>
            heartbeatAgent(caller, { id, session: `ses_${id}`, sequence: base + round, consumerLag: round }),
          ),
        );
        expect(outcomes.every((outcome) => valueOf(outcome).applied)).toBe(true);
      }
      await beating.close();
      expect(names).toHaveLength(AGENTS * ROUNDS);
      expect(new Set(names).size).toBe(1);
      expect(wakes).toBe(0);
      const expected = (before.written.agent_internal ?? 0) + AGENTS * ROUNDS;
      await waitFor(
        async () => ((await written()).agent_internal ?? 0) >= expected,
        'the numbers of the beats',
      );
      const after = { ...(await numbers()), written: await written() };
      expect(after).toEqual({ ...before, written: { ...before.written, agent_internal: expected } });
    },
  );

  it('costs one statement more, and one change row, where the health moves', async () => {
    const { database, names } = watched(store);
    const before = await numbers();
    const some = ids.slice(0, 50);
    await Promise.all(
      some.map(async (id) =>
        agentsOf(database).heartbeatAgent(local, {
          id,
          session: `ses_${id}`,
          sequence: 1_000,
          consumerLag: 100,
        }),
      ),
    );
    const after = await numbers();
    expect(names).toHaveLength(2 * some.length);
    expect(after).toEqual({
      changes: (before?.changes ?? 0) + some.length,
      versions: (before?.versions ?? 0) + some.length,
    });
  });
});
