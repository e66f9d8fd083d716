/**
 * A fleet of any size with its change log, put into an empty database by a few statements: for the guard of the plans and
 * for the benchmark of growth. The triggers are off meanwhile, so the rows of the log are made here, in the form that
 * the triggers give them. Needs a superuser.
 */
import type pg from 'pg';

export interface FleetSize {
  readonly deployments: number;
  /** Rows of the log; versions of the deployments in turn. At least one for each deployment. */
  readonly changes: number;
  /** How many of them, the newest, still have their payload. */
  readonly payloads: number;
  /** Agents, tokens and records of idempotency keys, so many of each. */
  readonly others: number;
}

/** Deployments of one runtime and of one release. */
export const DEPLOYMENTS_PER_RUNTIME = 5;
/** One in so many has failed, moves, is a tombstone, was discovered, is being built for. Primes: nothing goes together by chance. */
const FAILED_EACH = 997;
const MOVING_EACH = 101;
const TOMBSTONE_EACH = 19;
const DISCOVERED_EACH = 103;
const BUILDING_EACH = 1009;
const NAMESPACES = 23;
const APPS = 211;
const TEAMS = 53;
/** The age of the oldest change, and of the oldest that has its payload. */
const LOG_DAYS = 300;
const PAYLOAD_DAYS = 6;

/** The id of the n-th object of a kind; n from 0. */
export const fleetId = (prefix: string, n: number): string => `${prefix}_${String(n).padStart(26, '0')}`;
const idSql = (prefix: string, n: string) => `'${prefix}_' || lpad((${n})::text, 26, '0')`;

/** Half of the fleet, a few percent each, and a handful. */
const NAMESPACE = (n: string) =>
  `CASE WHEN ${n} % 5000 = 1 THEN 'tiny' WHEN ${n} % 2 = 0 THEN 'default' ELSE 'team-' || (${n} / 2) % ${NAMESPACES} END`;
const APP = (n: string) => `'app-' || ${n} % ${APPS}`;
const PHASE = (n: string) =>
  `(CASE WHEN ${n} % ${TOMBSTONE_EACH} = 7 THEN 'DELETED' WHEN ${n} % ${FAILED_EACH} = 500 THEN 'UPDATE_FAILED'
         WHEN ${n} % ${MOVING_EACH} = 3 THEN 'UPDATING' ELSE 'RUNNING' END)`;
const CONDITIONS = `'[{"type": "Ready", "status": "TRUE", "reason": "HealthChecked", "message": "all is well", "lastTransitionAt": "2026-01-01T00:00:00.000Z", "observedGeneration": 1}]'`;
const RESOURCES = `'[{"name": "web", "serviceType": "process", "spec": {}, "requires": [], "lifecycle": "LIVE", "reschedule": "NEVER"}]'`;

export async function seedFleet(client: pg.Client, size: FleetSize): Promise<void> {
  const settings = {
    synchronous_commit: 'off',
    session_replication_role: 'replica',
    work_mem: '512MB',
    maintenance_work_mem: '512MB',
  };
  for (const [name, value] of Object.entries(settings)) await client.query(`SET ${name} = '${value}'`);
  const indexes = await dropIndexes(client);
  await seedObjects(client, size);
  await seedLog(client, size);
  for (const index of indexes) await client.query(index);
  for (const name of Object.keys(settings)) await client.query(`RESET ${name}`);
}

/** Filling an index row by row takes several times as long as making it at the end. Answers what makes them again. */
async function dropIndexes(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string; definition: string }>(
    `SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS definition FROM pg_index i
      WHERE i.indrelid IN ('deployment'::regclass, 'rollout'::regclass, 'change'::regclass)
        AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)`,
  );
  for (const { name } of rows) await client.query(`DROP INDEX ${name}`);
  return rows.map(({ definition }) => definition);
}

