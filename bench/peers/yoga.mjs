/** GraphQL Yoga with Pothos and Prisma; parse and validation caches are on by default. */
import { createYoga } from 'graphql-yoga';
import { createServer } from 'node:http';

import { pothosSchema } from './support/pothos-schema.mjs';
import { listen, setting } from './support/setting.mjs';

const yoga = createYoga({
  schema: pothosSchema(setting),
  logging: false,
  graphiql: false,
  landingPage: false,
});
await listen(createServer(yoga));
