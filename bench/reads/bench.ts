/**
 * Reads a second: a page of 50 deployments with their runtimes and releases, one deployment by id with the same, and
 * runtimes with deployments with releases. Limit: one SQL statement that builds the JSON in PostgreSQL, passed through
 * node:http. All contenders read one database, which nobody writes, and must give the same facts before they are measured.
 */
import { deepStrictEqual } from 'node:assert/strict';

import { startPeer, type Peer } from '../peers/start.js';
import type { TestDatabase } from '../../test/support/test-server.js';
import { Closing } from '../support/closing.js';
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
import { postgraphileBody, postgraphileFacts } from './postgraphile.js';
import { bodyOf, PAGE, READS, RUNTIMES, type Read } from './query.js';

const CLIENTS = [16];
/** More than a page, so that a page is a page. */
const DEPLOYMENTS = 5 * PAGE;
const TITLES: Readonly<Record<Read, string>> = {
  list: `${PAGE} deployments`,
  one: 'one by id',
  nested: `${RUNTIMES} runtimes, ${PAGE} deployments, releases`,
};

/** A server that answers the reads over HTTP, on the same data. */
interface ReadServer {
  readonly name: string;
  start(setting: ReadSetting): Promise<Target>;
  /** Left out: ours. */
  bodyOf?(read: Read, id: string): string;
  /** Its answer as the others give it; left out where it is the same. */
  facts?(answer: unknown): unknown;
  /** Left out: all. */
  readonly reads?: readonly Read[];
}

interface ReadSetting {
  readonly database: TestDatabase;
  readonly read: Read;
  readonly closing: Closing;
  readonly profile: boolean;
}

function peer(name: string, file: Peer['file'], setting: Peer['setting'] = {}): ReadServer {
  return {
    name,
    start: ({ database, closing }) =>
      startPeer({ file, setting: { databaseUrl: database.url, ...setting } }, closing),
  };
}

/** The limit first. */
const SERVERS: readonly ReadServer[] = [
  { name: 'one statement, passed through', start: startLimit },
  { name: 'Slipway', start: startSlipway },
  {
    ...peer('Mercurius, jit, one join by hand', 'mercurius.mjs', { relations: 'join' }),
    reads: ['list', 'one'],
  },
  peer('Mercurius, jit, loaders', 'mercurius.mjs', { relations: 'loaders' }),
  {
    ...peer('PostGraphile', 'postgraphile.mjs'),
    bodyOf: postgraphileBody,
    facts: postgraphileFacts,
  },
  peer('Yoga, Pothos, Prisma', 'yoga.mjs', { strategy: 'query' }),
  peer('Yoga, Pothos, Prisma, relationJoins', 'yoga.mjs', { strategy: 'join' }),
  peer('Apollo Server, Pothos, Prisma', 'apollo.mjs', { strategy: 'query' }),
];

export async function benchReads(options: Options, closing: Closing): Promise<Report> {
  const postgres = await embeddedPostgres(closing, 'socket');
  let ids: readonly string[] = [];
  const database = await postgres.createDatabase(async (client) => {
    ids = (await seedDeployments(client, DEPLOYMENTS)).deploymentIds;
  });
  const groups: Group[] = [];
  const notes: string[] = [];
  for (const read of READS) {
    const ofRead = new Closing();
    closing.add(() => ofRead.end());
    const readers = await startReaders({ database, read, closing: ofRead, profile: options.profile }, ids);
    notes.push(`${TITLES[read]}: ${await assertSameFacts(readers)}.`);
    for (const clients of options.clients ?? CLIENTS) {
      const contenders: Contender[] = [];
      for (const { server, target, bodies } of readers) {
        const load: ReadStart = { url: target.url, pid: target.pid, bodies, clients };
        contenders.push(
          await rawContender(server.name, new URL('http-worker.ts', import.meta.url), load, ofRead),
        );
      }
      const summaries = await compare(contenders, options);
      groups.push({ title: `${TITLES[read]}, ${clients} connections`, unit: 'requests', summaries });
      for (const contender of contenders) await contender.stop();
    }
    await ofRead.end();
  }
  return { name: 'reads', options, groups, notes };
}

interface Reader {
  readonly server: ReadServer;
  readonly target: Target;
  readonly bodies: readonly string[];
}

async function startReaders(setting: ReadSetting, ids: readonly string[]): Promise<Reader[]> {
  const { read } = setting;
  const readers: Reader[] = [];
  for (const server of SERVERS) {
    if (server.reads && !server.reads.includes(read)) continue;
    const body = server.bodyOf ?? bodyOf;
    const bodies = read === 'one' ? ids.map((id) => body(read, id)) : [body(read, '')];
    readers.push({ server, target: await server.start(setting), bodies });
  }
  return readers;
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

/** The sizes of the answers, which all hold what the limit's holds. */
async function assertSameFacts(readers: readonly Reader[]): Promise<string> {
  const answers = await Promise.all(
    readers.map(async ({ server, target, bodies }) => {
      const headers = { 'content-type': 'application/json', accept: 'application/json' };
      const response = await fetch(target.url, { method: 'POST', headers, body: bodies[0] ?? '' });
      const text = await response.text();
      const answer: unknown = JSON.parse(text);
      return { name: server.name, bytes: Buffer.byteLength(text), facts: server.facts?.(answer) ?? answer };
    }),
  );
  const [limit, ...others] = answers;
  for (const { name, facts } of others) {
    deepStrictEqual(facts, limit?.facts, `${name} answers something else: ${JSON.stringify(facts)}`);
  }
  return sizesOf(answers);
}

/** The size that most have goes without names. */
function sizesOf(answers: readonly { readonly name: string; readonly bytes: number }[]): string {
  const sizes = new Map<number, string[]>();
  for (const { bytes, name } of answers) sizes.set(bytes, [...(sizes.get(bytes) ?? []), name]);
  const [[usual] = [], ...others] = [...sizes].sort(([, a], [, b]) => b.length - a.length);
  return `${usual} bytes; ${others.map(([bytes, names]) => `${bytes} (${names.join(', ')})`).join(', ')}`;
}
