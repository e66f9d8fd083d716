import { lexicographicSortSchema, printSchema, type GraphQLSchema } from 'graphql';

import { systemClock } from '../kernel/clock.js';
import { buildGraph, type GraphDeps } from './assemble.js';

/** The contract as text: the built schema, sorted. It is committed as `schema.graphql`, and a test compares them. */
export function printedSchema(): Promise<string> {
  return Promise.resolve(`${printSchema(lexicographicSortSchema(unboundSchema()))}\n`);
}

/** The schema with nothing behind it: to be printed or walked over, not to be executed. */
export function unboundSchema(): GraphQLSchema {
  return buildGraph(unresolvable);
}

/** A schema can be built from parts that its resolvers could not use. */
const unresolvable: GraphDeps = {
  database: { prisma: { $connect: () => Promise.reject(new Error('this schema is only printed')) } },
  reads: absent('reads'),
  feed: absent('feed'),
  clock: systemClock,
  server: {
    version: '',
    accessControl: false,
    runtimeTypes: [],
    heartbeatIntervalSeconds: 20,
    heartbeatTimeoutSeconds: 60,
    agentProtocol: { minimum: 0, current: 0 },
  },
  commands: {
    deployments: absent('deployments'),
    runtimes: absent('runtimes'),
    releases: absent('releases'),
    agents: absent('agents'),
    tokens: absent('tokens'),
  },
};

function absent<T extends object>(part: string): T {
  // Nothing of it is there, and whoever reaches for it is told.
  const nothing = {} as T;
  return new Proxy(nothing, {
    get: (_target, name) => {
      throw new Error(`${part}.${String(name)}: this schema is only printed`);
    },
  });
}
