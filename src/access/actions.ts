import type { Role } from './actor.js';

/**
 * The action table: the only source of who may do what. A guard test fails for every query, mutation and
 * subscription without a row in OPERATIONS.
 *
 * `scope` says what a role is limited to: `namespace` by the namespaces of the actor; `agent` by its agent name when it
 * holds no other allowed role; `global` by nothing (objects outside namespaces).
 */
interface ActionRule {
  readonly roles: readonly Role[];
  readonly scope: 'namespace' | 'agent' | 'global';
  readonly description: string;
}

const READERS = ['VIEWER', 'DEPLOYER', 'OPERATOR', 'CONTROLLER', 'ADMIN'] as const;

export const ACTIONS = {
  'server:read': {
    roles: [...READERS, 'AGENT'],
    scope: 'global',
    description: 'Read what the server says of itself and of the caller.',
  },
  'runtime:read': { roles: READERS, scope: 'namespace', description: 'Read runtimes.' },
  'runtime:write': {
    roles: ['OPERATOR', 'ADMIN'],
    scope: 'namespace',
    description: 'Create, update and delete runtimes.',
  },
  'runtime:report': {
    roles: ['CONTROLLER', 'ADMIN'],
    scope: 'namespace',
    description: 'Patch the status of an external runtime.',
  },
  'release:read': { roles: READERS, scope: 'namespace', description: 'Read releases.' },
  'release:write': {
    roles: ['DEPLOYER', 'OPERATOR', 'ADMIN'],
    scope: 'namespace',
    description: 'Create releases.',
  },
  'deployment:read': { roles: READERS, scope: 'namespace', description: 'Read and watch deployments.' },
  'deployment:write': {
    roles: ['DEPLOYER', 'OPERATOR', 'ADMIN'],
    scope: 'namespace',
    description:
      'Apply, deploy, roll back, undeploy, retry and delete deployments, and drive their rollouts.',
  },
  'deployment:detach': {
    roles: ['OPERATOR', 'ADMIN'],
    scope: 'namespace',
    description: 'Delete a deployment and leave its workload running.',
  },
  'deployment:forget': {
    roles: ['ADMIN'],
    scope: 'namespace',
    description: 'Delete a deployment whose workload can never be removed.',
  },
  'deployment:report': {
    roles: ['CONTROLLER', 'ADMIN'],
    scope: 'namespace',
    description: 'Patch the status of a deployment on an external runtime.',
  },
  'rollout:read': {
    roles: READERS,
    scope: 'namespace',
    description: 'Read and watch rollouts and deploy locks.',
  },
  'agent:read': { roles: READERS, scope: 'global', description: 'Read and watch agents.' },
  'agent:register': { roles: ['AGENT', 'ADMIN'], scope: 'agent', description: 'Register an agent.' },
  'agent:beat': { roles: ['AGENT', 'ADMIN'], scope: 'agent', description: 'Send heartbeats of an agent.' },
  'agent:deregister': {
    roles: ['AGENT', 'OPERATOR', 'ADMIN'],
    scope: 'agent',
    description: 'Deregister an agent.',
  },
  'agent:operate': {
    roles: ['OPERATOR', 'ADMIN'],
    scope: 'global',
    description: 'Cordon and uncordon agents.',
  },
  'token:read': { roles: ['ADMIN'], scope: 'global', description: 'Read API tokens (never their secrets).' },
  'token:write': { roles: ['ADMIN'], scope: 'global', description: 'Create, update and revoke API tokens.' },
  'change:read': { roles: READERS, scope: 'namespace', description: 'Read the change log.' },
  'system:sweep': {
    roles: [],
    scope: 'global',
    description: 'The server itself: judging the health of agents, purging, retention.',
  },
} as const satisfies Record<string, ActionRule>;

export type Action = keyof typeof ACTIONS;

/** Which action each operation of the graph needs at least; commands may ask for more (delete modes, say). */
export const OPERATIONS: Readonly<Record<string, Action>> = {
  'Query.viewer': 'server:read',
  'Query.serverInfo': 'server:read',
  'Query.node': 'server:read',
  'Query.nodes': 'server:read',
  'Query.head': 'server:read',
  'Query.runtime': 'runtime:read',
  'Query.runtimes': 'runtime:read',
  'Query.release': 'release:read',
  'Query.releases': 'release:read',
  'Query.deployment': 'deployment:read',
  'Query.deployments': 'deployment:read',
  'Query.rollout': 'rollout:read',
  'Query.rollouts': 'rollout:read',
  'Query.agent': 'agent:read',
  'Query.agents': 'agent:read',
  'Query.tokens': 'token:read',
  'Query.changes': 'change:read',
  'Mutation.createRuntime': 'runtime:write',
  'Mutation.updateRuntime': 'runtime:write',
  'Mutation.deleteRuntime': 'runtime:write',
  'Mutation.patchRuntimeStatus': 'runtime:report',
  'Mutation.createRelease': 'release:write',
  'Mutation.applyDeployment': 'deployment:write',
  'Mutation.undeployDeployment': 'deployment:write',
  'Mutation.retryDeployment': 'deployment:write',
  'Mutation.deleteDeployment': 'deployment:write',
  'Mutation.deployRelease': 'deployment:write',
  'Mutation.rollbackDeployment': 'deployment:write',
  'Mutation.reapplyDeployment': 'deployment:write',
  'Mutation.beginRollout': 'deployment:write',
  'Mutation.setRolloutPhase': 'deployment:write',
  'Mutation.activateRollout': 'deployment:write',
  'Mutation.failRollout': 'deployment:write',
  'Mutation.cancelRollout': 'deployment:write',
  'Mutation.patchDeploymentStatus': 'deployment:report',
  'Mutation.registerAgent': 'agent:register',
  'Mutation.heartbeatAgent': 'agent:beat',
  'Mutation.deregisterAgent': 'agent:deregister',
  'Mutation.cordonAgent': 'agent:operate',
  'Mutation.createToken': 'token:write',
  'Mutation.updateToken': 'token:write',
  'Mutation.revokeToken': 'token:write',
  'Subscription.deploymentPhaseChanged': 'deployment:read',
  'Subscription.watchDeployments': 'deployment:read',
  'Subscription.watchRollouts': 'rollout:read',
  'Subscription.agentHealthChanged': 'agent:read',
  'Subscription.watchAgents': 'agent:read',
};
