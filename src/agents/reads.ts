import type { Grant } from '../access/grant.js';
import type { AgentRow } from '../store/rows.js';
import { snapshotRows, type SnapshotRows } from '../store/snapshot-rows.js';
import type { Wanted } from '../store/public-types.js';
import type { AgentPredicate } from './filter.js';

/** The agents that the filter names. They stand outside namespaces: whoever may read agents may read each. */
export function agentsWanted(predicate: AgentPredicate, _grant: Grant<'agent:read'>): Wanted<'agent'> {
  // A deregistered agent's row goes in the same transaction; the mark is seen by nobody but the log.
  return { table: 'agent', namespaces: 'all', predicate, deleted: false };
}

/** An agent with what its last heartbeat said, as the log's projections carry it. */
export type AgentSnapshotRow = AgentRow & {
  readonly consumerLag: number | null;
  readonly lastHeartbeatAt: Date | null;
};

/** The same set for a watch's snapshot. */
export function agentSnapshot(
  predicate: AgentPredicate,
  _grant: Grant<'agent:read'>,
): SnapshotRows<AgentSnapshotRow> {
  return snapshotRows<'agent', AgentSnapshotRow>('agent', predicate, 'all', {
    columns: 'consumer_lag AS "consumerLag", last_heartbeat_at AS "lastHeartbeatAt"',
    join: 'LEFT JOIN agent_liveness ON agent_id = id',
  });
}
