/** Apollo Server's own standalone server with Pothos and Prisma; its document store is on by default. */
import { ApolloServer } from '@apollo/server';
import { startStandaloneServer } from '@apollo/server/standalone';

import { pothosSchema } from './support/pothos-schema.mjs';
import { serving, setting } from './support/setting.mjs';

const server = new ApolloServer({ schema: pothosSchema(setting), introspection: false });
const { url } = await startStandaloneServer(server, { listen: { host: '127.0.0.1', port: 0 } });
serving(url);
