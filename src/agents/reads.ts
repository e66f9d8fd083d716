import type { Grant } from '../access/grant.js';
import type { Queryable } from '../store/database.js';
import { filterSql } from '../store/filter-sql.js';
import type { AgentRow } from '../store/rows.js';
import { columnList, TABLES } from '../store/tables.js';
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

/** The same set for a watch's snapshot, on the transaction of the feed. */
export function agentSnapshot(
  predicate: AgentPredicate,
  _grant: Grant<'agent:read'>,
): (tx: Queryable, limit: number) => Promise<readonly AgentSnapshotRow[]> {
  const filter = filterSql(predicate, TABLES.agent, 2);
  return async (tx, limit) => {
    const result = await tx.query<AgentSnapshotRow>({
      text:
        `SELECT ${columnList('agent')}, consumer_lag AS "consumerLag", last_heartbeat_at AS "lastHeartbeatAt"` +
        ` FROM agent LEFT JOIN agent_liveness ON agent_id = id WHERE deleted_at IS NULL AND ${filter.text}` +
        ` ORDER BY created_at, id LIMIT $1`,
      values: [limit, ...filter.values],
    });
    return result.rows;
  };
}
