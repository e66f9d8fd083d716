import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createDatabase, withClient, type TestDatabase } from '../support/database.js';
import { diffToDatamodel } from '../support/schema-engine.js';

const datamodel = readFileSync(fileURLToPath(new URL('../../prisma/schema.prisma', import.meta.url)), 'utf8');

/** What a datamodel cannot say, so Prisma neither makes nor misses it. Whoever adds one adds it here. */
const UNKNOWN_TO_PRISMA = [
  'check agent.agent_moments',
  'check agent_internal.agent_internal_moments',
  'check deploy_lock.deploy_lock_moments',
  'check deployment.deployment_deleted_phase',
  'check deployment.deployment_moments',
  'check log_state.log_state_one_row',
  'check rollout.rollout_finished',
  'check rollout.rollout_moments',
  'check runtime.runtime_moments',
  'check token.token_moments',
  'check token_use.token_use_moments',
  'partial index deployment.deployment_deleted_at_idx',
  'partial index deployment.deployment_exceptional_idx',
  'partial index deployment.deployment_live_name_key',
  'partial index deployment.deployment_target_release_id_idx',
  'partial index rollout.rollout_unfinished_key',
  'partial index runtime.runtime_deleted_at_idx',
  'partial index runtime.runtime_live_name_key',
  'partial index runtime.runtime_terminating_idx',
  'view agent_liveness',
  'view deploy_lock_held',
  'view deployment_attempts',
];

describe('schema.prisma and the migrations', () => {
  let database: TestDatabase;
  beforeEach(async () => {
    database = await createDatabase();
  });
  afterEach(() => database.drop());

  const run = (sql: string) =>
    withClient(database.connection, (client) => client.query<{ what: string }>(sql));

  it('describe the same database', async () => {
    const missing = await diffToDatamodel(database.connection, datamodel);
    expect(
      missing,
      'schema.prisma has changed: run `npm run migration:make -- <name>` and review what it writes',
    ).toEqual([]);
  });

  it('differ only in what a datamodel cannot say', async () => {
    const { rows } = await run(`
      select 'check ' || conrelid::regclass || '.' || conname as what from pg_constraint
       where contype = 'c' and connamespace = 'public'::regnamespace
      union all select 'partial index ' || indrelid::regclass || '.' || indexrelid::regclass from pg_index
       where (indpred is not null or indexprs is not null) and indrelid in (select oid from pg_class where relnamespace = 'public'::regnamespace)
      union all select 'view ' || viewname from pg_views where schemaname = 'public'
      order by 1`);
    expect(rows.map(({ what }) => what)).toEqual(UNKNOWN_TO_PRISMA);
  });

  it.each([
    ['a missing column', 'alter table runtime drop column environment', 'ADD COLUMN     "environment" TEXT'],
    [
      'a missing column of a type that Prisma does not know',
      'alter table change drop column xid cascade',
      'ADD COLUMN     "xid" xid8',
    ],
    [
      'a missing index',
      'drop index deployment_current_release_id_idx',
      'CREATE INDEX "deployment_current_release_id_idx"',
    ],
    [
      'a missing foreign key',
      'alter table token_secret drop constraint token_secret_token_id_fkey',
      'ADD CONSTRAINT "token_secret_token_id_fkey"',
    ],
    ['another type', 'alter table agent_internal alter consumer_lag type bigint', 'SET DATA TYPE INTEGER'],
    ['a lost default', 'alter table log_state alter floor_xid drop default', 'SET DEFAULT'],
    ['an enum value that only the database has', `alter type "Role" add value 'GUEST'`, 'Role'],
    ['a table that only the database has', 'create table extra (id int primary key)', 'DROP TABLE "extra"'],
  ])('are told apart by %s', async (_what, sql, expected) => {
    await run('drop view agent_liveness');
    await run(sql);
    expect((await diffToDatamodel(database.connection, datamodel)).join('\n')).toContain(expected);
  });

  it('are told apart by an enum value that only the datamodel has', async () => {
    const more = datamodel.replace(/^enum Role \{/m, 'enum Role {\n  GUEST');
    expect(await diffToDatamodel(database.connection, more)).toEqual([`ALTER TYPE "Role" ADD VALUE 'GUEST'`]);
  });
});
