import type { Database } from './database.js';
import type { Prisma, PrismaClient } from './generated/prisma/client.js';
import { PUBLIC_COLUMNS } from './public-types.js';
import type { Rows, VersionedTable } from './rows.js';

/**
 * Every read that the graph makes, by the read role, with an explicit list of public columns. An object is read
 * whole: all of its columns belong to one version, whatever part of it a client selects.
 *
 * Who may see what is the caller's business: `where` must already carry it.
 */
export interface Wheres {
  readonly runtime: Prisma.RuntimeWhereInput;
  readonly release: Prisma.ReleaseWhereInput;
  readonly deployment: Prisma.DeploymentWhereInput;
  readonly agent: Prisma.AgentWhereInput;
  readonly token: Prisma.TokenWhereInput;
}

/** Immutable columns only: a page must not shift under who is turning it. */
export type SortField = 'createdAt' | 'name';
export type SortDirection = 'asc' | 'desc';

/** A place between two rows: the values of the row that was there. The row itself may be gone. */
export interface Keyset {
  readonly value: string | Date;
  readonly id: string;
}

export interface PageRequest<T extends VersionedTable> {
  readonly where: Wheres[T];
  readonly sort: { readonly field: SortField; readonly direction: SortDirection };
  readonly after: Keyset | null;
  readonly before: Keyset | null;
  /** Rows wanted, from the start or from the end of the range. */
  readonly take: number;
  readonly fromEnd: boolean;
  readonly wantRows: boolean;
  readonly wantTotal: boolean;
  /** Reads rows, total and the log's snapshot in one REPEATABLE READ transaction. */
  readonly wantSnapshot: boolean;
}

export interface PageResult<Row> {
  /** In the asked order. */
  readonly rows: readonly Row[];
  /** Whether the range goes on beyond the rows, in the direction of reading. */
  readonly more: boolean;
  readonly total: number | null;
  /** `pg_current_snapshot()`: what the rows and the total could see. */
  readonly snapshot: string | null;
}

export interface PublicReads {
  byIds<T extends VersionedTable>(table: T, ids: readonly string[]): Promise<readonly Rows[T][]>;
  first<T extends VersionedTable>(table: T, where: Wheres[T]): Promise<Rows[T] | null>;
  page<T extends VersionedTable>(table: T, request: PageRequest<T>): Promise<PageResult<Rows[T]>>;
  agentLiveness(
    agentIds: readonly string[],
  ): Promise<readonly { agentId: string; lastHeartbeatAt: Date; consumerLag: number }[]>;
  tokenUse(tokenIds: readonly string[]): Promise<readonly { tokenId: string; lastUsedAt: Date }[]>;
}

const MODELS = {
  runtime: 'Runtime',
  release: 'Release',
  deployment: 'Deployment',
  agent: 'Agent',
  token: 'Token',
} as const satisfies Record<VersionedTable, keyof typeof PUBLIC_COLUMNS>;

/** What of a Prisma delegate is used here. Prisma's own types cannot be spoken of for "any of these tables". */
interface Delegate<Row> {
  findMany(args: object): Promise<Row[]>;
  findFirst(args: object): Promise<Row | null>;
  count(args: object): Promise<number>;
}
type Client = Pick<PrismaClient, VersionedTable>;

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
          const [head] = await tx.$queryRaw<
            { snapshot: string }[]
          >`SELECT pg_current_snapshot()::text AS snapshot`;
          if (!head) throw new Error('pg_current_snapshot() returned no row');
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

async function readPage<T extends VersionedTable>(
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

function delegate<T extends VersionedTable>(client: Client, table: T): Delegate<Rows[T]> {
  // The select list above gives exactly the columns of Rows[T]; a guard test compares them.
  return client[table] as unknown as Delegate<Rows[T]>;
}
