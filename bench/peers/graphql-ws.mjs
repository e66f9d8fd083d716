/** graphql-ws as its guide has it, on `ws`, with graphql-js for execution. */
import { buildSchema } from 'graphql';
import { useServer } from 'graphql-ws/use/ws';
import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';

import { phasePubSub, withChanges } from './support/phases.mjs';
import { SDL } from './support/sdl.mjs';
import { listen } from './support/setting.mjs';

const { subscribe, publish } = phasePubSub();
const schema = buildSchema(SDL);
const field = schema.getSubscriptionType().getFields().deploymentPhaseChanged;
field.subscribe = subscribe;
field.resolve = (change) => change;

const server = createServer(withChanges(publish, (_request, response) => response.writeHead(404).end()));
useServer({ schema }, new WebSocketServer({ server, path: '/graphql' }));
await listen(server);
