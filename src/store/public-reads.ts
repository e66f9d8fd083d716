import type { Database } from './database.js';
import { LOG_POSITION } from './log-position.js';
import type { PrismaClient } from './generated/prisma/client.js';
import {
  PUBLIC_COLUMNS,
  type PageRequest,
  type PageResult,
  type PublicReads,
  type PublicTable,
  type Rows,
  type SortDirection,
  type SortField,
  type Keyset,
} from './public-types.js';

/** Implements the reads of the graph over Prisma as the read role. */
const MODELS = {
  runtime: 'Runtime',
  release: 'Release',
  deployment: 'Deployment',
  agent: 'Agent',
  token: 'Token',
} as const satisfies Record<PublicTable, keyof typeof PUBLIC_COLUMNS>;

/** What of a Prisma delegate is used here. Prisma's own types cannot be spoken of for "any of these tables". */
interface Delegate<Row> {
  findMany(args: object): Promise<Row[]>;
  findFirst(args: object): Promise<Row | null>;
  count(args: object): Promise<number>;
}
type Client = Pick<PrismaClient, PublicTable>;

export function publicReads(database: Pick<Database, 'prisma'>): PublicReads {
  const { prisma } = database;
  return {
    byIds: (table, ids) =>
      delegate(prisma, table).findMany({
        where: { id: { in: [...ids] } },
        select: PUBLIC_COLUMNS[MODELS[table]],
      }),
    first: (table, where) =>
      delegate(prisma, table).findFirst({ where, select: PUBLIC_COLUMNS[MODELS[table]] }),
    async page(table, request) {
      if (!request.wantSnapshot) return { ...(await readPage(prisma, table, request)), snapshot: null };
      return prisma.$transaction(
        async (tx) => {
          // The first statement fixes what the transaction sees; the later ones see exactly that.
          const [head] = await tx.$queryRawUnsafe<{ snapshot: string }[]>(
            `SELECT ${LOG_POSITION} AS snapshot`,
          );
          if (!head) throw new Error(`${LOG_POSITION} returned no row`);
          return { ...(await readPage(tx, table, request)), snapshot: head.snapshot };
        },
        { isolationLevel: 'RepeatableRead' },
      );
    },
    agentLiveness: (agentIds) =>
      prisma.agentLiveness.findMany({
        where: { agentId: { in: [...agentIds] } },
        select: PUBLIC_COLUMNS.AgentLiveness,
      }),
    tokenUse: (tokenIds) =>
      prisma.tokenUse.findMany({
        where: { tokenId: { in: [...tokenIds] } },
        select: PUBLIC_COLUMNS.TokenUse,
      }),
  };
}

async function readPage<T extends PublicTable>(
  client: Client,
  table: T,
  request: PageRequest<T>,
): Promise<Omit<PageResult<Rows[T]>, 'snapshot'>> {
  const { where, sort, fromEnd, take } = request;
  const direction = fromEnd ? opposite(sort.direction) : sort.direction;
  const bounds = [
    ...(request.after ? [beyond(sort.field, sort.direction, request.after)] : []),
    ...(request.before ? [beyond(sort.field, opposite(sort.direction), request.before)] : []),
  ];
  // One after the other: inside a transaction there is one connection, and outside it a page should not take two.
  const found = request.wantRows
    ? await delegate(client, table).findMany({
        where: { AND: [where, ...bounds] },
        orderBy: [{ [sort.field]: direction }, { id: direction }],
        // One more than asked tells whether the range goes on.
        take: take + 1,
        select: PUBLIC_COLUMNS[MODELS[table]],
      })
    : [];
  const rows = found.slice(0, take);
  return {
    rows: fromEnd ? rows.reverse() : rows,
    more: found.length > take,
    total: request.wantTotal ? await delegate(client, table).count({ where }) : null,
  };
}

/** The rows strictly beyond a place. The first term looks redundant; it is what lets an index begin there. */
function beyond(field: SortField, direction: SortDirection, place: Keyset): object {
  const [over, atOrOver] = direction === 'asc' ? (['gt', 'gte'] as const) : (['lt', 'lte'] as const);
  return {
    AND: [
      { [field]: { [atOrOver]: place.value } },
      { OR: [{ [field]: { [over]: place.value } }, { [field]: place.value, id: { [over]: place.id } }] },
    ],
  };
}

function opposite(direction: SortDirection): SortDirection {
  return direction === 'asc' ? 'desc' : 'asc';
}

function delegate<T extends PublicTable>(client: Client, table: T): Delegate<Rows[T]> {
  // The select list above gives exactly the columns of Rows[T]; a guard test compares them.
  return client[table] as unknown as Delegate<Rows[T]>;
}
