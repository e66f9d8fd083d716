import { cpSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { newId } from '../../../src/kernel/ids.js';
import { migrate } from '../../../src/store/migrate.js';
import {
  createEmptyDatabase,
  makeTestFolder,
  withClient,
  type TestDatabase,
} from '../../support/database.js';

const MIGRATIONS = fileURLToPath(new URL('../../../prisma/migrations', import.meta.url));
const [FIRST = ''] = readdirSync(MIGRATIONS).sort();

/** A database of the first version, with objects in every phase that the table of phases had then. */
async function firstVersion(client: pg.Client): Promise<void> {
  const directory = makeTestFolder('first');
  cpSync(join(MIGRATIONS, FIRST), join(directory, FIRST), { recursive: true });
  await migrate(client, { directory });
  const runtime = newId('RUNTIME');
  await client.query("insert into runtime (id, namespace, name, type) values ($1, 'Ä', 'b', 'external')", [
    runtime,
  ]);
  const phases = await client.query<{ phase: string }>(
    'select unnest(enum_range(null::"DeploymentPhase"))::text as phase',
  );
  for (const { phase } of phases.rows) {
    await client.query(
      `insert into deployment (id, namespace, name, app, runtime_id, phase, deleted_at)
       values ($1, 'Ä', $2, 'a', $3, $2::text::"DeploymentPhase", case when $2 = 'DELETED' then now() end)`,
      [newId('DEPLOYMENT'), phase, runtime],
    );
  }
}

describe('migrate', () => {
  let database: TestDatabase;
  let before: pg.QueryResult;
  const rows = (client: pg.Client) =>
    client.query('select id, name, version, phase, updated_at, changed_by from deployment order by id');

  beforeAll(async () => {
    database = await createEmptyDatabase();
    await withClient(database.connection, async (client) => {
      await firstVersion(client);
      before = await rows(client);
      await client.query('create table changes_before as select count(*) from change');
      await migrate(client, { directory: MIGRATIONS });
    });
  });
  afterAll(() => database.drop());

  it('brings a database of the first version here, without a change to any object', async () => {
    await withClient(database.connection, async (client) => {
      expect((await rows(client)).rows).toEqual(before.rows);
      const { rows: counts } = await client.query(
        'select (select count from changes_before) = count(*) as same from change',
      );
      expect(counts).toEqual([{ same: true }]);
    });
  });

  it('marks what is neither running nor deleted among the rows that were there', async () => {
    await withClient(database.connection, async (client) => {
      const { rows: unmarked } = await client.query<{ phase: string }>(
        'select phase from deployment where not exceptional order by phase::text',
      );
      expect(unmarked.map(({ phase }) => phase)).toEqual(['DELETED', 'RUNNING']);
    });
  });

  it('leaves the guards on', async () => {
    await withClient(database.connection, async (client) => {
      await expect(client.query("update deployment set app = 'b'")).rejects.toMatchObject({ code: 'SL001' });
      await expect(
        client.query("update deployment set namespace = 'b', version = version + 1"),
      ).rejects.toMatchObject({ code: 'SL002' });
    });
  });
});
