import type { GraphQLResolveInfo } from 'graphql';

import type { Context } from '../graph/context.js';
import type { Graph } from '../graph/graph.js';
import { reads } from '../graph/reading/declare.js';
import { beside } from '../graph/reading/fields.js';
import type { HeldLock } from '../kernel/failure.js';
import { cancellable, type RolloutOperation } from '../rollouts/index.js';
import { blockedBy, canCancel, canDelete, canRetry, canRollback, type UnfinishedRollout } from './model.js';

/** What is under way with a deployment and what may be done about it, whoever asks. */
type Row = Graph['types']['Deployment']['$inferType'];

/** What stands beside a deployment, as the views tell it. */
interface Beside {
  readonly lock: StoredLock;
  readonly unfinished: UnfinishedRollout & { readonly operation: RolloutOperation };
  readonly previousReleaseId: string;
}
/** In a view's JSON moments are text. */
type StoredLock = { readonly [K in keyof HeldLock]: string };
type Read<C extends keyof Beside> = { readonly [K in C]: Beside[K] | null };

export function addDeploymentStanding(graph: Graph): void {
  const { builder, types, shared } = graph;
  builder.objectFields(types.Deployment, (t) => ({
    lock: t.field({
      type: shared.lock,
      nullable: true,
      description: 'The rollout that is changing it; null if none is.',
      ...computed(graph, [], ['lock'], (_row, { lock }) =>
        lock === null
          ? null
          : { ...lock, acquiredAt: new Date(lock.acquiredAt), expiresAt: new Date(lock.expiresAt) },
      ),
    }),
    canCancel: t.boolean({
      description: 'Whether a rollout is under way that `cancelRollout` could call off now.',
      ...computed(graph, ['phase', 'currentReleaseId'], ['unfinished'], (row, { unfinished }) =>
        canCancel(row, unfinished && cancellable(unfinished.operation) ? unfinished : null),
      ),
    }),
    canRetry: t.boolean({
      description: 'Whether there is anything to retry now, whoever asks.',
      ...computed(graph, ['phase'], ['lock'], (row, { lock }) => canRetry(row, lock)),
    }),
    canRollback: t.boolean({
      description:
        'Whether `rollbackDeployment` that names nothing would find a release to go back to now, whoever asks.',
      ...computed(
        graph,
        ['phase', 'deletionRequestedAt'],
        ['lock', 'previousReleaseId'],
        (row, { lock, previousReleaseId }) => canRollback(row, lock, previousReleaseId),
      ),
    }),
    canDelete: t.boolean({
      ...reads<Row>('phase', 'deletionRequestedAt'),
      description: 'Whether it can be deleted now, whoever asks.',
      resolve: canDelete,
    }),
    blockedBy: t.string({
      nullable: true,
      description: 'Why a new specification would be refused now, one sentence; null if it would be taken.',
      ...computed(graph, ['phase', 'deletionRequestedAt'], ['lock'], (row, { lock }) => blockedBy(row, lock)),
    }),
  }));
}

/** A field made of columns of the row and of what stands beside it. */
function computed<C extends keyof Beside, V>(
  graph: Graph,
  own: readonly (keyof Row & string)[],
  columns: readonly C[],
  value: (row: Row, beside: Read<C>) => V,
) {
  const fields = columns.map((column) => [column, beside<Beside[C]>(graph, column)] as const);
  return {
    ...reads<Record<string, unknown>>(...own, ...columns),
    async resolve(row: Row, args: object, context: Context, info: GraphQLResolveInfo): Promise<V> {
      const read = await Promise.all(
        fields.map(
          async ([column, { resolve }]) => [column, await resolve(row, args, context, info)] as const,
        ),
      );
      return value(row, Object.fromEntries(read) as Read<C>); // an entry for each column
    },
  };
}
