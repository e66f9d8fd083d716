import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { newId } from '../../src/kernel/ids.js';
import { TABLES } from '../../src/store/tables.js';
import { insertRow, type Stamp } from '../../src/store/versioned.js';
import { createDatabase, type TestDatabase } from '../support/database.js';

const STAMP: Stamp = { actor: 'system:test', reason: null, traceId: null };
/** What the log adds to an object from its internal twin, on purpose. */
const EXTRA: Readonly<Record<string, readonly string[]>> = { agent: ['consumerLag', 'lastHeartbeatAt'] };
const TABLE_NAMES = Object.keys(TABLES) as (keyof typeof TABLES)[]; // the type of an object's own keys

/** Fields of a model of schema.prisma that are columns and not marked internal. */
function publicFields(model: string): string[] {
  const schema = readFileSync(fileURLToPath(new URL('../../prisma/schema.prisma', import.meta.url)), 'utf8');
  const [, body = ''] = new RegExp(`^model ${model} \\{$([\\s\\S]*?)^\\}$`, 'm').exec(schema) ?? [];
  const models = new Set([...schema.matchAll(/^(?:model|view) (\w+)/gm)].map(([, name]) => name));
  const fields: string[] = [];
  let internal = false;
  for (const line of body.split('\n').map((text) => text.trim())) {
    if (line.startsWith('///')) {
      internal ||= line.includes('@internal');
      continue;
    }
    const [, name, type] = /^(\w+)\s+(\w+)/.exec(line) ?? [];
    if (name !== undefined && type !== undefined && !internal && !models.has(type)) fields.push(name);
    internal = false;
  }
  return fields.sort();
}

describe('the projection that the log writes', () => {
  let database: TestDatabase;
  let client: pg.Client;
  beforeAll(async () => {
    database = await createDatabase();
    client = new pg.Client(database.connection);
    await client.connect();
    const runtime = newId('RUNTIME');
    await insertRow(client, 'runtime', runtime, { namespace: 'a', name: 'a', type: 'external' }, STAMP);
    await insertRow(
      client,
      'release',
      newId('RELEASE'),
      { namespace: 'a', app: 'a', label: 'a', resources: [] },
      STAMP,
    );
    const deployment = newId('DEPLOYMENT');
    await insertRow(
      client,
      'deployment',
      deployment,
      { namespace: 'a', name: 'a', app: 'a', runtimeId: runtime },
      STAMP,
    );
    await insertRow(
      client,
      'rollout',
      newId('ROLLOUT'),
      { namespace: 'a', deploymentId: deployment, operation: 'DEPLOY', startedBy: 'a' },
      STAMP,
    );
    const agent = newId('AGENT');
    await insertRow(client, 'agent', agent, { name: 'a', topic: 'a', serviceTypes: [] }, STAMP);
    await client.query("insert into agent_internal (agent_id, session) values ($1, 's')", [agent]);
    await insertRow(
      client,
      'token',
      newId('TOKEN'),
      { name: 'a', roles: [], namespaces: [], createdBy: 'a' },
      STAMP,
    );
    for (const table of ['runtime', 'deployment', 'agent', 'token', 'rollout']) {
      await client.query(`update ${table} set version = version + 1`);
    }
    for (const table of ['rollout', 'deployment', 'runtime', 'release', 'agent', 'token']) {
      await client.query(`delete from ${table}`);
    }
  });
  afterAll(async () => {
    await client.end();
    await database.drop();
  });

  it.each(TABLE_NAMES)('has exactly the public columns of %s, whatever the operation', async (table) => {
    const model = `${table.charAt(0).toUpperCase()}${table.slice(1)}`;
    const declared = Object.keys(TABLES[table]).sort();
    expect(declared, 'src/store/tables.ts differs from the public columns of schema.prisma').toEqual(
      publicFields(model),
    );

    const { rows } = await client.query<{ op: string; keys: string[]; before: string[] | null }>(
      `select c.op::text, array(select jsonb_object_keys(p.after)) as keys,
         case when p.before is not null then array(select jsonb_object_keys(p.before)) end as before
       from change c join change_payload p using (seq) where c.kind::text = upper($1) order by seq`,
      [table],
    );
    const ops = table === 'release' ? ['INSERT', 'DELETE'] : ['INSERT', 'UPDATE', 'DELETE'];
    expect(rows.map(({ op }) => op)).toEqual(ops);
    for (const { op, keys, before } of rows) {
      const extra = EXTRA[table] ?? [];
      expect(
        keys.filter((key) => !extra.includes(key)).sort(),
        `${op}: name the new column in the log's trigger`,
      ).toEqual(declared);
      for (const key of before ?? []) expect(declared).toContain(key);
    }
    for (const extra of EXTRA[table] ?? []) expect(rows[1]?.keys).toContain(extra);
  });
});
