/** Operations that tenants send, made by fast-check: what each names, of whom, with whose cursors, in which words. */
import fc from 'fast-check';

import { newId } from '../../../src/kernel/ids.js';
import { marked, TENANTS, type Refs } from '../../support/tenants.js';

export interface Rendered {
  readonly query: string;
  readonly variables: Record<string, unknown>;
}

export interface Operation {
  readonly name: string;
  /** The tenant whose objects it names. */
  readonly target: number;
  readonly pick: number;
  /** Which of the tokens sends it. */
  readonly sender: number;
  /** Which of the cursors that were seen so far it carries, whoever saw it. */
  readonly cursor: number;
  /** Answered alike when what it names never was: then it must be told so. */
  readonly twin: boolean;
  render(refs: Refs, seen: Seen): Rendered;
}

/** Cursors out of the answers to anybody. */
export interface Seen {
  page: string | null;
  change: string | null;
}

const LOG = 'changes(first: 3) { nodes { objectId namespace actor reason said: message } }';
const ROLLOUT = 'id namespace outcome startedBy said: message source logUrl toRelease { id label app }';
const DEPLOYMENT = `id name namespace app labels canCancel canRetry canRollback canDelete blockedBy lock { deploymentId rolloutId startedBy }
  rollouts(first: 2) { nodes { ${ROLLOUT} deployment { id } } } spec { desiredState env { name value } runtimeConfig }
  status { phase summary error { said: message } conditions { type said: message } } runtime { id name namespace labels }
  targetRelease { id label app } currentRelease { id label }`;
const RUNTIME = 'id name namespace labels';
const RELEASE = 'id app label namespace';
const PAGE = 'totalCount changeAt: asOf pageInfo { pageAt: endCursor startCursor } edges { pageAt: cursor }';
const NODE = `__typename id ... on Deployment { ${DEPLOYMENT} } ... on Runtime { ${RUNTIME} } ... on Release { ${RELEASE} } ... on Rollout { ${ROLLOUT} }`;
const FAILURE = '__typename ... on Failure { code message } ... on InvalidInput { issues { path message } }';

const text = fc
  .nat(TENANTS - 1)
  .chain((tenant) =>
    fc.constantFrom(
      marked(tenant),
      `${marked(tenant)}-deployment-0`,
      `${marked(tenant)}-runtime-1`,
      `${marked(tenant)}-v2`,
      'nowhere',
    ),
  );
const comparison = fc.oneof(
  text.map((equals) => ({ equals })),
  fc.array(text, { maxLength: 4 }).map((values) => ({ in: values })),
  fc.array(text, { maxLength: 3 }).map((notIn) => ({ notIn })),
  text.map((startsWith) => ({ startsWith })),
);
const leafOf = (...fields: string[]) =>
  fc.tuple(fc.constantFrom(...fields), comparison).map(([field, value]): object => ({ [field]: value }));
const filterOf = (leaf: fc.Arbitrary<object>) =>
  fc.oneof(
    { weight: 2, arbitrary: fc.constant(null) },
    { weight: 3, arbitrary: leaf },
    leaf.map((not): object => ({ not })),
    fc.array(leaf, { minLength: 1, maxLength: 3 }).map((or): object => ({ or })),
    fc.tuple(leaf, leaf).map(([one, other]): object => ({ and: [one, { not: other }] })),
  );
const label = fc
  .tuple(text, fc.constantFrom('IN', 'NOT_IN'))
  .map(([value, operator]): object => ({ labels: [{ key: 'team', operator, values: [value] }] }));
const deploymentFilter = filterOf(fc.oneof(leafOf('namespace', 'name', 'app'), label));
const LISTS: readonly (readonly [
  field: string,
  input: string,
  selection: string,
  filter: fc.Arbitrary<object | null>,
])[] = [
  ['deployments', 'DeploymentFilter', DEPLOYMENT, deploymentFilter],
  ['runtimes', 'RuntimeFilter', RUNTIME, filterOf(fc.oneof(leafOf('namespace', 'name'), label))],
  ['releases', 'ReleaseFilter', RELEASE, filterOf(leafOf('namespace', 'app', 'label'))],
];

