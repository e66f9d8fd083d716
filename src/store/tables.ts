import type { Rows, VersionedTable } from './rows.js';

/**
 * The public columns of each versioned table, by their Prisma field name. A guard test compares them with
 * schema.prisma and with the projection that the log's triggers write.
 */
export interface Column {
  readonly name: string;
  /** jsonb columns are sent as text: the driver would turn an array into a PostgreSQL array. */
  readonly json: boolean;
  /** Of an enumeration: its type. Parameters that are compared with it need it. */
  readonly type?: string;
  /** Of a column with some common values and many rare ones: the column that is true for the rare ones, for an index. */
  readonly rare?: { readonly name: string; readonly common: readonly string[] };
}
type Columns<T extends VersionedTable> = { readonly [F in keyof Rows[T]]-?: Column };

const plain = (name: string): Column => ({ name, json: false });
const json = (name: string): Column => ({ name, json: true });
const enumerated = (name: string, type: string): Column => ({ name, json: false, type: `"${type}"` });

export const TABLES: { readonly [T in VersionedTable]: Columns<T> } = {
  runtime: {
    id: plain('id'),
    namespace: plain('namespace'),
    name: plain('name'),
    type: plain('type'),
    environment: plain('environment'),
    config: json('config'),
    labels: json('labels'),
    generation: plain('generation'),
    observedGeneration: plain('observed_generation'),
    conditions: json('conditions'),
    deletionRequestedAt: plain('deletion_requested_at'),
    deletedAt: plain('deleted_at'),
    version: plain('version'),
    createdAt: plain('created_at'),
    updatedAt: plain('updated_at'),
  },
  release: {
    id: plain('id'),
    namespace: plain('namespace'),
    app: plain('app'),
    label: plain('label'),
    description: plain('description'),
    resources: json('resources'),
    source: json('source'),
    createdAt: plain('created_at'),
    updatedAt: plain('updated_at'),
  },
  deployment: {
    id: plain('id'),
    namespace: plain('namespace'),
    name: plain('name'),
    app: plain('app'),
    origin: enumerated('origin', 'DeploymentOrigin'),
    runtimeId: plain('runtime_id'),
    labels: json('labels'),
    generation: plain('generation'),
    desiredState: enumerated('desired_state', 'DesiredState'),
    env: json('env'),
    runtimeConfig: json('runtime_config'),
    phase: {
      ...enumerated('phase', 'DeploymentPhase'),
      rare: { name: 'exceptional', common: ['RUNNING', 'DELETED'] },
    },
    conditions: json('conditions'),
    observedGeneration: plain('observed_generation'),
    observedRuntime: json('observed_runtime'),
    environmentInfo: json('environment_info'),
    error: json('error'),
    currentReleaseId: plain('current_release_id'),
    targetReleaseId: plain('target_release_id'),
    retryRequested: plain('retry_requested'),
    protocolVersion: plain('protocol_version'),
    deletionRequestedAt: plain('deletion_requested_at'),
    deletedAt: plain('deleted_at'),
    version: plain('version'),
    createdAt: plain('created_at'),
    updatedAt: plain('updated_at'),
  },
  agent: {
    id: plain('id'),
    name: plain('name'),
    topic: plain('topic'),
    environment: plain('environment'),
    serviceTypes: plain('service_types'),
    cost: enumerated('cost', 'AgentCost'),
    labels: json('labels'),
    health: enumerated('health', 'AgentHealth'),
    cordoned: plain('cordoned'),
    congestionThreshold: plain('congestion_threshold'),
    softwareVersion: plain('software_version'),
    protocolVersion: plain('protocol_version'),
    deletedAt: plain('deleted_at'),
    version: plain('version'),
    createdAt: plain('created_at'),
    updatedAt: plain('updated_at'),
  },
  token: {
    id: plain('id'),
    name: plain('name'),
    // An array of an enum of ours has no parser in the driver; as text[] it has one.
    roles: plain('roles'),
    namespaces: plain('namespaces'),
    agentName: plain('agent_name'),
    createdBy: plain('created_by'),
    expiresAt: plain('expires_at'),
    revokedAt: plain('revoked_at'),
    version: plain('version'),
    createdAt: plain('created_at'),
    updatedAt: plain('updated_at'),
  },
  rollout: {
    id: plain('id'),
    namespace: plain('namespace'),
    deploymentId: plain('deployment_id'),
    operation: enumerated('operation', 'RolloutOperation'),
    phase: enumerated('phase', 'RolloutPhase'),
    activatedAt: plain('activated_at'),
    cancelRequestedAt: plain('cancel_requested_at'),
    outcome: enumerated('outcome', 'RolloutOutcome'),
    fromReleaseId: plain('from_release_id'),
    toReleaseId: plain('to_release_id'),
    source: json('source'),
    logUrl: plain('log_url'),
    parentRolloutId: plain('parent_rollout_id'),
    startedBy: plain('started_by'),
    finishedAt: plain('finished_at'),
    message: plain('message'),
    error: json('error'),
    deletedAt: plain('deleted_at'),
    version: plain('version'),
    createdAt: plain('created_at'),
    updatedAt: plain('updated_at'),
  },
};

/** Public facts that move without a version, in a table or a view of their own: the columns that a row has beside its own. */
export const BESIDE: {
  readonly [T in VersionedTable]?: Readonly<
    Record<string, { readonly table: string; readonly owner: string; readonly name: string }>
  >;
} = {
  agent: {
    lastHeartbeatAt: { table: 'agent_liveness', owner: 'agent_id', name: 'last_heartbeat_at' },
    consumerLag: { table: 'agent_liveness', owner: 'agent_id', name: 'consumer_lag' },
  },
  deployment: {
    lock: { table: 'deploy_lock_held', owner: 'deployment_id', name: 'lock' },
    unfinished: { table: 'deployment_attempts', owner: 'deployment_id', name: 'unfinished' },
    previousReleaseId: { table: 'deployment_attempts', owner: 'deployment_id', name: 'previous_release_id' },
  },
  token: { lastUsedAt: { table: 'token_use', owner: 'token_id', name: 'last_used_at' } },
};

const TEXT_ARRAYS = new Set(['roles']);

/** The select list of a table's public columns, named as Prisma names them; for SELECT and RETURNING. */
export function columnList(table: VersionedTable, alias?: string): string {
  const prefix = alias ? `${alias}.` : '';
  return Object.entries<Column>(TABLES[table])
    .map(([field, column]) => {
      const cast = TEXT_ARRAYS.has(column.name) ? '::text[]' : '';
      return `${prefix}${column.name}${cast} AS "${field}"`;
    })
    .join(', ');
}
