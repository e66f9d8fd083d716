/**
 * PostGraphile with its Amber preset: the schema that it makes of the database, whose JSON columns are whole values.
 * Prepared statements and plans are cached by default; without `pgSettings` it opens no transaction for a read.
 */
import './support/newer-builtins.mjs';

import { createServer } from 'node:http';
import { postgraphile } from 'postgraphile';
import { makePgService } from 'postgraphile/adaptors/pg';
import { grafserv } from 'postgraphile/grafserv/node';
import { PostGraphileAmberPreset } from 'postgraphile/presets/amber';

import { listen, setting } from './support/setting.mjs';

const instance = postgraphile({
  extends: [PostGraphileAmberPreset],
  pgServices: [
    makePgService({
      connectionString: setting.databaseUrl,
      schemas: ['public'],
      poolConfig: { max: setting.poolSize },
    }),
  ],
  grafserv: { graphiql: false, watch: false },
});
const server = createServer();
await instance.createServ(grafserv).addTo(server);
await listen(server);