type Body = Pick<Operation, 'name' | 'twin' | 'render'>;
const body = (name: string, twin: boolean, render: Operation['render']): Body => ({ name, twin, render });

const lookUps: Body[] = [
  body('node', true, ({ deployment, runtime, release }) => ({
    query: `query ($ids: [ID!]!, $id: ID!) { nodes(ids: $ids) { ${NODE} } node(id: $id) { ${NODE} } }`,
    variables: { ids: [deployment, runtime, release], id: deployment },
  })),
  body('by id', true, ({ deployment, runtime, release }) => ({
    query: `query ($d: ID!, $r: ID!, $l: ID!) { deployment(id: $d) { ${DEPLOYMENT} ${LOG} } runtime(id: $r) { ${RUNTIME} ${LOG} } release(id: $l) { ${RELEASE} } }`,
    variables: { d: deployment, r: runtime, l: release },
  })),
  body('by name', true, (refs) => ({
    query: `query ($n: String!, $d: String!, $r: String!, $l: String!) { deployment(namespace: $n, name: $d) { ${DEPLOYMENT} }
      runtime(namespace: $n, name: $r) { ${RUNTIME} } release(namespace: $n, app: $n, label: $l) { ${RELEASE} } }`,
    variables: { n: refs.namespace, d: refs.deploymentName, r: refs.runtimeName, l: refs.releaseLabel },
  })),
  body('timeline', true, ({ deployment }) => ({
    query: `query ($id: ID!) { changes(objectId: $id, first: 5) { hasMore nodes { objectId namespace actor said: message } } }`,
    variables: { id: deployment },
  })),
  body('log', false, ({ runtime }, { change }) => ({
    query: `query ($after: ChangeCursor, $id: ID) { changes(after: $after, first: 20) { changeAt: cursor nodes { changeAt: cursor objectId namespace said: message } }
      of: changes(after: $after, objectId: $id) { nodes { objectId } } head }`,
    variables: { after: change, id: runtime },
  })),
];

const change = (field: string, input: (refs: Refs) => object): Body => {
  const operation = `${field[0]?.toUpperCase()}${field.slice(1)}`;
  const [kind = '', selection] = field.includes('Deployment')
    ? ['deployment', DEPLOYMENT]
    : field.includes('Runtime')
      ? ['runtime', RUNTIME]
      : ['release', RELEASE];
  const shown = `... on ${operation}Payload { ${kind} { ${selection} } }`;
  const current = `${kind[0]?.toUpperCase()}${kind.slice(1)}VersionConflict { current { ${selection} } }`;
  const refused = field.startsWith('create') ? 'AlreadyExists { existingId }' : current;
  return body(field, true, (refs) => ({
    query: `mutation ($input: ${operation}Input!) { ${field}(input: $input) { ${FAILURE} ${shown} ... on ${refused} } }`,
    variables: { input: input(refs) },
  }));
};
const STALE = 999_999;
const changes: Body[] = [
  change('patchDeploymentStatus', ({ deployment: id }) => ({ id, expectedVersion: STALE, phase: 'RUNNING' })),
  change('patchDeploymentStatus', ({ deployment: id }) => ({
    id,
    expectedVersion: 1,
    observedGeneration: 1,
  })),
  change('undeployDeployment', ({ deployment: id }) => ({ id, expectedVersion: STALE })),
  change('retryDeployment', ({ deployment: id }) => ({ id })),
  change('deleteDeployment', ({ deployment: id }) => ({ id, expectedVersion: STALE })),
  change('deleteDeployment', ({ deployment: id }) => ({ id, expectedVersion: STALE, mode: 'DETACH' })),
  change('updateRuntime', ({ runtime: id }) => ({ id, expectedVersion: STALE, labels: { a: 'b' } })),
  change('deleteRuntime', ({ runtime: id }) => ({ id, expectedVersion: STALE })),
  change('patchRuntimeStatus', ({ runtime: id }) => ({ id, expectedVersion: STALE })),
  change('createRuntime', ({ namespace, runtimeName: name }) => ({ namespace, name, type: 'external' })),
  change('createRelease', ({ namespace, releaseLabel: label }) => ({
    namespace,
    app: namespace,
    label,
    resources: [{ name: 'web', serviceType: 'process' }],
  })),
  change('applyDeployment', ({ namespace, deploymentName: name }) => ({
    namespace,
    name,
    labels: { team: namespace },
  })),
];

