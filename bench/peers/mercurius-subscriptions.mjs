/** Mercurius with jit, and its own publish and subscribe in memory. */
import fastify from 'fastify';
import mercurius from 'mercurius';

import { CHANGE_PATH, nextPhaseChange, TOPIC } from './support/phases.mjs';
import { SDL } from './support/sdl.mjs';
import { KEEP_ALIVE_MS, serving } from './support/setting.mjs';

const app = fastify({ keepAliveTimeout: KEEP_ALIVE_MS });
await app.register(mercurius, {
  schema: SDL,
  resolvers: {
    Subscription: {
      deploymentPhaseChanged: { subscribe: (_root, _args, { pubsub }) => pubsub.subscribe(TOPIC) },
    },
  },
  subscription: true,
  jit: 1,
});
// The change maker posts nothing.
app.addContentTypeParser('application/json', (_request, payload, done) => {
  payload.resume();
  done(null, undefined);
});
app.post(CHANGE_PATH, async () => {
  await app.graphql.pubsub.publish({
    topic: TOPIC,
    payload: { deploymentPhaseChanged: nextPhaseChange() },
  });
  return {};
});
serving(`${await app.listen({ host: '127.0.0.1', port: 0 })}/graphql`);
