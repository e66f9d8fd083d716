/** GraphQL Yoga's event streams, with graphql-js for execution. */
import { createSchema, createYoga } from 'graphql-yoga';
import { createServer } from 'node:http';

import { phasePubSub, withChanges } from './support/phases.mjs';
import { SDL } from './support/sdl.mjs';
import { listen } from './support/setting.mjs';

const { subscribe, publish } = phasePubSub();
const yoga = createYoga({
  schema: createSchema({
    typeDefs: SDL,
    resolvers: { Subscription: { deploymentPhaseChanged: { subscribe, resolve: (change) => change } } },
  }),
  logging: false,
  graphiql: false,
  landingPage: false,
});
await listen(createServer(withChanges(publish, yoga)));
