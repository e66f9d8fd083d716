/**
 * What the first read of a process would wait for: Prisma compiles queries in WebAssembly, and both that code and what it
 * is made to run by the schema take a noticeable part of a second to become ready. It is shared by all clients of the
 * process, so a client without a database readies it, while PostgreSQL starts.
 */
import type { SqlDriverAdapter, SqlDriverAdapterFactory } from '@prisma/driver-adapter-utils';

import { PrismaClient } from './generated/prisma/client.js';
import { publicReads } from './public-reads.js';

export async function warmUpReads(): Promise<void> {
  const prisma = new PrismaClient({ adapter: emptyDatabase, errorFormat: 'minimal' });
  const reads = publicReads({ prisma });
  await reads.page('deployment', {
    where: { AND: [] },
    sort: { field: 'createdAt', direction: 'desc' },
    after: null,
    before: null,
    fromEnd: false,
    take: 1,
    wantRows: true,
    wantTotal: false,
    wantSnapshot: false,
  });
  await prisma.$disconnect();
}

const identity = { provider: 'postgres', adapterName: 'empty' } as const;

/** Answers every query with no rows. */
const session: SqlDriverAdapter = {
  ...identity,
  queryRaw: () => Promise.resolve({ columnNames: [], columnTypes: [], rows: [] }),
  executeRaw: () => Promise.resolve(0),
  executeScript: () => Promise.resolve(),
  startTransaction: () => Promise.reject(new Error('reads of a warm-up need no transaction')),
  dispose: () => Promise.resolve(),
};

const emptyDatabase: SqlDriverAdapterFactory = { ...identity, connect: () => Promise.resolve(session) };
