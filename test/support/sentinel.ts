/**
 * The sentinel: every internal value is made a marker, everything that can be asked is asked, and whatever comes out,
 * over whatever transport and in whatever log, is scanned for markers.
 */
import {
  getNamedType,
  isInputObjectType,
  isLeafType,
  isNonNullType,
  isObjectType,
  isUnionType,
  isInterfaceType,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';

import { newId } from '../../src/kernel/ids.js';
import type { Database } from '../../src/store/database.js';

export const MARKER = 'sentinel7f3a';
/** The marker where only a number fits. */
const MARKER_NUMBER = '718281828459';

export interface Sentinels {
  readonly ids: Readonly<
    Record<'deployment' | 'runtime' | 'release' | 'agent' | 'token' | 'rollout', string>
  >;
  /** What must be found nowhere. */
  readonly forbidden: readonly string[];
  /** The token's own secret: what a client would send, if the test needs one. */
  readonly marked: (what: string) => string;
}

/** Objects of every kind with a marker in each internal column. Call it on a fresh database. */
export async function plantSentinels(database: Database): Promise<Sentinels> {
  const ids = {
    runtime: newId('RUNTIME'),
    release: newId('RELEASE'),
    deployment: newId('DEPLOYMENT'),
    agent: newId('AGENT'),
    token: newId('TOKEN'),
    rollout: newId('ROLLOUT'),
  };
  const marked = (what: string) => `${MARKER}-${what}`;
  const data = (what: string) => JSON.stringify({ note: marked(what), nested: { list: [marked(what)] } });
  const by = ['operator', 'Seeded', marked('change-token')];
  await database.inTransaction(async (tx) => {
    const run = (text: string, values: unknown[]) => tx.query({ text, values });
    await run(
      `INSERT INTO runtime (id, namespace, name, type, changed_by, change_reason, change_token) VALUES ($1, 'default', 'place', 'external', $2, $3, $4)`,
      [ids.runtime, ...by],
    );
    await run(`INSERT INTO runtime_internal (runtime_id, data) VALUES ($1, $2)`, [
      ids.runtime,
      data('runtime-internal'),
    ]);
    await run(
      `INSERT INTO release (id, namespace, app, label, resources, changed_by, change_reason, change_token) VALUES ($1, 'default', 'shop', 'v1', '[{"name":"web","serviceType":"process","spec":{},"requires":[],"lifecycle":"LIVE","reschedule":"NEVER"}]', $2, $3, $4)`,
      [ids.release, ...by],
    );
    await run(
      `INSERT INTO deployment (id, namespace, name, app, runtime_id, target_release_id, changed_by, change_reason, change_token) VALUES ($1, 'default', 'shop', 'shop', $2, $3, $4, $5, $6)`,
      [ids.deployment, ids.runtime, ids.release, ...by],
    );
    await run(`INSERT INTO deployment_internal (deployment_id, data) VALUES ($1, $2)`, [
      ids.deployment,
      data('deployment-internal'),
    ]);
    await run(
      `INSERT INTO rollout (id, namespace, deployment_id, operation, from_release_id, to_release_id, source, started_by, changed_by, change_reason, change_token)
       VALUES ($1, 'default', $2, 'UPDATE', $3, $3, '{"sha": "abc"}', $4, $4, $5, $6)`,
      [ids.rollout, ids.deployment, ids.release, ...by],
    );
    await run(
      `INSERT INTO deploy_lock (deployment_id, namespace, rollout_id, started_by, acquired_at, expires_at)
       VALUES ($1, $2, $3, 'operator', now(), now() + interval '1 hour')`,
      [ids.deployment, marked('lock-namespace'), ids.rollout],
    );
    await run(
      `INSERT INTO agent (id, name, topic, service_types, changed_by, change_reason, change_token) VALUES ($1, 'worker', 'worker', '{process}', $2, $3, $4)`,
      [ids.agent, ...by],
    );
    await run(`INSERT INTO agent_internal (agent_id, session, sequence) VALUES ($1, $2, $3)`, [
      ids.agent,
      marked('session'),
      MARKER_NUMBER,
    ]);
    await run(
      `INSERT INTO token (id, name, roles, namespaces, created_by, changed_by, change_reason, change_token) VALUES ($1, 'ci', '{VIEWER}', '{*}', 'operator', $2, $3, $4)`,
      [ids.token, ...by],
    );
    await run(`INSERT INTO token_secret (token_id, hash) VALUES ($1, $2)`, [ids.token, marked('hash')]);
    await run(
      `INSERT INTO idempotency_record (principal, key, operation, payload_hash, object_id, result) VALUES ($1, $2, $3, $4, $5, $6)`,
      [
        marked('principal'),
        marked('key'),
        'patchDeploymentStatus',
        marked('payload-hash'),
        ids.deployment,
        data('result'),
      ],
    );
  });
  const { rows } = await database.pool.query<{ system: string }>(
    'SELECT system_identifier AS system FROM log_state',
  );
  return { ids, marked, forbidden: [MARKER, MARKER_NUMBER, String(rows[0]?.system)] };
}

/** Which forbidden values are in it, with a little of what stands around each. */
export function findSentinels(text: string, { forbidden }: Pick<Sentinels, 'forbidden'>): string[] {
  const lower = text.toLowerCase();
  return forbidden.flatMap((value) => {
    const at = lower.indexOf(value.toLowerCase());
    return at === -1 ? [] : [`…${text.slice(Math.max(0, at - 60), at + 60)}…`];
  });
}

/** Behind the server's back, so that even the token of the write is a marker. */
export async function moveObjects(
  database: Database,
  { ids, marked }: Sentinels,
  why: string,
): Promise<void> {
  await database.pool.query(
    `UPDATE deployment SET version = version + 1, change_token = $2,
            phase = CASE phase WHEN 'RUNNING' THEN 'UPDATING' ELSE 'RUNNING' END::"DeploymentPhase" WHERE id = $1`,
    [ids.deployment, marked(`token-${why}`)],
  );
  await database.pool.query(
    `UPDATE agent SET version = version + 1, change_token = $2,
            health = CASE health WHEN 'READY' THEN 'CONGESTED' ELSE 'READY' END::"AgentHealth" WHERE id = $1`,
    [ids.agent, marked(`token-${why}`)],
  );
  await database.pool.query(
    `UPDATE rollout SET version = version + 1, change_token = $2,
            phase = CASE phase WHEN 'BUILDING' THEN 'PUSHING' ELSE 'BUILDING' END::"RolloutPhase" WHERE id = $1`,
    [ids.rollout, marked(`token-${why}`)],
  );
}

/** For `everyOperation`: the planted objects, by id. */
export function queryArguments({ ids }: Sentinels): Record<string, Record<string, unknown>> {
  return {
    node: { id: ids.deployment },
    nodes: { ids: Object.values(ids) },
    deployment: { id: ids.deployment },
    runtime: { id: ids.runtime },
    release: { id: ids.release },
    agent: { id: ids.agent },
    rollout: { id: ids.rollout },
  };
}

/** For `everyOperation`: some are done, some refused. */
export function mutationInputs({ ids }: Sentinels): Record<string, { input: object }> {
  const target = { id: ids.deployment };
  const rollout = { id: ids.rollout };
  const release = { id: ids.release };
  const resources = [{ name: 'web', serviceType: 'process' }];
  return {
    createRuntime: { input: { name: 'place', type: 'external' } },
    updateRuntime: { input: { id: ids.runtime, labels: { team: 'web' } } },
    patchRuntimeStatus: { input: { id: ids.runtime, expectedVersion: 1 } },
    createRelease: { input: { app: 'shop', label: 'v1', resources } },
    applyDeployment: {
      input: { name: 'shop', labels: { team: 'web' }, env: [{ name: 'A', secretValue: 'x' }] },
    },
    patchDeploymentStatus: { input: { ...target, expectedVersion: 999, phase: 'RUNNING' } },
    undeployDeployment: { input: { ...target, expectedVersion: 999 } },
    retryDeployment: { input: target },
    deleteDeployment: { input: { ...target, expectedVersion: 999 } },
    deployRelease: { input: { ...target, release } },
    rollbackDeployment: { input: { ...target, release } },
    reapplyDeployment: { input: target },
    beginRollout: { input: target },
    setRolloutPhase: { input: { ...rollout, phase: 'PUSHING' } },
    activateRollout: { input: { ...rollout, release, expectedVersion: 999 } },
    failRollout: { input: { ...rollout, message: 'no', expectedVersion: 999 } },
    cancelRollout: { input: { ...rollout, expectedVersion: 999 } },
    deleteRuntime: { input: { id: ids.runtime, expectedVersion: 999 } },
    registerAgent: { input: { name: 'other', topic: 'worker', serviceTypes: [], protocolVersion: 1 } },
    heartbeatAgent: { input: { id: ids.agent, session: 'wrong', sequence: 1, consumerLag: 0 } },
    deregisterAgent: { input: { id: ids.agent, expectedVersion: 999 } },
    cordonAgent: { input: { id: ids.agent, cordoned: true } },
    createToken: { input: { name: 'new', roles: ['VIEWER'] } },
    updateToken: { input: { id: ids.token, expectedVersion: 999 } },
    revokeToken: { input: { id: ids.token, expectedVersion: 999 } },
  };
}

export interface Operation {
  readonly name: string;
  readonly document: string;
  readonly variables: Record<string, unknown>;
}

/** One operation for each field of a root, which selects everything below it down to `depth` objects. */
export function everyOperation(
  schema: GraphQLSchema,
  root: 'query' | 'mutation' | 'subscription',
  /** Arguments of fields that need some, by `field` or `Type.field`. */
  given: Readonly<Record<string, Record<string, unknown>>>,
  depth = 4,
): Operation[] {
  const type = {
    query: schema.getQueryType(),
    mutation: schema.getMutationType(),
    subscription: schema.getSubscriptionType(),
  }[root];
  return Object.values(type?.getFields() ?? {}).map((field) => {
    const values = given[field.name] ?? {};
    const used = field.args.filter(({ name }) => name in values);
    const missing = field.args.find(
      (argument) =>
        isNonNullType(argument.type) && argument.defaultValue === undefined && !(argument.name in values),
    );
    if (missing) throw new Error(`${root} ${field.name} needs \`${missing.name}\`: give the sentinel one`);
    const declared = used.map((argument) => `$${argument.name}: ${String(argument.type)}`).join(', ');
    const passed = used.map(({ name }) => `${name}: $${name}`).join(', ');
    const body = selection(schema, getNamedType(field.type), depth, []);
    return {
      name: `${root} ${field.name}`,
      document: `${root} Everything${declared ? `(${declared})` : ''} { ${field.name}${passed ? `(${passed})` : ''} ${body} }`,
      variables: values,
    };
  });
}

function selection(
  schema: GraphQLSchema,
  type: GraphQLNamedType,
  depth: number,
  path: readonly string[],
): string {
  if (isLeafType(type) || isInputObjectType(type)) return '';
  if (isUnionType(type) || isInterfaceType(type)) {
    const members = schema
      .getPossibleTypes(type)
      .map((member) => `... on ${member.name} ${selection(schema, member, depth, path)}`);
    return `{ __typename ${members.join(' ')} }`;
  }
  if (!isObjectType(type)) return '';
  return `{ __typename ${fieldsOf(schema, type, depth, path).join(' ')} }`;
}

function fieldsOf(
  schema: GraphQLSchema,
  type: GraphQLObjectType,
  depth: number,
  path: readonly string[],
): string[] {
  return Object.values(type.getFields()).flatMap((field) => {
    const inner = getNamedType(field.type);
    if (field.args.some((argument) => isNonNullType(argument.type) && argument.defaultValue === undefined)) {
      return [];
    }
    // Members of one union may have a field of one name and several types: each gets a name of its own.
    const name = `${type.name}_${field.name}: ${field.name}`;
    if (isLeafType(inner)) return [name];
    const step = stepOf(type, field);
    if (depth === 0 || path.includes(step)) return [];
    return [`${name} ${selection(schema, inner, depth - 1, [...path, step])}`];
  });
}

const stepOf = (type: GraphQLObjectType, field: GraphQLField<unknown, unknown>) =>
  `${type.name}.${field.name}`;
