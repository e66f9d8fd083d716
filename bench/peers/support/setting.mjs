/** How a peer is told what to serve, and tells where it does. It ends with the benchmark. */
import { once } from 'node:events';

export const KEEP_ALIVE_MS = 600_000;

/** What `startPeer` gave: `databaseUrl`, `poolSize` and the peer's own. */
export const setting = JSON.parse(process.argv[2]);

process.on('disconnect', () => process.exit(0));

/** Where GraphQL is answered: `http://127.0.0.1:4000/graphql`. */
export function serving(url) {
  process.send({ url });
}

/** Connections wait while other contenders take their turns. */
export async function listen(server, path = '/graphql') {
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  serving(`http://127.0.0.1:${server.address().port}${path}`);
}