async function seedObjects(client: pg.Client, { deployments, changes, others }: FleetSize): Promise<void> {
  const runtimes = Math.ceil(deployments / DEPLOYMENTS_PER_RUNTIME);
  await client.query(
    `INSERT INTO runtime (id, namespace, name, type, labels, created_at)
     SELECT ${idSql('rt', 'n')}, ${NAMESPACE('n')}, 'runtime-' || n, 'external', '{"tier": "standard"}', now() - interval '1 day' * ${LOG_DAYS}
       FROM generate_series(0, $1::int - 1) n`,
    [runtimes],
  );
  await client.query(
    `INSERT INTO release (id, namespace, app, label, resources, created_at)
     SELECT ${idSql('rel', 'n')}, ${NAMESPACE('n')}, ${APP('n')}, 'v' || n, ${RESOURCES}, now() - interval '1 day' * ${LOG_DAYS}
       FROM generate_series(0, $1::int - 1) n`,
    [runtimes],
  );
  await client.query(
    `INSERT INTO deployment (id, namespace, name, app, origin, runtime_id, labels, phase, exceptional, conditions, observed_generation,
                             current_release_id, deleted_at, version, created_at)
     SELECT ${idSql('dep', 'n')}, ${NAMESPACE('n')}, 'deployment-' || n, ${APP('n')},
            (CASE WHEN n % ${DISCOVERED_EACH} = 9 THEN 'DISCOVERED' ELSE 'MANAGED' END)::"DeploymentOrigin", ${idSql('rt', `n / ${DEPLOYMENTS_PER_RUNTIME}`)},
            jsonb_build_object('team', 'team-' || n % ${TEAMS}, 'tier', CASE WHEN n % 10 = 0 THEN 'gold' ELSE 'standard' END, 'serial', n::text),
            ${PHASE('n')}::"DeploymentPhase", ${PHASE('n')} NOT IN ('RUNNING', 'DELETED'), ${CONDITIONS}, 1, ${idSql('rel', `n / ${DEPLOYMENTS_PER_RUNTIME}`)},
            CASE WHEN ${PHASE('n')} = 'DELETED' THEN now() - interval '1 hour' * (n % 240) END,
            ($2::bigint - n + $1 - 1) / $1, now() - interval '1 day' * ${LOG_DAYS} + interval '1 second' * n
       FROM generate_series(0, $1::int - 1) n`,
    [deployments, changes],
  );
  await client.query('INSERT INTO deployment_internal (deployment_id) SELECT id FROM deployment');
  await seedRollouts(client, deployments);
  await seedOthers(client, others);
}

/** One for each deployment: what moves is under way, and of the rest one in so many failed or builds. */
async function seedRollouts(client: pg.Client, deployments: number): Promise<void> {
  const moving = `n % ${MOVING_EACH} = 3`;
  const building = `n % ${BUILDING_EACH} = 4`;
  await client.query(
    `INSERT INTO rollout (id, namespace, deployment_id, operation, phase, activated_at, outcome, to_release_id, started_by, finished_at, created_at)
     SELECT ${idSql('ro', 'n')}, ${NAMESPACE('n')}, ${idSql('dep', 'n')},
            (CASE WHEN n % ${FAILED_EACH} = 11 THEN 'ROLLBACK' ELSE 'DEPLOY' END)::"RolloutOperation",
            (CASE WHEN ${building} THEN 'BUILDING' ELSE 'ACTIVATING' END)::"RolloutPhase", CASE WHEN NOT ${building} THEN now() END,
            (CASE WHEN ${moving} OR ${building} THEN NULL WHEN n % ${FAILED_EACH} = 500 THEN 'FAILED' ELSE 'SUCCEEDED' END)::"RolloutOutcome",
            ${idSql('rel', `n / ${DEPLOYMENTS_PER_RUNTIME}`)}, 'token:seed', CASE WHEN NOT (${moving} OR ${building}) THEN now() END,
            now() - interval '1 day' * ${LOG_DAYS} + interval '1 second' * n
       FROM generate_series(0, $1::int - 1) n`,
    [deployments],
  );
  await client.query(
    `INSERT INTO deploy_lock (deployment_id, namespace, rollout_id, started_by, acquired_at, expires_at)
     SELECT deployment_id, namespace, id, started_by, now(), now() + interval '1 hour' FROM rollout WHERE outcome IS NULL`,
  );
}

