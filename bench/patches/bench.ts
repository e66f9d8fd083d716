/**
 * Status patches a second. Limit: the bare prepared statement through the driver, with the log's trigger. Ours: the
 * mutation over HTTP. Both also on a database whose log trigger is off, which tells what the change log costs. Peers: the
 * same mutation with a version check, with the log's trigger.
 */
import type pg from 'pg';

import { startPeer, type Peer } from '../peers/start.js';
import type { Closing } from '../support/closing.js';
import { compare, type Contender } from '../support/contender.js';
import { rawContender, serverContender, type Target } from '../support/contenders.js';
import { seedDeployments } from '../support/fixture.js';
import type { Options } from '../support/options.js';
import { embeddedPostgres, externalPostgres, type Postgres } from '../support/postgres.js';
import { ratio, type Group, type Report } from '../support/report.js';
import type { HttpStart } from './http-worker.js';
import type { LimitStart } from './limit-worker.js';

const CLIENTS = [1, 16, 64];
const DEPLOYMENTS_PER_CLIENT = 8;
/** How the peers read, which a patch does not. */
const PEER_SETTING = { strategy: 'query', relations: 'loaders' };

export async function benchPatches(options: Options, closing: Closing): Promise<Report> {
  const clients = options.clients ?? CLIENTS;
  const groups: Group[] = [];
  for (const place of ['embedded', 'external'] as const) {
    const postgres = await open(place, options, closing);
    for (const count of clients) {
      const contenders = await contendersOf({ postgres, clients: count, closing, profile: options.profile });
      const title = `${place}, ${count} ${count === 1 ? 'client' : 'clients'}`;
      groups.push({ title, unit: 'patches', summaries: await compare(contenders, options) });
      for (const contender of contenders) await contender.stop();
    }
  }
  return { name: 'patches', options, groups, notes: groups.map(logCost) };
}

function open(place: 'embedded' | 'external', options: Options, closing: Closing): Promise<Postgres> {
  if (place === 'embedded') return embeddedPostgres(closing, 'socket');
  const { databaseUrl } = options;
  return databaseUrl === undefined
    ? embeddedPostgres(closing, 'tcp')
    : externalPostgres(closing, databaseUrl);
}

function contendersOf(setting: Omit<Setting, 'withLog'>): Promise<Contender[]> {
  return Promise.all([
    statement('bare statement', { ...setting, withLog: true }),
    statement('bare statement, no log', { ...setting, withLog: false }),
    mutation('Slipway', { ...setting, withLog: true }),
    mutation('Slipway, no log', { ...setting, withLog: false }),
    peer('Mercurius, jit, statement by hand', 'mercurius.mjs', setting),
    peer('Yoga, Pothos, Prisma', 'yoga.mjs', setting),
    peer('Apollo Server, Pothos, Prisma', 'apollo.mjs', setting),
  ]);
}

interface Setting {
  readonly postgres: Postgres;
  readonly clients: number;
  readonly closing: Closing;
  readonly profile: boolean;
  readonly withLog: boolean;
}

async function statement(name: string, setting: Setting): Promise<Contender> {
  const { database, deploymentIds } = await seeded(setting);
  const start: LimitStart = { databaseUrl: database.url, deploymentIds, clients: setting.clients };
  return rawContender(name, new URL('limit-worker.ts', import.meta.url), start, setting.closing);
}

async function mutation(name: string, setting: Setting): Promise<Contender> {
  const { database, deploymentIds } = await seeded(setting);
  const start: HttpStart = { deploymentIds, clients: setting.clients };
  return serverContender(name, new URL('http-worker.ts', import.meta.url), database, start, setting);
}

/** With the log, which is the database's own. */
async function peer(name: string, file: Peer['file'], setting: Omit<Setting, 'withLog'>): Promise<Contender> {
  const { closing, clients } = setting;
  const { database, deploymentIds } = await seeded({ ...setting, withLog: true });
  const server = await startPeer({ file, setting: { databaseUrl: database.url, ...PEER_SETTING } }, closing);
  const start: HttpStart & Target = { url: server.url, pid: server.pid, deploymentIds, clients };
  const load = await rawContender(name, new URL('http-worker.ts', import.meta.url), start, closing);
  return {
    ...load,
    async stop() {
      await load.stop();
      await server.stop();
    },
  };
}

async function seeded({ postgres, clients, withLog }: Setting) {
  let deploymentIds: readonly string[] = [];
  const database = await postgres.createDatabase(async (client) => {
    ({ deploymentIds } = await seedDeployments(client, clients * DEPLOYMENTS_PER_CLIENT));
    if (!withLog) await stopLog(client);
  });
  return { database, deploymentIds };
}

/** The guards stay: only what writes the log is off. */
async function stopLog(client: pg.Client): Promise<void> {
  await client.query('ALTER TABLE deployment DISABLE TRIGGER log_update');
}

function logCost({ title, summaries }: Group): string {
  const [bare, bareWithout, ours, oursWithout] = summaries.map(({ median }) => median);
  return `Log to no log, ${title}: ${ratio(bare ?? 0, bareWithout ?? 0)} bare, ${ratio(ours ?? 0, oursWithout ?? 0)} through HTTP.`;
}
