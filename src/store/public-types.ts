import { getDatamodel } from './generated/pothos.js';
import type GeneratedTypes from './generated/pothos.js';
import type { Prisma } from './generated/prisma/client.js';
import type { Rows, VersionedTable as PublicTable } from './rows.js';

export type { Rows, PublicTable };

/**
 * The wall of types around internal facts: what the graph's builder can name. A hand-written allow-list over the generated
 * types; a model, column or relation that is not written here does not compile in a `schema.ts`.
 *
 * The same lists are the `select` of every read (see `public-reads.ts`) and of every Prisma type of the graph, so
 * that what cannot be named is not fetched either. Guard tests compare them with `schema.prisma`.
 */
export const PUBLIC_COLUMNS = {
  Runtime: {
    id: true,
    namespace: true,
    name: true,
    type: true,
    environment: true,
    config: true,
    labels: true,
    generation: true,
    observedGeneration: true,
    conditions: true,
    deletionRequestedAt: true,
    deletedAt: true,
    version: true,
    createdAt: true,
    updatedAt: true,
  },
  Release: {
    id: true,
    namespace: true,
    app: true,
    label: true,
    description: true,
    resources: true,
    source: true,
    createdAt: true,
    updatedAt: true,
  },
  Deployment: {
    id: true,
    namespace: true,
    name: true,
    app: true,
    origin: true,
    runtimeId: true,
    labels: true,
    generation: true,
    desiredState: true,
    env: true,
    runtimeConfig: true,
    phase: true,
    conditions: true,
    observedGeneration: true,
    observedRuntime: true,
    environmentInfo: true,
    error: true,
    currentReleaseId: true,
    targetReleaseId: true,
    retryRequested: true,
    protocolVersion: true,
    deletionRequestedAt: true,
    deletedAt: true,
    version: true,
    createdAt: true,
    updatedAt: true,
  },
  Agent: {
    id: true,
    name: true,
    topic: true,
    environment: true,
    serviceTypes: true,
    cost: true,
    labels: true,
    health: true,
    cordoned: true,
    congestionThreshold: true,
    softwareVersion: true,
    protocolVersion: true,
    deletedAt: true,
    version: true,
    createdAt: true,
    updatedAt: true,
  },
  AgentLiveness: { agentId: true, lastHeartbeatAt: true, consumerLag: true },
  Token: {
    id: true,
    name: true,
    roles: true,
    namespaces: true,
    agentName: true,
    createdBy: true,
    expiresAt: true,
    revokedAt: true,
    version: true,
    createdAt: true,
    updatedAt: true,
  },
  TokenUse: { tokenId: true, lastUsedAt: true },
} as const satisfies {
  readonly [M in keyof GeneratedTypes]?: { readonly [C in keyof GeneratedTypes[M]['Shape']]?: true };
};

/** Relations that lead from one public model to another. */
interface PublicRelations {
  Runtime: 'deployments';
  Release: never;
  Deployment: 'runtime' | 'currentRelease' | 'targetRelease';
  Agent: 'liveness';
  AgentLiveness: never;
  Token: 'use';
  TokenUse: never;
}

export type PublicModelName = keyof typeof PUBLIC_COLUMNS;
type Columns<M extends PublicModelName> = keyof (typeof PUBLIC_COLUMNS)[M];
type Named<M extends PublicModelName> = Columns<M> | PublicRelations[M];
/** An object as the graph holds it: all of its public columns, of one version. */
export type PublicShape<M extends PublicModelName> = Pick<
  GeneratedTypes[M]['Shape'],
  Columns<M> & keyof GeneratedTypes[M]['Shape']
>;
type Only<T, Keys> = Pick<T, Keys & keyof T>;

interface PublicRelation<R> {
  Shape: R extends { Name: infer N extends PublicModelName; Shape: infer S }
    ? S extends readonly unknown[]
      ? PublicShape<N>[]
      : null extends S
        ? PublicShape<N> | null
        : PublicShape<N>
    : never;
  Name: R extends { Name: infer N } ? N : never;
  Nullable: R extends { Nullable: infer N extends boolean } ? N : never;
}

export type PublicPrismaTypes = {
  [M in PublicModelName]: {
    Name: M;
    Shape: PublicShape<M>;
    Include: Only<GeneratedTypes[M]['Include'], PublicRelations[M]>;
    // Pothos takes a select with further keys, so what is not public is named here as what cannot be selected.
    Select: Only<GeneratedTypes[M]['Select'], Named<M>> & {
      readonly [K in Exclude<keyof GeneratedTypes[M]['Select'], Named<M>>]?: never;
    };
    OrderBy: Only<GeneratedTypes[M]['OrderBy'], Columns<M>>;
    WhereUnique: Only<GeneratedTypes[M]['WhereUnique'], Columns<M>>;
    Where: Only<GeneratedTypes[M]['Where'], Named<M>>;
    Create: {};
    Update: {};
    RelationName: PublicRelations[M];
    ListRelations: M extends 'Runtime' ? 'deployments' : never;
    Relations: {
      [R in PublicRelations[M]]: PublicRelation<
        GeneratedTypes[M]['Relations'][R & keyof GeneratedTypes[M]['Relations']]
      >;
    };
  };
};

/** The data model for Pothos without what is internal: a cast past the types then meets "model not found". */
export function publicDatamodel(): { datamodel: unknown } {
  const { datamodel } = getDatamodel();
  const models = Object.entries(datamodel.models)
    .filter(([name]) => name in PUBLIC_COLUMNS)
    .map(([name, model]) => {
      const columns: Record<string, true> = PUBLIC_COLUMNS[name as PublicModelName]; // filtered on the line above
      const fields = model.fields.filter(
        (field) => columns[field.name] || (field.kind === 'object' && field.type in PUBLIC_COLUMNS),
      );
      return [name, { ...model, fields }] as const;
    });
  return { datamodel: { models: Object.fromEntries(models) } };
}

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

export interface PageRequest<T extends PublicTable> {
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
  /** `LOG_POSITION`: what the rows and the total could see. */
  readonly snapshot: string | null;
}

export interface PublicReads {
  byIds<T extends PublicTable>(table: T, ids: readonly string[]): Promise<readonly Rows[T][]>;
  first<T extends PublicTable>(table: T, where: Wheres[T]): Promise<Rows[T] | null>;
  page<T extends PublicTable>(table: T, request: PageRequest<T>): Promise<PageResult<Rows[T]>>;
  agentLiveness(
    agentIds: readonly string[],
  ): Promise<readonly { agentId: string; lastHeartbeatAt: Date; consumerLag: number }[]>;
  tokenUse(tokenIds: readonly string[]): Promise<readonly { tokenId: string; lastUsedAt: Date }[]>;
}
