/**
 * Reads a second: a page of 50 deployments with their runtimes and releases, and one deployment by id with the same.
 * Limit: one SQL statement that builds the JSON in PostgreSQL, passed through node:http. All contenders read one
 * database, which nobody writes, and must give the same JSON before they are measured.
 */
import { deepStrictEqual } from 'node:assert/strict';

import type { TestDatabase } from '../../test/support/test-server.js';
import type { Closing } from '../support/closing.js';
import { compare, type Contender } from '../support/contender.js';
import { rawContender, type Target } from '../support/contenders.js';
import { seedDeployments } from '../support/fixture.js';
import type { Options } from '../support/options.js';
import { embeddedPostgres } from '../support/postgres.js';
import type { Group, Report } from '../support/report.js';
import { startServer } from '../support/server.js';
import { startWorker } from '../support/worker.js';
import type { ReadStart } from './http-worker.js';
import type { LimitServer } from './limit-server-worker.js';
import { bodyOf, PAGE, READS, type Read } from './query.js';

const CLIENTS = [16];
const TITLES: Readonly<Record<Read, string>> = { list: `${PAGE} deployments`, one: 'one by id' };

/** A server that answers the reads over HTTP, on the same data. Peers are further entries of SERVERS. */
type StartReadServer = (setting: ReadSetting) => Promise<Target>;

interface ReadSetting {
  readonly database: TestDatabase;
  readonly read: Read;
  readonly closing: Closing;
  readonly profile: boolean;
}

/** The limit first. */
const SERVERS: readonly (readonly [name: string, start: StartReadServer])[] = [
  ['one statement, passed through', startLimit],
  ['Slipway', startSlipway],
];

export async function benchReads(options: Options, closing: Closing): Promise<Report> {
  const postgres = await embeddedPostgres(closing, 'socket');
  let ids: readonly string[] = [];
  const database = await postgres.createDatabase(async (client) => {
    ids = (await seedDeployments(client, PAGE)).deploymentIds;
  });
  const groups: Group[] = [];
  const notes: string[] = [];
  for (const read of READS) {
    const bodies = read === 'list' ? [bodyOf(read, '')] : ids.map((id) => bodyOf(read, id));
    const targets: Target[] = [];
    for (const [, start] of SERVERS) {
      targets.push(await start({ database, read, closing, profile: options.profile }));
    }
    notes.push(`${TITLES[read]}: ${await assertEqual(targets, bodies[0] ?? '')} bytes.`);
    for (const clients of options.clients ?? CLIENTS) {
      const contenders: Contender[] = [];
      for (const [index, [name]] of SERVERS.entries()) {
        const target = targets[index];
        if (!target) throw new Error(`${name} was not started`);
        const load: ReadStart = { ...target, bodies, clients };
        contenders.push(await rawContender(name, new URL('http-worker.ts', import.meta.url), load, closing));
      }
      const summaries = await compare(contenders, options);
      groups.push({ title: `${TITLES[read]}, ${clients} connections`, unit: 'requests', summaries });
      for (const contender of contenders) await contender.stop();
    }
  }
  return { name: 'reads', options, groups, notes };
}

async function startLimit({ database, read, closing }: ReadSetting): Promise<Target> {
  const worker = startWorker<LimitServer>(new URL('limit-server-worker.ts', import.meta.url));
  closing.add(() => worker.stop());
  return { url: await worker.call('start', { databaseUrl: database.url, read }), pid: worker.pid };
}

async function startSlipway({ database, closing, profile }: ReadSetting): Promise<Target> {
  const { graphql, pid } = await startServer(closing, database, { profile });
  return { url: graphql, pid };
}

/** The size of the answer that all of them give. */
async function assertEqual(targets: readonly Target[], body: string): Promise<number> {
  const answers = await Promise.all(
    targets.map(async ({ url }) => {
      const headers = { 'content-type': 'application/json', accept: 'application/json' };
      return (await fetch(url, { method: 'POST', headers, body })).text();
    }),
  );
  const [limit, ...others] = answers;
  for (const other of others) deepStrictEqual(JSON.parse(other), JSON.parse(limit ?? ''));
  return Buffer.byteLength(limit ?? '');
}
