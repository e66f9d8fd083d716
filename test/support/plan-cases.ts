/** Everything that a server can be asked, on a fleet of `seedFleet`: for the guard of the plans. */
import { fleetId } from './fleet.js';
import { change, query, subscribed, type Asking } from './plan-asking.js';

export interface PlanCase {
  readonly name: string;
  /** It only reads. */
  readonly repeatable?: boolean;
  run(asking: Asking): Promise<unknown>;
}

const DEPLOYMENT =
  'id name version createdAt status { phase } runtime { id name } currentRelease { id label }';
const PAGE = 'pageInfo { hasNextPage startCursor endCursor }';

const FIELDS = ['CREATED_AT', 'NAME'];
const DIRECTIONS = ['ASC', 'DESC'];

/** Each order, from both ends, and from a place in the middle both ways. */
async function turnPages(asking: Asking, list: string, more: string, fields = FIELDS): Promise<void> {
  for (const field of fields) {
    for (const direction of DIRECTIONS) {
      const by = fields.length > 1 ? `field: ${field}, direction: ${direction}` : `direction: ${direction}`;
      const order = `orderBy: { ${by} }${more === '' ? '' : `, ${more}`}`;
      for (const [size, turn, end] of [
        ['first: 50', 'after', 'endCursor'],
        ['last: 50', 'before', 'startCursor'],
      ] as const) {
        const page = await query(asking, list, `${size}, ${order}`, `{ nodes { id } ${PAGE} }`);
        const { pageInfo } = page as { pageInfo: Readonly<Record<string, string | null>> }; // as selected
        const cursor = pageInfo[end];
        if (typeof cursor === 'string') {
          await query(asking, list, `${size}, ${turn}: "${cursor}", ${order}`, `{ nodes { id } ${PAGE} }`);
        }
      }
    }
  }
}

const page: PlanCase[] = [
  ['deployments', ''],
  ['deployments with what is deleted', 'includeDeleted: true'],
  ['runtimes', ''],
  ['runtimes with what is deleted', 'includeDeleted: true'],
  ['agents', ''],
  ['tokens', ''],
].map(([name = '', more = '']) => ({
  name: `pages of ${name}`,
  run: (asking) => turnPages(asking, name.split(' ')[0] ?? '', more),
}));

const FILTERS: Readonly<Record<string, string>> = {
  'a rare phase': 'phase: { equals: UPDATE_FAILED }',
  'several rare phases': 'phase: { in: [UPDATE_FAILED, PROVISIONING_FAILED, ERROR] }',
  'a phase that nothing has': 'phase: { equals: PREFLIGHTS_FAILED }',
  'the commonest phase': 'phase: { equals: RUNNING }',
  'an app': 'app: { equals: "app-17" }',
  'an app that is not there': 'app: { equals: "none" }',
  'a name': 'name: { equals: "deployment-4711" }',
  'the beginning of names': 'name: { startsWith: "deployment-471" }',
  'the beginning of no name': 'name: { startsWith: "none" }',
  'a namespace': 'namespace: { equals: "team-3" }',
  'a runtime': `runtimeId: { equals: "${fleetId('rt', 17)}" }`,
  'a common label': 'labels: [{ key: "team", operator: IN, values: ["team-3"] }]',
  'a rare label': 'labels: [{ key: "serial", operator: IN, values: ["17", "18"] }]',
  'a label that nothing has': 'labels: [{ key: "serial", operator: IN, values: ["none"] }]',
  'a rare phase and a label':
    'phase: { equals: UPDATE_FAILED }, labels: [{ key: "tier", operator: IN, values: ["gold"] }]',
  'the rarer origin': 'origin: { equals: DISCOVERED }',
  'all but a phase': 'phase: { notIn: [RUNNING] }',
};

const filtered: PlanCase[] = Object.entries(FILTERS).map(([name, filter]) => ({
  name: `deployments of ${name}`,
  run: (asking) =>
    query(asking, 'deployments', `first: 50, filter: { ${filter} }`, `{ nodes { ${DEPLOYMENT} } ${PAGE} }`),
}));

const ROLLOUT_FILTERS: Readonly<Record<string, string>> = {
  'a rare outcome': 'outcome: { equals: FAILED }',
  'a rare operation': 'operation: { equals: ROLLBACK }',
  'an operation that nothing has': 'operation: { equals: DELETE }',
  'a rare phase': 'phase: { equals: BUILDING }',
  'a deployment': `deploymentId: { equals: "${fleetId('dep', 17)}" }`,
  'a release': `toReleaseId: { equals: "${fleetId('rel', 17)}" }`,
  'a namespace': 'namespace: { equals: "team-3" }',
};
const rollouts: PlanCase[] = Object.entries(ROLLOUT_FILTERS).map(([name, filter]) => ({
  name: `rollouts of ${name}`,
  run: (asking) =>
    query(
      asking,
      'rollouts',
      `first: 50, filter: { ${filter} }`,
      `{ nodes { id toRelease { id } } ${PAGE} }`,
    ),
}));

