import type { ObjectKind } from '../kernel/ids.js';
import type { AgentRow, DeploymentRow, ReleaseRow, RolloutRow, RuntimeRow, TokenRow } from '../store/rows.js';

/** The public object as the log recorded it at one version, per kind. */
export interface Projections {
  readonly RUNTIME: RuntimeRow;
  readonly RELEASE: ReleaseRow;
  readonly DEPLOYMENT: DeploymentRow;
  readonly AGENT: AgentRow & { readonly consumerLag: number | null; readonly lastHeartbeatAt: Date | null };
  readonly TOKEN: TokenRow;
  readonly ROLLOUT: RolloutRow;
}

/** One change, decoded once by the feed and then shared, unchanged, by everybody who is told of it. */
export interface ChangeOf<K extends ObjectKind> {
  /** Place in the log's own order inside one step; not a cursor. */
  readonly seq: bigint;
  readonly at: Date;
  readonly kind: K;
  readonly objectId: string;
  /** Null for kinds that stand outside namespaces (agents, tokens). */
  readonly namespace: string | null;
  readonly op: 'INSERT' | 'UPDATE' | 'DELETE';
  readonly version: number;
  readonly from: string | null;
  readonly to: string | null;
  readonly reason: string | null;
  /** What the writer said beside the reason, for people. */
  readonly message: string | null;
  readonly actor: string;
  readonly traceId: string | null;
  /** The object at this version; for DELETE its last state. */
  readonly after: Projections[K];
  /** The fields that filters read, as they were before; null for INSERT. */
  readonly before: Partial<Projections[K]> | null;
  /** Opaque: a subscription opened `after` this misses nothing and sees nothing twice, on any replica. */
  readonly cursor: string;
}
export type Change = { [K in ObjectKind]: ChangeOf<K> }[ObjectKind];

export type Projection = Projections[ObjectKind];