async function seedOthers(client: pg.Client, count: number): Promise<void> {
  for (const text of [
    `INSERT INTO agent (id, name, topic, service_types, created_at)
     SELECT ${idSql('agt', 'n')}, 'agent-' || n, 'agent-' || n, '{process}', now() - interval '1 day' FROM generate_series(0, $1::int - 1) n`,
    `INSERT INTO agent_internal (agent_id, session) SELECT ${idSql('agt', 'n')}, 'ses_' || n FROM generate_series(0, $1::int - 1) n`,
    `INSERT INTO token (id, name, roles, namespaces, created_by, created_at)
     SELECT ${idSql('tok', 'n')}, 'token-' || n, '{VIEWER}', '{default}', 'token:seed', now() - interval '1 day' FROM generate_series(0, $1::int - 1) n`,
    `INSERT INTO token_secret (token_id, hash) SELECT ${idSql('tok', 'n')}, md5(n::text) FROM generate_series(0, $1::int - 1) n`,
    `INSERT INTO token_use (token_id, last_used_at) SELECT ${idSql('tok', 'n')}, now() FROM generate_series(0, $1::int - 1) n`,
    `INSERT INTO idempotency_record (principal, key, operation, payload_hash, object_id, result)
     SELECT 'token:seed', n, 'seed', '', '', '{}' FROM generate_series(0, $1::int - 1) n`,
  ]) {
    await client.query(text, [count]);
  }
}

/**
 * Each row of the log has a transaction of its own, as patches have, so the transactions are used up first: the log is
 * read by their numbers.
 */
async function seedLog(client: pg.Client, { deployments, changes, payloads }: FleetSize): Promise<void> {
  const { rows } = await client.query<{ xid: string }>('SELECT pg_current_xact_id()::text AS xid');
  await client.query(
    `DO $$ BEGIN FOR i IN 0..${changes} LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$`,
  );
  const first = rows[0]?.xid ?? '';
  await client.query(
    `INSERT INTO change (seq, xid, at, kind, object_id, namespace, op, version, from_state, to_state, reason, actor)
     SELECT n + 1, ($1::bigint + 1 + n)::text::xid8, now() - interval '1 day' * (CASE WHEN n < $2 - $4 THEN ${PAYLOAD_DAYS} + ${LOG_DAYS - PAYLOAD_DAYS} * (1 - n::float8 / ($2 - $4))
                                    ELSE ${PAYLOAD_DAYS} * (($2 - n)::float8 / $4) END),
            'DEPLOYMENT', ${idSql('dep', 'n % $3')}, ${NAMESPACE('(n % $3)')},
            (CASE WHEN n < $3 THEN 'INSERT' ELSE 'UPDATE' END)::"ChangeOp", n / $3 + 1, 'RUNNING', ${PHASE('(n % $3)')}, 'Reported', 'token:seed'
       FROM generate_series(0, $2::bigint - 1) n`,
    [first, changes, deployments, payloads],
  );
  await client.query(
    `INSERT INTO change_payload (seq, after, before)
     SELECT c.seq, jsonb_build_object('id', d.id, 'namespace', d.namespace, 'name', d.name, 'app', d.app, 'origin', d.origin,
              'runtimeId', d.runtime_id, 'labels', d.labels, 'generation', d.generation, 'desiredState', d.desired_state, 'env', d.env,
              'runtimeConfig', d.runtime_config, 'phase', d.phase, 'conditions', d.conditions, 'observedGeneration', d.observed_generation,
              'observedRuntime', d.observed_runtime, 'environmentInfo', d.environment_info, 'error', d.error,
              'currentReleaseId', d.current_release_id, 'targetReleaseId', d.target_release_id, 'retryRequested', d.retry_requested,
              'protocolVersion', d.protocol_version, 'deletionRequestedAt', d.deletion_requested_at, 'deletedAt', d.deleted_at,
              'version', c.version, 'createdAt', d.created_at, 'updatedAt', d.updated_at),
            jsonb_build_object('name', d.name, 'app', d.app, 'origin', d.origin, 'runtimeId', d.runtime_id, 'phase', d.phase,
              'labels', d.labels, 'desiredState', d.desired_state, 'deletedAt', d.deleted_at)
       FROM change c JOIN deployment d ON d.id = c.object_id WHERE c.seq > $1`,
    [changes - payloads],
  );
  await client.query(`SELECT setval('change_seq_seq', $1)`, [changes]);
  await client.query(
    `UPDATE log_state SET floor_seq = $1::bigint, floor_xid = ($1::bigint + 1 + $2::bigint)::text::xid8`,
    [changes - payloads, first],
  );
}
