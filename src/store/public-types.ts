import type { Predicate } from '../kernel/filter.js';
import type { ReadTurns } from '../kernel/read-turns.js';
import { getDatamodel } from './generated/pothos.js';
import type GeneratedTypes from './generated/pothos.js';
import type { Rows, VersionedTable as PublicTable } from './rows.js';

export type { Rows, PublicTable };

/**
 * The wall of types around internal facts: what the graph's builder can name. A hand-written allow-list over the generated
 * types; a model, column or relation that is not written here does not compile in a `schema.ts`.
 *
 * The same lists are the `select` of every read (see `read-sql.ts`) and of every Prisma type of the graph, so
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
  Rollout: {
    id: true,
    namespace: true,
    deploymentId: true,
    operation: true,
    phase: true,
    activatedAt: true,
    cancelRequestedAt: true,
    outcome: true,
    fromReleaseId: true,
    toReleaseId: true,
    source: true,
    logUrl: true,
    parentRolloutId: true,
    startedBy: true,
    finishedAt: true,
    message: true,
    error: true,
    deletedAt: true,
    version: true,
    createdAt: true,
    updatedAt: true,
  },
} as const satisfies {
  readonly [M in keyof GeneratedTypes]?: { readonly [C in keyof GeneratedTypes[M]['Shape']]?: true };
};

/** Relations that lead from one public model to another. */
interface PublicRelations {
  Runtime: 'deployments';
  Release: never;
  Deployment: 'runtime' | 'currentRelease' | 'targetRelease' | 'rollouts';
  Agent: 'liveness';
  AgentLiveness: never;
  Token: 'use';
  TokenUse: never;
  Rollout: 'deployment' | 'fromRelease' | 'toRelease';
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

/** Immutable columns only: a page must not shift under who is turning it. */
export type SortField = 'createdAt' | 'name';
export type SortDirection = 'asc' | 'desc';

/** A place between two rows: the values of the row that was there. The row itself may be gone. */
export interface Keyset {
  readonly value: string | Date;
  readonly id: string;
}

/** Which rows of a table are meant; who may see what is in it already. */
export interface Wanted<T extends PublicTable = PublicTable> {
  readonly table: T;
  /** Only of these; for tables whose rows stand outside namespaces `all`. */
  readonly namespaces: 'all' | ReadonlySet<string>;
  /** Undefined: every row. */
  readonly predicate?: Predicate<string> | undefined;
  readonly ids?: readonly string[] | undefined;
  /** Also those that are marked as deleted. */
  readonly deleted: boolean;
}

/** What of each row is read, and what is read with it: relations stand in the row under their `key`. */
export interface RowsRead {
  readonly table: PublicTable;
  /** Names of PUBLIC_COLUMNS, or of what stands beside the row (`lastHeartbeatAt`). `id` is always read. */
  readonly columns: readonly string[];
  readonly below: readonly BelowRead[];
}

export type BelowRead =
  /** The row whose id is in `column`, or null. */
  | { readonly kind: 'one'; readonly key: string; readonly column: string; readonly wanted: Wanted; readonly rows: RowsRead } // prettier-ignore
  /** A page of the rows whose `column` has the id of this one: a `PageResult`. */
  | { readonly kind: 'page'; readonly key: string; readonly column: string; readonly page: PageRead }
  /** Its own changes, newest first: rows of `TimelineRow`. */
  | { readonly kind: 'timeline'; readonly key: string; readonly take: number; readonly beforeVersion: number | null }; // prettier-ignore

export interface PageRead {
  readonly wanted: Wanted;
  /** Null: no rows, only what is counted. */
  readonly rows: RowsRead | null;
  readonly sort: { readonly field: SortField; readonly direction: SortDirection };
  readonly after: Keyset | null;
  readonly before: Keyset | null;
  /** Rows wanted, from the start or from the end of the range. */
  readonly take: number;
  readonly fromEnd: boolean;
  readonly wantMore: boolean;
  readonly wantTotal: boolean;
  readonly wantPosition: boolean;
}

export type ReadRow = Record<string, unknown>;

export interface PageResult {
  /** In the asked order. */
  readonly rows: readonly ReadRow[];
  /** Whether the range goes on beyond the rows, in the direction of reading. */
  readonly more: boolean;
  readonly total: number | null;
  /** `LOG_POSITION`: what the rows and the total could see. */
  readonly position: string | null;
}

export interface TimelineResult {
  readonly rows: readonly ReadRow[];
  readonly position: string;
}

/**
 * Every read that the graph makes, by the read role, with an explicit list of public columns. Each is ONE statement,
 * whatever is read below the rows, so that all of it belongs to one moment.
 */
export interface PublicReads {
  /** One list after the other, in no particular order. */
  rows(
    reads: readonly { readonly wanted: Wanted; readonly rows: RowsRead }[],
    turns: ReadTurns,
  ): Promise<readonly ReadRow[]>;
  page(page: PageRead, turns: ReadTurns): Promise<PageResult>;
  /** What belongs to a row that is there already: a row of nothing but that. */
  beside(row: Readonly<Record<string, string | null>>, rows: RowsRead, turns: ReadTurns): Promise<ReadRow>;
}
