/**
 * Mercurius with jit, on statements written by hand and prepared; `relations` says how the objects of a selection come:
 * `loaders`, one statement a level, as its guide has it, or `join`, one statement for what the benchmark asks.
 */
import fastify from 'fastify';
import mercurius from 'mercurius';
import { randomUUID } from 'node:crypto';
import pg from 'pg';

import { KEEP_ALIVE_MS, serving, setting } from './support/setting.mjs';
import { SDL } from './support/sdl.mjs';

const pool = new pg.Pool({ connectionString: setting.databaseUrl, max: setting.poolSize });

async function rows(name, text, values) {
  const result = await pool.query({ name, text, values });
  return result.rows;
}

const COLUMNS =
  'd.id, d.name, d.version, d.created_at, d.phase, d.conditions, d.runtime_id, d.current_release_id';
const JOINED = `${COLUMNS}, r.name AS runtime_name, r.type AS runtime_type, l.label, l.resources`;
const RELATIONS = 'JOIN runtime r ON r.id = d.runtime_id LEFT JOIN release l ON l.id = d.current_release_id';
const PAGE = 'WHERE d.deleted_at IS NULL ORDER BY d.created_at, d.id LIMIT $1';

function deployment(row) {
  return {
    id: row.id,
    name: row.name,
    version: row.version,
    createdAt: row.created_at.toISOString(),
    status: { phase: row.phase, conditions: row.conditions },
    runtimeId: row.runtime_id,
    releaseId: row.current_release_id,
  };
}

function joined(row) {
  const { runtimeId, releaseId, ...own } = deployment(row);
  return {
    ...own,
    runtime: { id: runtimeId, name: row.runtime_name, type: row.runtime_type },
    currentRelease: releaseId === null ? null : { id: releaseId, label: row.label, resources: row.resources },
  };
}

async function byIds(name, text, ids) {
  const found = new Map((await rows(name, text, [[...new Set(ids)]])).map((row) => [row.id, row]));
  return ids.map((id) => found.get(id) ?? null);
}

async function deploymentsOf(queries) {
  const [{ params }] = queries; // of one selection, so all have the same arguments
  const found = await rows(
    'deployments-of-runtimes',
    `SELECT ${COLUMNS} FROM unnest($1::text[]) AS of(id)
       CROSS JOIN LATERAL (SELECT * FROM deployment WHERE runtime_id = of.id AND deleted_at IS NULL
                            ORDER BY created_at, id LIMIT $2) d`,
    [queries.map(({ obj }) => obj.id), params.first],
  );
  const pages = new Map(queries.map(({ obj }) => [obj.id, []]));
  for (const row of found) pages.get(row.runtime_id).push(deployment(row));
  return queries.map(({ obj }) => ({ nodes: pages.get(obj.id) }));
}

const withLoaders = {
  resolvers: {
    Query: {
      async deployments(_root, { first }) {
        const found = await rows('deployments', `SELECT ${COLUMNS} FROM deployment d ${PAGE}`, [first]);
        return { nodes: found.map(deployment) };
      },
      async deployment(_root, { id }) {
        const [row] = await rows('deployment', `SELECT ${COLUMNS} FROM deployment d WHERE d.id = $1`, [id]);
        return row ? deployment(row) : null;
      },
      async runtimes(_root, { first }) {
        const text =
          'SELECT id, name, type FROM runtime WHERE deleted_at IS NULL ORDER BY created_at, id LIMIT $1';
        return { nodes: await rows('runtimes', text, [first]) };
      },
    },
  },
  loaders: {
    Deployment: {
      runtime: (queries) =>
        byIds(
          'runtimes-by-id',
          'SELECT id, name, type FROM runtime WHERE id = ANY ($1)',
          queries.map(({ obj }) => obj.runtimeId),
        ),
      currentRelease: (queries) =>
        byIds(
          'releases-by-id',
          'SELECT id, label, resources FROM release WHERE id = ANY ($1)',
          queries.map(({ obj }) => obj.releaseId),
        ),
    },
    Runtime: { deployments: deploymentsOf },
  },
};

const withJoins = {
  resolvers: {
    Query: {
      async deployments(_root, { first }) {
        const found = await rows('joined', `SELECT ${JOINED} FROM deployment d ${RELATIONS} ${PAGE}`, [
          first,
        ]);
        return { nodes: found.map(joined) };
      },
      async deployment(_root, { id }) {
        const text = `SELECT ${JOINED} FROM deployment d ${RELATIONS} WHERE d.id = $1`;
        const [row] = await rows('one-joined', text, [id]);
        return row ? joined(row) : null;
      },
    },
  },
};

async function patchDeploymentStatus(_root, { input }) {
  const [row] = await rows(
    'patch',
    `UPDATE deployment d SET version = version + 1, changed_by = 'local', change_reason = 'Reported', change_token = $3,
            phase = $4, conditions = $5, observed_generation = coalesce($6, observed_generation), error = $7
      WHERE d.id = $1 AND d.version = $2 RETURNING ${COLUMNS}`,
    [
      input.id,
      input.expectedVersion,
      randomUUID(),
      input.phase,
      JSON.stringify(input.conditions),
      input.observedGeneration,
      input.error ? JSON.stringify(input.error) : null,
    ],
  );
  return row
    ? { __typename: 'PatchDeploymentStatusPayload', deployment: deployment(row) }
    : {
        __typename: 'Failure',
        code: 'VERSION_CONFLICT',
        message: `\`${input.id}\` is not at version ${input.expectedVersion}`,
      };
}

const { resolvers, loaders } = setting.relations === 'join' ? withJoins : withLoaders;
const app = fastify({ keepAliveTimeout: KEEP_ALIVE_MS });
await app.register(mercurius, {
  schema: SDL,
  resolvers: { ...resolvers, Mutation: { patchDeploymentStatus } },
  loaders,
  jit: 1,
});
serving(`${await app.listen({ host: '127.0.0.1', port: 0 })}/graphql`);
