/** Several servers on one database of their own, and what the database holds. */
import { newId } from '../../../src/kernel/ids.js';
import type { Connection } from '../../../src/store/embedded.js';
import { insertRow } from '../../../src/store/versioned.js';
import { withClient, type TestDatabase } from '../../support/test-server.js';
import { waitFor } from '../../support/wait-for.js';
import type { LoggedChange } from './log-index.js';
import type { Postgres } from './postgres.js';
import type { Random } from './random.js';
import { startServer, type Server } from './server-process.js';
import { post } from './writers.js';

export interface Fleet {
  readonly postgres: Postgres;
  readonly database: TestDatabase;
  readonly servers: readonly Server[];
  /** Deployments in RUNNING. */
  readonly objects: readonly string[];
  /** One that runs, by chance; any if none does. */
  any(random: Random): Server;
  /** Statements past the servers. */
  sql<R extends object>(text: string, values?: unknown[]): Promise<R[]>;
  head(): Promise<string>;
  readLog(): Promise<LoggedChange[]>;
  readStored(): Promise<Map<string, number>>;
  close(): Promise<void>;
}

export interface FleetOptions {
  readonly postgres: Postgres;
  readonly servers: number;
  readonly objects: number;
  readonly env?: Readonly<Record<string, string>>;
}

const HEAD_MS = 60_000;
const NAMES = ['one', 'two', 'three'];
const STAMP = { actor: 'system:test', reason: null, traceId: null };

export async function startFleet({
  postgres,
  servers: count,
  objects: size,
  env = {},
}: FleetOptions): Promise<Fleet> {
  const database = await postgres.createDatabase();
  const objects = await seed(database.connection, size);
  const spec = { postgres: postgres.connection, database: database.name, env };
  const started = await Promise.allSettled(
    NAMES.slice(0, count).map((name) => startServer({ ...spec, name })),
  );
  const servers = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const close = async () => {
    await Promise.all(servers.map((server) => server.close()));
    await database.drop();
  };
  const failed = started.find((one) => one.status === 'rejected');
  if (failed) {
    await close();
    throw failed.reason;
  }
  const sql = <R extends object>(text: string, values: unknown[] = []): Promise<R[]> =>
    withClient(database.connection, async (client) => (await client.query<R>(text, values)).rows);
  return {
    postgres,
    database,
    servers,
    objects,
    any(random) {
      const running = servers.filter((server) => server.running);
      return random.pick(running.length > 0 ? running : servers);
    },
    sql,
    head: () => waitFor(() => headOf(servers), 'a server tells where the log stands', HEAD_MS),
    readLog: () => readLog(sql),
    async readStored() {
      const rows = await sql<{ id: string; version: number }>(
        'select id, version from deployment where deleted_at is null',
      );
      return new Map(rows.map(({ id, version }) => [id, version]));
    },
    close,
  };
}

async function headOf(servers: readonly Server[]): Promise<string | undefined> {
  for (const server of servers) {
    const answer = await post(server.url, '{ head }', {}).catch(() => undefined);
    const head = (answer?.data as { head?: string } | null | undefined)?.head; // what was asked for
    if (head !== undefined) return head;
  }
  return undefined;
}

function seed(connection: Connection, count: number): Promise<readonly string[]> {
  return withClient(connection, async (client) => {
    const runtime = { namespace: 'default', name: 'lab', type: 'external' };
    const { id: runtimeId } = await insertRow(client, 'runtime', newId('RUNTIME'), runtime, STAMP);
    const ids: string[] = [];
    for (let made = 0; made < count; made += 1) {
      const values = {
        namespace: 'default',
        name: `shop-${made}`,
        app: 'shop',
        phase: 'RUNNING',
        runtimeId,
      } as const;
      ids.push((await insertRow(client, 'deployment', newId('DEPLOYMENT'), values, STAMP)).id);
    }
    return ids;
  });
}

interface Row {
  readonly seq: string;
  readonly xid: string;
  readonly kind: string;
  readonly object_id: string;
  readonly version: number;
  readonly from_state: string | null;
  readonly to_state: string | null;
  readonly actor: string;
  readonly at_ms: number;
  readonly message: string | null;
}

async function readLog(sql: Fleet['sql']): Promise<LoggedChange[]> {
  const rows = await sql<Row>(
    `select seq, xid::text, kind, object_id, version, from_state, to_state, actor, message,
       (extract(epoch from at) * 1000)::float8 as at_ms from change order by seq`,
  );
  return rows.map((row) => ({
    seq: BigInt(row.seq),
    xid: BigInt(row.xid),
    kind: row.kind,
    object: row.object_id,
    version: row.version,
    from: row.from_state,
    to: row.to_state,
    actor: row.actor,
    atMs: row.at_ms,
    message: row.message,
  }));
}
