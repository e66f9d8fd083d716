import { randomUUID } from 'node:crypto';

import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { newId } from '../../../src/kernel/ids.js';
import { insertRow, updateRow } from '../../../src/store/versioned.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { bump, seedDeployments, STAMP } from '../../support/log-writers.js';

interface Row {
  seq: string;
  op: string;
  version: number;
  actor: string;
  reason: string | null;
  message: string | null;
  trace_id: string | null;
  from_state: string | null;
  to_state: string | null;
  after: Record<string, unknown> | null;
  before: Record<string, unknown> | null;
}

describe('the writer of the change log', () => {
  let database: TestDatabase;
  let client: pg.Client;
  beforeAll(async () => {
    database = await createDatabase();
    client = new pg.Client(database.connection);
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await database.drop();
  });

  const log = async (id: string): Promise<Row[]> => {
    const { rows } = await client.query<Row>(
      'select c.*, p.after, p.before from change c left join change_payload p using (seq) where object_id = $1 order by seq',
      [id],
    );
    return rows;
  };
  const deployment = async (): Promise<string> => {
    const [id] = await seedDeployments(client, 1);
    if (id === undefined) throw new Error('nothing was seeded');
    return id;
  };
  const codeOf = async (text: string, values: unknown[] = []): Promise<string | undefined> => {
    const error: unknown = await client.query(text, values).catch((reason: unknown) => reason);
    return error instanceof pg.DatabaseError ? error.code : undefined;
  };

  it('writes one row for a version, with who and why, in the transaction of the write', async () => {
    const id = await deployment();
    const stamp = { actor: 'token:tok_1', reason: 'Rollout', message: 'to v2', traceId: 'abc' };
    await updateRow(client, 'deployment', id, 1, { phase: 'INITIAL_SETUP', labels: { team: 'a' } }, stamp);
    const [first, second, ...more] = await log(id);
    expect(more).toEqual([]);
    expect(first).toMatchObject({
      op: 'INSERT',
      version: 1,
      actor: STAMP.actor,
      from_state: null,
      to_state: 'PENDING',
      before: null,
    });
    expect(second).toMatchObject({
      op: 'UPDATE',
      version: 2,
      actor: 'token:tok_1',
      reason: 'Rollout',
      message: 'to v2',
      trace_id: 'abc',
      from_state: 'PENDING',
      to_state: 'INITIAL_SETUP',
      after: { id, phase: 'INITIAL_SETUP', labels: { team: 'a' }, version: 2 },
      before: { phase: 'PENDING', labels: {}, deletedAt: null },
    });

    await client.query('begin');
    await bump(client, id);
    expect(await log(id)).toHaveLength(3);
    await client.query('rollback');
    expect(await log(id)).toHaveLength(2);
  });

  it('says nothing of an update that changes nothing', async () => {
    const id = await deployment();
    await client.query('update deployment set phase = phase where id = $1', [id]);
    expect(await log(id)).toHaveLength(1);
  });

  it.each([
    ['a change without a new version', 'update deployment set app = app || $2 where id = $1', 'SL001'],
    [
      'a version that jumps',
      'update deployment set app = app || $2, version = version + 2 where id = $1',
      'SL001',
    ],
    [
      'a version that goes back',
      'update deployment set app = app || $2, version = version - 1 where id = $1',
      'SL001',
    ],
    ['another id', 'update deployment set id = id || $2, version = version + 1 where id = $1', 'SL002'],
    [
      'another creation time',
      "update deployment set created_at = created_at - length($2) * interval '1 hour', version = version + 1 where id = $1",
      'SL002',
    ],
    [
      'another namespace',
      'update deployment set namespace = namespace || $2, version = version + 1 where id = $1',
      'SL002',
    ],
  ])('refuses %s', async (_what, text, code) => {
    const id = await deployment();
    expect(await codeOf(text, [id, 'x'])).toBe(code);
    expect(await log(id)).toHaveLength(1);
  });

  it('refuses a first version other than 1', async () => {
    const text = "insert into agent (id, name, topic, service_types, version) values ($1, $1, $1, '{}', 2)";
    expect(await codeOf(text, [newId('AGENT')])).toBe('SL003');
  });

  it('refuses to make an id again that the log knows', async () => {
    const id = newId('AGENT');
    const insert = "insert into agent (id, name, topic, service_types) values ($1, $1, $1, '{}')";
    expect(await codeOf(insert, [id])).toBeUndefined();
    await client.query('delete from agent where id = $1', [id]);
    expect(await codeOf(insert, [id])).toBe('23505');
  });

  it.each(['runtime', 'release', 'deployment', 'agent', 'token', 'change', 'change_payload', 'log_state'])(
    'refuses TRUNCATE of %s',
    async (table) => {
      expect(await codeOf(`truncate ${table} cascade`)).toBe('SL004');
    },
  );

  it('never lets a release change', async () => {
    const id = newId('RELEASE');
    await insertRow(
      client,
      'release',
      id,
      { namespace: 'default', app: 'shop', label: 'v1', resources: [] },
      STAMP,
    );
    expect(await codeOf("update release set label = 'v2', version = version + 1 where id = $1", [id])).toBe(
      'SL005',
    );
    expect(await log(id)).toHaveLength(1);
  });

  it('names the database user for what was written past the server', async () => {
    const id = await deployment();
    const { rows } = await client.query<{ who: string }>("select 'sql:' || session_user as who");
    const who = rows[0]?.who;
    await client.query("update deployment set version = version + 1, phase = 'INITIAL_SETUP' where id = $1", [
      id,
    ]);
    expect((await log(id)).at(-1)).toMatchObject({ actor: who, reason: null, message: null, trace_id: null });

    const agent = newId('AGENT');
    await client.query(
      "insert into agent (id, name, topic, service_types, changed_by) values ($1, $1, $1, '{}', 'token:forged')",
      [agent],
    );
    expect((await log(agent)).at(-1)).toMatchObject({ actor: who, op: 'INSERT' });

    await client.query('delete from deployment where id = $1', [id]);
    expect((await log(id)).at(-1)).toMatchObject({
      actor: who,
      op: 'DELETE',
      version: 3,
      from_state: 'INITIAL_SETUP',
      to_state: null,
    });
  });

  it('tells a deletion with its mark, and nothing more when the row itself goes', async () => {
    const id = await deployment();
    const marked =
      "update deployment set version = version + 1, phase = 'DELETED', deleted_at = now(), changed_by = 'local', change_token = $2 where id = $1";
    await client.query(marked, [id, randomUUID()]);
    await client.query('delete from deployment where id = $1', [id]);
    const rows = await log(id);
    expect(rows.map(({ op, version, actor }) => [op, version, actor])).toEqual([
      ['INSERT', 1, STAMP.actor],
      ['DELETE', 2, 'local'],
    ]);
    expect(rows[1]?.before).toMatchObject({ deletedAt: null, phase: 'PENDING' });
  });

  it('stays fast for a bulk update on a connection that wrote single rows before', async () => {
    // A plan that was made for one row and kept for many is what this would find: minutes, not seconds.
    const [single] = await seedDeployments(client, 1, 'bulk');
    for (let i = 0; i < 200; i += 1) await bump(client, single ?? '');
    const { rows } = await client.query<{ id: string }>(
      "select runtime_id as id from deployment where namespace = 'bulk'",
    );
    await client.query(
      `insert into deployment (id, namespace, name, app, runtime_id, change_token)
       select 'bulk-' || i, 'bulk', 'bulk-' || i, 'shop', $1, 't' from generate_series(1, 20000) i`,
      [rows[0]?.id],
    );
    const started = performance.now();
    await client.query(
      "update deployment set version = version + 1, observed_generation = 1 where app = 'shop' and id like 'bulk-%'",
    );
    expect(performance.now() - started).toBeLessThan(20_000);
    const counted = await client.query<{ n: number }>(
      "select count(*)::int as n from change where object_id like 'bulk-%' and version = 2",
    );
    expect(counted.rows[0]?.n).toBe(20_000);
  });

  it.each([
    '10000-01-01 00:00+00',
    '9999-12-31 23:59:59.9996+00',
    'infinity',
    '-infinity',
    '0044-03-15 00:00+00 BC',
  ])('meets no moment that a reader of the log could not parse: %s', async (moment) => {
    const id = await deployment();
    const agent = newId('AGENT');
    await insertRow(client, 'agent', agent, { name: agent, topic: agent, serviceTypes: [] }, STAMP);
    await client.query(`insert into agent_internal (agent_id, session) values ($1, 's')`, [agent]);
    const token = newId('TOKEN');
    await insertRow(client, 'token', token, { name: 'a', roles: [], namespaces: [], createdBy: 'a' }, STAMP);
    const runtime = newId('RUNTIME');
    await insertRow(client, 'runtime', runtime, { namespace: 'a', name: runtime, type: 'external' }, STAMP);
    const writes: readonly (readonly [string, string])[] = [
      ['update deployment set version = 2, deletion_requested_at = $2 where id = $1', id],
      [`update deployment set version = 2, phase = 'DELETED', deleted_at = $2 where id = $1`, id],
      ['update runtime set version = 2, deletion_requested_at = $2 where id = $1', runtime],
      ['update runtime set version = 2, deleted_at = $2 where id = $1', runtime],
      ['update agent set version = 2, deleted_at = $2 where id = $1', agent],
      ['update agent_internal set last_heartbeat_at = $2 where agent_id = $1', agent],
      ['update token set version = 2, expires_at = $2 where id = $1', token],
      ['update token set version = 2, revoked_at = $2 where id = $1', token],
      ['insert into token_use (token_id, last_used_at) values ($1, $2)', token],
    ];
    for (const [text, of] of writes) expect(await codeOf(text, [of, moment]), text).toBe('23514');
  });

  it.each([
    ['Pacific/Kiritimati', '9999-12-31T23:59:59.999+00:00'],
    ['America/New_York', '0001-01-01T00:00:00+00:00'],
  ])('writes moments in UTC, whoever writes from %s', async (zone, moment) => {
    const token = newId('TOKEN');
    await insertRow(client, 'token', token, { name: 'a', roles: [], namespaces: [], createdBy: 'a' }, STAMP);
    await client.query(`set timezone = '${zone}'`);
    await client.query('update token set version = 2, expires_at = $2 where id = $1', [token, moment]);
    await client.query('reset timezone');
    expect((await log(token)).at(-1)?.after).toMatchObject({ expiresAt: moment });
  });
});