const STANDING = 'canCancel canRetry canRollback canDelete blockedBy lock { rolloutId }';

const reads: PlanCase[] = [
  {
    name: 'rollouts',
    run: async (asking) => {
      await turnPages(asking, 'rollouts', '', ['CREATED_AT']);
      await query(asking, 'rollout', `id: "${fleetId('ro', 17)}"`, '{ id deployment { id name } }');
      await query(
        asking,
        'deployments',
        'first: 50',
        `{ nodes { id ${STANDING} rollouts(first: 5) { nodes { id outcome } ${PAGE} } } }`,
      );
    },
  },
  {
    name: 'objects by id',
    run: async (asking) => {
      for (const [field, prefix] of [
        ['deployment', 'dep'],
        ['runtime', 'rt'],
        ['release', 'rel'],
        ['agent', 'agt'],
      ] as const) {
        await query(asking, field, `id: "${fleetId(prefix, 17)}"`, '{ id }');
      }
      await query(asking, 'deployment', `id: "${fleetId('dep', 17)}"`, `{ ${DEPLOYMENT} }`);
      await query(asking, 'node', `id: "${fleetId('dep', 17)}"`, '{ id }');
      const ids = [
        fleetId('dep', 17),
        fleetId('rt', 17),
        fleetId('rel', 17),
        fleetId('agt', 17),
        fleetId('tok', 17),
      ];
      await query(
        asking,
        'nodes',
        `ids: ${JSON.stringify(ids)}`,
        '{ id ... on Agent { lastHeartbeatAt } ... on Token { lastUsedAt } }',
      );
    },
  },
  {
    name: 'objects by name',
    run: async (asking) => {
      await query(asking, 'deployment', 'namespace: "default", name: "deployment-18"', '{ id }');
      await query(asking, 'runtime', 'namespace: "default", name: "runtime-18"', '{ id }');
      await query(asking, 'release', 'namespace: "default", app: "app-18", label: "v18"', '{ id }');
      await query(asking, 'agent', 'name: "agent-18"', '{ id }');
    },
  },
  {
    name: 'releases',
    run: async (asking) => {
      await turnPages(asking, 'releases', '', ['CREATED_AT']);
      await query(asking, 'releases', 'first: 50, filter: { app: { equals: "app-17" } }', '{ nodes { id } }');
      await query(asking, 'releases', 'first: 50, filter: { app: { equals: "none" } }', '{ nodes { id } }');
    },
  },
  {
    name: 'deployments of runtimes',
    run: (asking) =>
      query(
        asking,
        'runtimes',
        'first: 5',
        `{ nodes { id deployments(first: 10) { nodes { ${DEPLOYMENT} } ${PAGE} } } }`,
      ),
  },
  {
    name: 'a page with its place in the log',
    run: (asking) => query(asking, 'deployments', 'first: 50', '{ nodes { id } asOf }'),
  },
  {
    name: 'totals',
    run: async (asking) => {
      for (const list of ['deployments', 'runtimes', 'releases', 'rollouts', 'agents', 'tokens']) {
        await query(asking, list, 'first: 1', '{ totalCount }');
      }
    },
  },
  {
    name: 'pages of changes',
    run: async (asking) => {
      await query(asking, 'changes', 'first: 100', '{ nodes { kind } cursor }');
      await query(asking, 'changes', 'first: 100, kinds: [RUNTIME]', '{ nodes { kind } cursor }');
      await query(
        asking,
        'changes',
        `first: 100, objectId: "${fleetId('dep', 17)}"`,
        '{ nodes { kind } cursor }',
      );
      const { cursor } = (await query(asking, 'changes', 'first: 100', '{ cursor }')) as { cursor: string };
      await query(asking, 'changes', `first: 100, after: "${cursor}"`, '{ nodes { kind } cursor }');
      await query(
        asking,
        'deployment',
        `id: "${fleetId('dep', 17)}"`,
        '{ changes(first: 10) { nodes { kind } } }',
      );
      await query(asking, 'head', '', '');
    },
  },
  {
    name: 'what is not in tables that grow',
    run: async (asking) => {
      await query(asking, 'serverInfo', '', '{ version }');
      await query(asking, 'viewer', '', '{ id }');
    },
  },
];

const streams = (from: string): PlanCase[] => [
  {
    name: 'streams that resume',
    run: async (asking) => {
      await subscribed(asking, 'deploymentPhaseChanged', `after: "${from}"`);
      await subscribed(
        asking,
        'watchDeployments',
        `after: "${from}", filter: { runtimeId: { equals: "${fleetId('rt', 1)}" } }`,
      );
      await subscribed(asking, 'watchRollouts', 'filter: { outcome: { equals: FAILED } }');
    },
  },
  {
    name: 'streams that begin with a snapshot',
    run: async (asking) => {
      for (const filter of [
        FILTERS['a rare phase'],
        FILTERS['a runtime'],
        FILTERS['an app'],
        FILTERS['a rare label'],
      ]) {
        await subscribed(asking, 'watchDeployments', `filter: { ${filter} }`);
      }
      await subscribed(asking, 'watchAgents', 'filter: { name: { equals: "agent-17" } }');
    },
  },
];

