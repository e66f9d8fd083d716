import type { ObjectKind } from '../kernel/ids.js';
import { PUBLIC_COLUMNS } from '../store/public-types.js';
import type { Builder } from './graph-types.js';

/**
 * The objects of the graph by name, before their domains give them fields: domains refer to each other's types both
 * ways (a deployment to its runtime, a runtime to its deployments), and none has to come first.
 */
export function addObjectTypes(builder: Builder) {
  const interfaces = [builder.nodeInterfaceRef()];
  return {
    Runtime: builder.prismaObject('Runtime', {
      select: PUBLIC_COLUMNS.Runtime,
      interfaces,
      description:
        'A registered place where deployments run: a type that says what drives it, a configuration, an environment.',
    }),
    Release: builder.prismaObject('Release', {
      select: PUBLIC_COLUMNS.Release,
      interfaces,
      description: 'An immutable description of what to run: an app, a label, the resources that make it up.',
    }),
    Deployment: builder.prismaObject('Deployment', {
      select: PUBLIC_COLUMNS.Deployment,
      interfaces,
      description: 'One app installed on one runtime: desired state in `spec`, observed state in `status`.',
    }),
    Agent: builder.prismaObject('Agent', {
      select: PUBLIC_COLUMNS.Agent,
      interfaces,
      description: 'A process in an environment that carries out work there and reports back.',
    }),
    Token: builder.prismaObject('Token', {
      select: PUBLIC_COLUMNS.Token,
      interfaces,
      description:
        'An API token: who may do what with it. What a client sends to prove it is shown once, when it is created.',
    }),
    Rollout: builder.prismaObject('Rollout', {
      select: PUBLIC_COLUMNS.Rollout,
      interfaces,
      description:
        'One attempt to change what a deployment runs. It has a phase while it is under way and an outcome when it ended, which never changes.',
    }),
  };
}

export const TYPE_OF_KIND = {
  RUNTIME: 'Runtime',
  RELEASE: 'Release',
  DEPLOYMENT: 'Deployment',
  AGENT: 'Agent',
  TOKEN: 'Token',
  ROLLOUT: 'Rollout',
} as const satisfies Record<ObjectKind, string>;

export type ObjectTypes = ReturnType<typeof addObjectTypes>;
