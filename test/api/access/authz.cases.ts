import type { Action } from '../../../src/access/actions.js';
import type { Role } from '../../../src/access/actor.js';

/**
 * Who may do each action, and who may not: written down a second time, apart from the table, so that a change of
 * the table has to be meant. Each role stands on one side. `test/guard/authorisation.test.ts` refuses an action, and
 * an operation of the graph, without a case.
 */
export interface AuthorisationCase {
  readonly may: readonly Role[];
  readonly mayNot: readonly Role[];
  /**
   * What narrows the grant: the namespaces of the actor, its agent name (the role AGENT alone; others are not
   * narrowed), or nothing.
   */
  readonly within: 'namespaces' | 'agent name' | 'nothing';
}

const readers: readonly Role[] = ['VIEWER', 'DEPLOYER', 'OPERATOR', 'CONTROLLER', 'ADMIN'];
const readIn = { may: readers, mayNot: ['AGENT'], within: 'namespaces' } as const;
const operatorsIn = {
  may: ['OPERATOR', 'ADMIN'],
  mayNot: ['VIEWER', 'DEPLOYER', 'CONTROLLER', 'AGENT'],
  within: 'namespaces',
} as const;
const deployersIn = {
  may: ['DEPLOYER', 'OPERATOR', 'ADMIN'],
  mayNot: ['VIEWER', 'CONTROLLER', 'AGENT'],
  within: 'namespaces',
} as const;
const controllersIn = {
  may: ['CONTROLLER', 'ADMIN'],
  mayNot: ['VIEWER', 'DEPLOYER', 'OPERATOR', 'AGENT'],
  within: 'namespaces',
} as const;
const agents = {
  may: ['AGENT', 'ADMIN'],
  mayNot: ['VIEWER', 'DEPLOYER', 'OPERATOR', 'CONTROLLER'],
  within: 'agent name',
} as const;
const admins = {
  may: ['ADMIN'],
  mayNot: ['VIEWER', 'DEPLOYER', 'OPERATOR', 'CONTROLLER', 'AGENT'],
  within: 'nothing',
} as const;

export const AUTHORISATION_CASES: Readonly<Record<Action, AuthorisationCase>> = {
  'server:read': { may: [...readers, 'AGENT'], mayNot: [], within: 'nothing' },
  'runtime:read': readIn,
  'runtime:write': operatorsIn,
  'runtime:report': controllersIn,
  'release:read': readIn,
  'release:write': deployersIn,
  'deployment:read': readIn,
  'deployment:write': deployersIn,
  'deployment:detach': operatorsIn,
  'deployment:forget': { ...admins, within: 'namespaces' },
  'deployment:report': controllersIn,
  'rollout:read': readIn,
  'agent:read': { may: readers, mayNot: ['AGENT'], within: 'nothing' },
  'agent:register': agents,
  'agent:beat': agents,
  'agent:deregister': {
    may: ['AGENT', 'OPERATOR', 'ADMIN'],
    mayNot: ['VIEWER', 'DEPLOYER', 'CONTROLLER'],
    within: 'agent name',
  },
  'agent:operate': {
    may: ['OPERATOR', 'ADMIN'],
    mayNot: ['VIEWER', 'DEPLOYER', 'CONTROLLER', 'AGENT'],
    within: 'nothing',
  },
  'token:read': admins,
  'token:write': admins,
  'change:read': readIn,
  'system:sweep': {
    may: [],
    mayNot: ['VIEWER', 'DEPLOYER', 'OPERATOR', 'CONTROLLER', 'AGENT', 'ADMIN'],
    within: 'nothing',
  },
};
