import type { GraphQLSchema } from 'graphql';

import { createBuilder } from './builder.js';
import { addFailureTypes } from './failure-types.js';
import type { Graph, GraphDeps } from './graph.js';
import { addObjectTypes } from './object-types.js';

/** Builds the schema from every domain's part: the only importer of `schema.ts` files. */
export function buildGraph(deps: GraphDeps): GraphQLSchema {
  const builder = createBuilder(deps);
  const types = addObjectTypes(builder);
  const graph: Graph = { builder, types, reads: deps.reads, feed: deps.feed };
  addFailureTypes(builder, types);
  builder.queryField('head', (t) =>
    t.field({
      type: 'ChangeCursor',
      description:
        'The place of now in the change log: a subscription `after` it sees what is committed from now on.',
      resolve: () => graph.feed.head(),
    }),
  );
  return builder.toSchema();
}
