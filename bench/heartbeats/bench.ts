/**
 * Heartbeats a second. Limit: the bare update of the liveness row through the driver. Ours: the mutation over HTTP. None
 * of them may write a change row, which is checked.
 */
import { withClient, type TestDatabase } from '../../test/support/test-server.js';
import type { Closing } from '../support/closing.js';
import { compare } from '../support/contender.js';
import { rawContender, serverContender } from '../support/contenders.js';
import { seedAgents, type BenchAgent } from '../support/fixture.js';
import type { Options } from '../support/options.js';
import { embeddedPostgres, type Postgres } from '../support/postgres.js';
import type { Group, Report } from '../support/report.js';
import type { HttpStart } from './http-worker.js';
import type { LimitStart } from './limit-worker.js';

const CLIENTS = [16];
/** What agents are told to keep to. */
const INTERVAL_SECONDS = 30;

export async function benchHeartbeats(options: Options, closing: Closing): Promise<Report> {
  const postgres = await embeddedPostgres(closing, 'socket');
  const groups: Group[] = [];
  const notes: string[] = [];
  for (const clients of options.clients ?? CLIENTS) {
    const bare = await seeded(postgres, options.agents);
    const ours = await seeded(postgres, options.agents);
    const limit: LimitStart = { databaseUrl: bare.database.url, agents: bare.agents, clients };
    const http: HttpStart = { agents: ours.agents, clients };
    const contenders = [
      await rawContender('bare update', new URL('limit-worker.ts', import.meta.url), limit, closing),
      await serverContender('Slipway', new URL('http-worker.ts', import.meta.url), ours.database, http, {
        closing,
        profile: options.profile,
      }),
    ];
    const before = await countChanges(ours.database);
    const summaries = await compare(contenders, options);
    const written = (await countChanges(ours.database)) - before;
    if (written !== 0) throw new Error(`heartbeats wrote ${written} change rows`);
    groups.push({ title: `${options.agents} agents, ${clients} clients`, unit: 'beats', summaries });
    notes.push(`${clients} clients: heartbeats wrote no change rows.`);
    const cpuMs = summaries[1]?.cpuMs;
    if (typeof cpuMs === 'number') notes.push(restingCost(options.agents, cpuMs));
    for (const contender of contenders) await contender.stop();
  }
  return { name: 'heartbeats', options, groups, notes };
}

async function seeded(postgres: Postgres, count: number) {
  let agents: readonly BenchAgent[] = [];
  const database = await postgres.createDatabase(async (client) => {
    agents = await seedAgents(client, count);
  });
  return { database, agents };
}

function countChanges({ connection }: TestDatabase): Promise<number> {
  return withClient(connection, async (client) => {
    const { rows } = await client.query<{ count: number }>('SELECT count(*)::int AS count FROM change');
    return rows[0]?.count ?? 0;
  });
}

function restingCost(agents: number, cpuMs: number): string {
  const share = ((agents / INTERVAL_SECONDS) * cpuMs) / 10;
  return `${agents} agents that beat each ${INTERVAL_SECONDS} s take ${share.toFixed(1)} % of a core of the server at that price (PostgreSQL not counted).`;
}
