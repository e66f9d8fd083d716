import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { createDatabase, type TestDatabase } from '../../support/database.js';

describe('the read role', () => {
  let database: TestDatabase;
  let client: pg.Client;
  beforeAll(async () => {
    database = await createDatabase();
    client = new pg.Client({ ...database.connection, options: '-c role=slipway_read' });
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await database.drop();
  });

  const refused = async (text: string): Promise<boolean> => {
    const error: unknown = await client.query(text).catch((reason: unknown) => reason);
    return error instanceof pg.DatabaseError && error.code === '42501';
  };

  it('reads public columns and the log position', async () => {
    await client.query('select id, phase from deployment');
    await client.query('select kind, object_id, version, actor from change');
    const { rows } = await client.query<{ position: string }>('select slipway_log_position() as position');
    expect(rows[0]?.position).toMatch(/^\d+:\d+:[\d,]*$/);
  });

  it.each([
    'runtime_internal',
    'deployment_internal',
    'agent_internal',
    'token_secret',
    'idempotency_record',
    'change_payload',
    'log_state',
  ])('may not read %s', async (table) => {
    expect(await refused(`select * from ${table}`)).toBe(true);
  });

  it.each(['runtime', 'release', 'deployment', 'agent', 'token'])(
    'may not read who last wrote a row of %s',
    async (table) => {
      for (const column of ['change_token', 'changed_by', 'change_reason', 'change_message', 'trace_id']) {
        expect(await refused(`select ${column} from ${table}`), column).toBe(true);
      }
    },
  );

  it('may write nothing', async () => {
    expect(await refused("update deployment set app = 'x'")).toBe(true);
    expect(await refused('delete from change')).toBe(true);
    expect(await refused('select xid from change')).toBe(true);
  });
});
