/**
 * The reads in the words of the schema that PostGraphile makes of the database, and its answers in ours. Its JSON columns
 * are whole values, so its answers hold more than what is asked for here.
 */
import { variablesOf, type Read } from './query.js';

const ORDER = 'orderBy: [CREATED_AT_ASC, ROW_ID_ASC]';
const FIELDS = `{
  rowId name version createdAt
  phase conditions
  runtimeByRuntimeId { rowId name type }
  releaseByCurrentReleaseId { rowId label resources }
}`;

const DOCUMENTS: Readonly<Record<Read, string>> = {
  list: `query List($first: Int!) { allDeployments(first: $first, ${ORDER}) { nodes ${FIELDS} } }`,
  one: `query One($id: String!) { deploymentByRowId(rowId: $id) ${FIELDS} }`,
  nested: `query Nested($runtimes: Int!, $deployments: Int!) {
    allRuntimes(first: $runtimes, ${ORDER}) {
      nodes {
        rowId name type
        deploymentsByRuntimeId(first: $deployments, ${ORDER}) {
          nodes { rowId name version phase releaseByCurrentReleaseId { rowId label } }
        }
      }
    }
  }`,
};

export function postgraphileBody(read: Read, id: string): string {
  return JSON.stringify({ query: DOCUMENTS[read], variables: variablesOf(read, id) });
}

interface Named {
  readonly rowId: string;
  readonly [column: string]: unknown;
}
interface DeploymentRow extends Named {
  readonly createdAt: string;
  readonly conditions: readonly { readonly type: string; readonly status: string }[];
  readonly runtimeByRuntimeId: Named;
  readonly releaseByCurrentReleaseId:
    (Named & { readonly resources: readonly { readonly name: string }[] }) | null;
}
interface RuntimeRow extends Named {
  readonly deploymentsByRuntimeId: { readonly nodes: readonly DeploymentRow[] };
}
interface Data {
  readonly allDeployments?: { readonly nodes: readonly DeploymentRow[] };
  readonly deploymentByRowId?: DeploymentRow;
  readonly allRuntimes?: { readonly nodes: readonly RuntimeRow[] };
}

/** The answer as the other contenders give it. */
export function postgraphileFacts(answer: unknown): unknown {
  const { data } = answer as { readonly data: Data }; // what DOCUMENTS select
  if (data.allDeployments) {
    return { data: { deployments: { nodes: data.allDeployments.nodes.map(deployment) } } };
  }
  if (data.deploymentByRowId) return { data: { deployment: deployment(data.deploymentByRowId) } };
  return { data: { runtimes: { nodes: data.allRuntimes?.nodes.map(runtime) } } };
}

function deployment(row: DeploymentRow): object {
  const { rowId: id, name, version, phase, createdAt, conditions } = row;
  const { rowId, ...ownOfRuntime } = row.runtimeByRuntimeId;
  const release = row.releaseByCurrentReleaseId;
  return {
    id,
    name,
    version,
    createdAt: new Date(createdAt).toISOString(),
    status: { phase, conditions: conditions.map(({ type, status }) => ({ type, status })) },
    runtime: { id: rowId, ...ownOfRuntime },
    currentRelease: release && {
      id: release.rowId,
      label: release['label'],
      resources: release.resources.map((resource) => ({ name: resource.name })),
    },
  };
}

function runtime({ rowId: id, name, type, deploymentsByRuntimeId }: RuntimeRow): object {
  const nodes = deploymentsByRuntimeId.nodes.map((row) => {
    const release = row.releaseByCurrentReleaseId;
    return {
      id: row.rowId,
      name: row['name'],
      version: row['version'],
      status: { phase: row['phase'] },
      currentRelease: release && { id: release.rowId, label: release['label'] },
    };
  });
  return { id, name, type, deployments: { nodes } };
}
