/** The real server, as `npm start` runs it, on a database of its own. */
import { startServerProcess, type ServerProcess } from '../../test/support/server.js';
import type { TestDatabase } from '../../test/support/test-server.js';
import type { Closing } from './closing.js';

/** Far above what a run opens, and no sweep that would write while something is measured. */
const SETTINGS = {
  SLIPWAY_LOG_LEVEL: 'warn',
  SLIPWAY_MAX_SOCKETS_LOOPBACK: '10000',
  SLIPWAY_HEARTBEAT_TIMEOUT_SECONDS: '86400',
};

const PROFILED = { NODE_OPTIONS: `--import ${new URL('profiler.mjs', import.meta.url).href}` };

export async function startServer(
  closing: Closing,
  database: TestDatabase,
  profile: boolean,
): Promise<ServerProcess & { readonly graphql: string }> {
  const server = await startServerProcess({
    databaseUrl: database.url,
    env: { ...SETTINGS, ...(profile ? PROFILED : {}) },
  });
  let stopping = false;
  const stop = () => {
    stopping = true;
    return server.stop();
  };
  closing.add(stop);
  void server.exited.then(({ code, signal }) => {
    if (!stopping) process.stderr.write(`The server ended (${code ?? signal}): ${server.output.stderr}\n`);
  });
  return { ...server, stop, graphql: `${server.url}/graphql` };
}
