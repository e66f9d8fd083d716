/** What is asked of a server on a fleet, one operation after the other. Each answers only if it was done right. */
import { encodePageCursor } from '../../src/graph/page-cursor.js';
import { fleetId } from '../../test/support/fleet.js';
import { operate, type HttpClient } from '../support/http-client.js';

export interface Fleet {
  readonly deployments: number;
  readonly client: HttpClient;
  /** When the deployment in the middle of the list was created. */
  readonly middleCreatedAt: Date;
  /** What patches have moved, and to which version. */
  readonly versions: Map<string, number>;
  /** The version that every deployment was seeded with. */
  readonly seededVersion: number;
}

export interface Operation {
  readonly name: string;
  run(fleet: Fleet, turn: number): Promise<void>;
}

const NODE = 'id name version createdAt status { phase } runtime { id name } currentRelease { id label }';
const PAGE = 50;

async function list(fleet: Fleet, args: string, atLeast: number, selection = `{ nodes { ${NODE} } }`) {
  const body = await operate(
    fleet.client,
    JSON.stringify({ query: `{ deployments(${args}) ${selection} }` }),
  );
  const found = body.toString().split('"id":"dep_').length - 1;
  if (found < atLeast) throw new Error(`${args} answered ${found} deployments, not ${atLeast}`);
}

const filtered = (name: string, filter: string, atLeast = 0): Operation => ({
  name,
  run: (fleet) => list(fleet, `first: ${PAGE}, filter: { ${filter} }`, atLeast),
});

/** A deployment that runs, another one each turn; none that is a tombstone, has failed or moves. */
export function running(fleet: Fleet, turn: number): string {
  // Far apart, so that they lie in pages of their own.
  for (let n = (turn * 7_919) % fleet.deployments; ; n = (n + 1) % fleet.deployments) {
    if (n % 19 !== 7 && n % 997 !== 500 && n % 101 !== 3) return fleetId('dep', n);
  }
}

export async function patch(fleet: Fleet, id: string): Promise<void> {
  const version = fleet.versions.get(id) ?? fleet.seededVersion;
  const phase = (version - fleet.seededVersion) % 2 === 0 ? 'REFRESH_FAILED' : 'RUNNING';
  const query = `mutation ($input: PatchDeploymentStatusInput!) { patchDeploymentStatus(input: $input) {
    __typename ... on PatchDeploymentStatusPayload { deployment { id version status { phase } } } ... on Failure { code message } } }`;
  const error = phase === 'RUNNING' ? {} : { error: { code: 'HealthCheckFailed', message: 'no answer' } };
  const input = { id, expectedVersion: version, observedGeneration: 1, phase, ...error };
  const body = await operate(fleet.client, JSON.stringify({ query, variables: { input } }));
  if (!body.includes('PatchDeploymentStatusPayload')) throw new Error(body.toString());
  fleet.versions.set(id, version + 1);
}

export const OPERATIONS: readonly Operation[] = [
  { name: 'list, first page', run: (fleet) => list(fleet, `first: ${PAGE}`, PAGE) },
  {
    name: 'list, a page in the middle',
    run: (fleet) => {
      const place = { value: fleet.middleCreatedAt, id: fleetId('dep', Math.floor(fleet.deployments / 2)) };
      const order = { table: 'deployment', field: 'createdAt', direction: 'asc' } as const;
      return list(fleet, `first: ${PAGE}, after: "${encodePageCursor(order, place)}"`, PAGE);
    },
  },
  { name: 'list, last page', run: (fleet) => list(fleet, `last: ${PAGE}`, PAGE) },
  { name: 'list, by name', run: (fleet) => list(fleet, `first: ${PAGE}, orderBy: { field: NAME }`, PAGE) },
  filtered('list, failed ones', 'phase: { equals: UPDATE_FAILED }', 1),
  filtered('list, a phase that nothing has', 'phase: { equals: PREFLIGHTS_FAILED }'),
  filtered('list, names that begin so', 'name: { startsWith: "deployment-77" }', 1),
  filtered('list, an app', 'app: { equals: "app-17" }', 1),
  filtered('list, an app that is not there', 'app: { equals: "none" }'),
  filtered('list, a common label', 'labels: [{ key: "team", operator: IN, values: ["team-3"] }]', 1),
  filtered('list, a rare label', 'labels: [{ key: "serial", operator: IN, values: ["77"] }]', 1),
  filtered('list, a filter without an index that nothing matches', 'desiredState: { equals: UNDEPLOYED }'),
  { name: 'total', run: (fleet) => list(fleet, 'first: 1', 0, '{ totalCount }') },
  {
    name: 'one by id',
    run: async (fleet, turn) => {
      const query = `{ deployment(id: "${running(fleet, turn)}") { ${NODE} } }`;
      const body = await operate(fleet.client, JSON.stringify({ query }));
      if (!body.includes('"id":"dep_')) throw new Error(body.toString());
    },
  },
  { name: 'status patch', run: (fleet, turn) => patch(fleet, running(fleet, turn)) },
];
