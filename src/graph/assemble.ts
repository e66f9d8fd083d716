import type { GraphQLSchema } from 'graphql';

import type { Feed } from '../changes/feed.js';
import { addAccessSchema } from '../access/schema.js';
import { addAgentSchema } from '../agents/schema.js';
import { addChangeSchema } from '../changes/schema.js';
import { addDeploymentSchema } from '../deployments/schema.js';
import type { Clock } from '../kernel/clock.js';
import type { PublicReads } from '../store/public-types.js';
import { addReleaseSchema } from '../releases/schema.js';
import { addRolloutSchema } from '../rollouts/schema.js';
import { addRuntimeSchema } from '../runtimes/schema.js';
import { createBuilder, type PrismaHandle } from './builder.js';
import { addChangeTypes } from './change-types.js';
import { addFailureTypes } from './failure-types.js';
import type { Graph } from './graph.js';
import { addNodeFields } from './node-fields.js';
import { addObjectTypes } from './object-types.js';
import { createReader } from './reading/reader.js';
import { addServerInfo, type ServerFacts } from './server-info.js';
import { addSharedTypes } from './shared-types.js';
import { addStreamTypes } from './stream-types.js';

/** What the graph is built from. Its resolvers reach the database through `reads` and through commands, never else. */
export interface GraphDeps {
  /** For Pothos alone. */
  readonly database: { readonly prisma: PrismaHandle };
  /** Every read of a resolver: `publicReads(database)`. */
  readonly reads: PublicReads;
  readonly feed: Feed;
  readonly clock: Clock;
  readonly server: ServerFacts;
  readonly commands: {
    readonly deployments: Parameters<typeof addDeploymentSchema>[1];
    readonly runtimes: Parameters<typeof addRuntimeSchema>[1];
    readonly releases: Parameters<typeof addReleaseSchema>[1];
    readonly agents: Parameters<typeof addAgentSchema>[1];
    readonly tokens: Parameters<typeof addAccessSchema>[1];
  };
}

/** Builds the schema from every domain's part: the only importer of `schema.ts` files. */
export function buildGraph(deps: GraphDeps): GraphQLSchema {
  const builder = createBuilder(deps);
  const graph: Graph = {
    builder,
    types: addObjectTypes(builder),
    shared: addSharedTypes(builder),
    streams: addStreamTypes(builder),
    changes: addChangeTypes(builder),
    reader: createReader(deps.reads),
    feed: deps.feed,
    clock: deps.clock,
  };
  addFailureTypes(builder, graph.types, graph.shared);
  addNodeFields(graph);
  addServerInfo(graph, deps.server);
  addChangeSchema(graph);
  addAccessSchema(graph, deps.commands.tokens);
  addReleaseSchema(graph, deps.commands.releases);
  addRuntimeSchema(graph, deps.commands.runtimes);
  addAgentSchema(graph, deps.commands.agents);
  const { phase: rolloutPhase } = addRolloutSchema(graph);
  addDeploymentSchema(graph, deps.commands.deployments, rolloutPhase);
  return builder.toSchema();
}
