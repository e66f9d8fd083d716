import DataLoader from 'dataloader';

import { authorise } from '../access/authorise.js';
import type { Action } from '../access/actions.js';
import type { Caller } from '../access/caller.js';
import { kindOfId, type ObjectKind } from '../kernel/ids.js';
import type { PublicReads, PublicTable, Rows } from '../store/public-types.js';

/**
 * Objects by id, for relations and for `node`: one statement for all ids of a kind that are asked in one tick, and null
 * for what is absent or not the caller's to see. A deployment may name a runtime of a namespace that its reader cannot
 * see, so relations pass through here too.
 */
export interface Loaders {
  byId<K extends ObjectKind>(kind: K, id: string): Promise<Rows[TableOf[K]] | null>;
  agentLiveness(
    agentId: string,
  ): Promise<{ readonly lastHeartbeatAt: Date; readonly consumerLag: number } | null>;
  tokenUse(tokenId: string): Promise<{ readonly lastUsedAt: Date } | null>;
  /** Empties the caches; for a context that outlives one event. */
  forget(): void;
}

export interface TableOf {
  readonly RUNTIME: 'runtime';
  readonly RELEASE: 'release';
  readonly DEPLOYMENT: 'deployment';
  readonly AGENT: 'agent';
  readonly TOKEN: 'token';
}
const TABLE_OF: TableOf = {
  RUNTIME: 'runtime',
  RELEASE: 'release',
  DEPLOYMENT: 'deployment',
  AGENT: 'agent',
  TOKEN: 'token',
};
/** What it takes to see an object of each kind. */
export const READ_ACTION: Readonly<Record<ObjectKind, Action>> = {
  RUNTIME: 'runtime:read',
  RELEASE: 'release:read',
  DEPLOYMENT: 'deployment:read',
  AGENT: 'agent:read',
  TOKEN: 'token:read',
};

const MAX_BATCH = 1_000;

export function createLoaders(reads: PublicReads, caller: Caller): Loaders {
  const objects = new Map<ObjectKind, DataLoader<string, Rows[PublicTable] | null>>();
  const liveness = new DataLoader<string, { lastHeartbeatAt: Date; consumerLag: number } | null>(
    async (ids) => aligned(ids, await reads.agentLiveness(ids), (row) => row.agentId),
    { maxBatchSize: MAX_BATCH },
  );
  const use = new DataLoader<string, { lastUsedAt: Date } | null>(
    async (ids) => aligned(ids, await reads.tokenUse(ids), (row) => row.tokenId),
    { maxBatchSize: MAX_BATCH },
  );
  const loaderOf = (kind: ObjectKind) => {
    let loader = objects.get(kind);
    if (!loader) {
      loader = new DataLoader(
        async (ids) => aligned(ids, await visible(reads, caller, kind, ids), (row) => row.id),
        {
          maxBatchSize: MAX_BATCH,
        },
      );
      objects.set(kind, loader);
    }
    return loader;
  };
  return {
    byId: <K extends ObjectKind>(kind: K, id: string) =>
      // The loader of a kind reads that kind's table.
      (kindOfId(id) === kind ? loaderOf(kind).load(id) : Promise.resolve(null)) as Promise<
        Rows[TableOf[K]] | null
      >,
    agentLiveness: (id) => liveness.load(id),
    tokenUse: (id) => use.load(id),
    forget() {
      objects.clear();
      liveness.clearAll();
      use.clearAll();
    },
  };
}

async function visible(
  reads: PublicReads,
  caller: Caller,
  kind: ObjectKind,
  ids: readonly string[],
): Promise<readonly Rows[PublicTable][]> {
  const grant = authorise(caller, READ_ACTION[kind]);
  if (!grant) return [];
  const rows: readonly Rows[PublicTable][] = await reads.byIds(TABLE_OF[kind], ids);
  const { namespaces } = grant;
  return namespaces === 'all'
    ? rows
    : rows.filter((row) => !('namespace' in row) || namespaces.has(row.namespace));
}

function aligned<Row>(
  ids: readonly string[],
  rows: readonly Row[],
  idOf: (row: Row) => string,
): (Row | null)[] {
  const byId = new Map(rows.map((row) => [idOf(row), row]));
  return ids.map((id) => byId.get(id) ?? null);
}