const lists = fc.constantFrom(...LISTS).chain(([field, input, selection, filters]) =>
  fc
    .record({ filter: filters, first: fc.integer({ min: 1, max: 5 }), turned: fc.boolean() })
    .map(({ filter, first, turned }) =>
      body(field, false, (_refs, { page }) => ({
        query: `query ($filter: ${input}, $first: Int, $after: String) { ${field}(filter: $filter, first: $first, after: $after) { ${PAGE} nodes { ${selection} } } }`,
        variables: { filter, first, after: turned ? page : null },
      })),
    ),
);

/** In the sender's own namespace, on what another tenant has; with a key that others use too. */
const mixed = fc
  .constantFrom<readonly (keyof Refs)[]>(['runtime', 'release'], ['runtimeName', 'releaseLabel'])
  .map(([runtime = 'runtime', release = 'release']) =>
    body('applyDeployment on what is named', false, (refs) => ({
      query: `mutation ($input: ApplyDeploymentInput!) { applyDeployment(input: $input) { ${FAILURE} } }`,
      variables: {
        input: {
          namespace: 'SENDER',
          name: `made-${newId('DEPLOYMENT').slice(-8)}`,
          runtime: runtime === 'runtime' ? { id: refs.runtime } : { name: refs.runtimeName },
          release:
            release === 'release' ? { id: refs.release } : { app: refs.namespace, label: refs.releaseLabel },
          idempotencyKey: `key-${refs.deploymentName}`,
        },
      },
    })),
  );

const subscriptions = fc
  .record({ filter: deploymentFilter, resumed: fc.boolean(), every: fc.boolean(), flag: fc.boolean() })
  .map(({ filter, resumed, every, flag }) =>
    body('subscribe', false, (_refs, { change: after }) => ({
      query: every ? EVERY : LATEST,
      variables: { filter, after: resumed ? after : null, ...(every ? {} : { flag }) },
    })),
  );
const EVERY = `subscription ($filter: DeploymentFilter, $after: ChangeCursor) { deploymentPhaseChanged(filter: $filter, after: $after) { changeAt: cursor version from to said: message deployment { ${DEPLOYMENT} } } }`;
const LATEST = `subscription ($filter: DeploymentFilter, $after: ChangeCursor, $flag: Boolean!) { watchDeployments(filter: $filter, after: $after) {
  __typename ... on StreamEvent { changeAt: cursor } ... on DeploymentAdded { deployment { ${DEPLOYMENT} } }
  ... on DeploymentChanged { deployment { id name runtime @include(if: $flag) { id name } } } ... on DeploymentRemoved { id deployment { ${DEPLOYMENT} } } } }`;
/** Equal for all, so that all share its executions as far as their rights allow. */
export const UNFILTERED = EVERY;
export const SNAPSHOT = LATEST;

const moves = fc.constant(body('move', false, () => ({ query: '', variables: {} })));

export const operations: fc.Arbitrary<Operation> = fc
  .record({
    body: fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(...lookUps) },
      { weight: 4, arbitrary: lists },
      { weight: 4, arbitrary: fc.constantFrom(...changes) },
      { weight: 1, arbitrary: mixed },
      { weight: 1, arbitrary: subscriptions },
      { weight: 2, arbitrary: moves },
    ),
    target: fc.nat(TENANTS - 1),
    pick: fc.nat(2),
    sender: fc.nat(),
    cursor: fc.nat(),
  })
  .map(({ body: made, ...rest }) => ({ ...made, ...rest }));
