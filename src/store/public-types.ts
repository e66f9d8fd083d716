import { getDatamodel } from './generated/pothos.js';
import type GeneratedTypes from './generated/pothos.js';

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
    Select: Only<GeneratedTypes[M]['Select'], Named<M>>;
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
