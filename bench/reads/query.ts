/** The reads, each as a GraphQL operation and as one SQL statement that builds the same JSON in PostgreSQL. */
export const READS = ['list', 'one', 'nested'] as const;
export type Read = (typeof READS)[number];

export const PAGE = 50;
/** Of `nested`: as many deployments in all as on a page. */
export const RUNTIMES = 5;
const DEPLOYMENTS_EACH = PAGE / RUNTIMES;

const FIELDS = `{
  id name version createdAt
  status { phase conditions { type status } }
  runtime { id name type }
  currentRelease { id label resources { name } }
}`;

const DOCUMENTS: Readonly<Record<Read, string>> = {
  list: `query List($first: Int!) { deployments(first: $first) { nodes ${FIELDS} } }`,
  one: `query One($id: ID!) { deployment(id: $id) ${FIELDS} }`,
  nested: `query Nested($runtimes: Int!, $deployments: Int!) {
    runtimes(first: $runtimes) {
      nodes {
        id name type
        deployments(first: $deployments) {
          nodes { id name version status { phase } currentRelease { id label } }
        }
      }
    }
  }`,
};

/** What each operation asks for. */
export function variablesOf(read: Read, id: string): Readonly<Record<string, unknown>> {
  if (read === 'list') return { first: PAGE };
  return read === 'one' ? { id } : { runtimes: RUNTIMES, deployments: DEPLOYMENTS_EACH };
}

export function bodyOf(read: Read, id: string): string {
  return JSON.stringify({ query: DOCUMENTS[read], variables: variablesOf(read, id) });
}

const NODE = `json_build_object(
  'id', d.id, 'name', d.name, 'version', d.version,
  'createdAt', to_char(d.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
  'status', json_build_object('phase', d.phase, 'conditions', (
    SELECT coalesce(json_agg(json_build_object('type', c->'type', 'status', c->'status')), '[]')
      FROM jsonb_array_elements(d.conditions) c)),
  'runtime', json_build_object('id', r.id, 'name', r.name, 'type', r.type),
  'currentRelease', CASE WHEN l.id IS NOT NULL THEN json_build_object('id', l.id, 'label', l.label, 'resources', (
    SELECT coalesce(json_agg(json_build_object('name', s->'name')), '[]')
      FROM jsonb_array_elements(l.resources) s)) END)`;
const RELATIONS = 'JOIN runtime r ON r.id = d.runtime_id LEFT JOIN release l ON l.id = d.current_release_id';

export const STATEMENTS: Readonly<Record<Read, string>> = {
  list: `SELECT json_build_object('data', json_build_object('deployments', json_build_object('nodes',
           coalesce(json_agg(${NODE} ORDER BY d.created_at, d.id), '[]'))))::text AS body
    FROM (SELECT * FROM deployment WHERE deleted_at IS NULL ORDER BY created_at, id LIMIT $1) d ${RELATIONS}`,
  one: `SELECT json_build_object('data', json_build_object('deployment', ${NODE}))::text AS body
    FROM deployment d ${RELATIONS} WHERE d.id = $1`,
  nested: `SELECT json_build_object('data', json_build_object('runtimes', json_build_object('nodes',
             coalesce(json_agg(json_build_object('id', r.id, 'name', r.name, 'type', r.type, 'deployments', of.page)
                               ORDER BY r.created_at, r.id), '[]'))))::text AS body
    FROM (SELECT * FROM runtime WHERE deleted_at IS NULL ORDER BY created_at, id LIMIT $1) r
    CROSS JOIN LATERAL (
      SELECT json_build_object('nodes', coalesce(json_agg(json_build_object(
               'id', d.id, 'name', d.name, 'version', d.version, 'status', json_build_object('phase', d.phase),
               'currentRelease', CASE WHEN l.id IS NOT NULL THEN json_build_object('id', l.id, 'label', l.label) END)
               ORDER BY d.created_at, d.id), '[]')) AS page
        FROM (SELECT * FROM deployment WHERE runtime_id = r.id AND deleted_at IS NULL
               ORDER BY created_at, id LIMIT $2) d
        LEFT JOIN release l ON l.id = d.current_release_id) of`,
};