const spec = (n: number) => ({
  name: `new-${n}`,
  runtime: { name: 'new' },
  release: { app: 'new', label: 'v1' },
});

const writes: PlanCase[] = [
  {
    name: 'writes',
    run: async (asking) => {
      await change(asking, 'createRuntime', { name: 'new', type: 'external', idempotencyKey: 'runtime' });
      await change(asking, 'createRelease', {
        app: 'new',
        label: 'v1',
        resources: [{ name: 'web', serviceType: 'process' }],
      });
      await change(asking, 'applyDeployment', { ...spec(1), idempotencyKey: 'apply' });
      await change(asking, 'applyDeployment', { ...spec(1), labels: { a: 'b' } });
      const runtimeId = fleetId('rt', 18);
      await change(asking, 'updateRuntime', { id: runtimeId, labels: { a: 'b' } });
      await change(asking, 'patchRuntimeStatus', { id: runtimeId, expectedVersion: 2, reason: 'Seen' });
      await change(asking, 'deleteRuntime', { id: runtimeId });
      const id = fleetId('dep', 18);
      const expectedVersion = 4;
      await change(asking, 'patchDeploymentStatus', {
        id,
        expectedVersion,
        phase: 'REFRESH_FAILED',
        idempotencyKey: 'patch',
      });
      await change(asking, 'patchDeploymentStatus', { id, expectedVersion, phase: 'RUNNING' });
      await change(asking, 'retryDeployment', { id });
      await change(asking, 'undeployDeployment', { id });
      await change(asking, 'deleteDeployment', { id, mode: 'FORGET' });
    },
  },
  {
    name: 'rollouts that are begun, driven and called off',
    run: async (asking) => {
      const id = fleetId('dep', 20);
      const release = { id: fleetId('rel', 4) };
      const begin = async () => {
        const { rollout } = await change(
          asking,
          'beginRollout',
          { id },
          '... on BeginRolloutPayload { rollout { id } }',
        );
        return { id: rollout?.['id'] };
      };
      const failing = await begin();
      await change(asking, 'setRolloutPhase', { ...failing, phase: 'BUILDING' });
      await change(asking, 'failRollout', { ...failing, message: 'no' });
      const building = await begin();
      await change(asking, 'activateRollout', { ...building, release });
      await change(asking, 'deployRelease', { id, release });
      await change(asking, 'cancelRollout', building);
      await change(asking, 'rollbackDeployment', { id: fleetId('dep', 22) });
      await change(asking, 'reapplyDeployment', { id: fleetId('dep', 22), forceToken: 'once' });
    },
  },
  {
    name: 'writes of agents and tokens',
    run: async (asking) => {
      const agent = { name: 'new', topic: 'new', serviceTypes: ['process'], protocolVersion: 1 };
      const { agent: registered, session } = await change(
        asking,
        'registerAgent',
        agent,
        '... on RegisterAgentPayload { agent { id } session }',
      );
      const id = registered?.['id'];
      await change(asking, 'registerAgent', agent);
      await change(asking, 'heartbeatAgent', { id, session, sequence: 1, consumerLag: 0 });
      await change(asking, 'heartbeatAgent', { id, session, sequence: 2, consumerLag: 1_000 });
      await change(asking, 'cordonAgent', { id, cordoned: true });
      await change(asking, 'deregisterAgent', { id });
      const { token } = await change(
        asking,
        'createToken',
        { name: 'new', roles: ['VIEWER'] },
        '... on CreateTokenPayload { token { id } }',
      );
      await change(asking, 'updateToken', { id: token?.['id'], name: 'newer' });
      await change(asking, 'revokeToken', { id: token?.['id'] });
    },
  },
];

/** After the writes, so that there is something to be told. */
const streamsOfAgents = (from: string): PlanCase => ({
  name: 'streams of agents that resume',
  run: (asking) => subscribed(asking, 'agentHealthChanged', `after: "${from}"`),
});

function repeatable(cases: readonly PlanCase[]): PlanCase[] {
  return cases.map((one) => ({ ...one, repeatable: true }));
}

/** Of somebody who may see everything. `from`: a cursor to resume from. */
export const casesOfAdmin = (from: string): readonly PlanCase[] => [
  ...repeatable([...page, ...filtered, ...rollouts, ...reads]),
  ...streams(from),
  ...writes,
  streamsOfAgents(from),
];

/** Of somebody who sees some namespaces. */
export const casesOfTenant: readonly PlanCase[] = repeatable([
  ...page.filter(({ name }) => /deployments|runtimes/.test(name)),
  ...filtered,
  ...rollouts,
  ...reads.filter(({ name }) => !/agents|tokens|totals/.test(name)),
]);
