/**
 * A program: graphql-ws with the pubsub of GraphQL Yoga, as their documentations show them, and a publisher. Prints the
 * address of its socket. Started by a test that shows how one stalled reader ends it.
 */
import { buildSchema } from 'graphql';
import { createPubSub } from 'graphql-yoga';

import { startStockServer } from './stock-server.js';

const pubsub = createPubSub<{ events: [string] }>();
const schema = buildSchema('type Query { a: Int } type Subscription { events: String! }');
const field = schema.getSubscriptionType()?.getFields()['events'];
if (!field) throw new Error('no field');
field.subscribe = () => pubsub.subscribe('events');
field.resolve = (payload: unknown) => payload;

const { wsUrl } = await startStockServer(schema, {});
process.stdout.write(`${wsUrl}\n`);
setInterval(() => {
  for (let n = 0; n < 20; n++) pubsub.publish('events', 'x'.repeat(64 * 1024));
}, 5);
