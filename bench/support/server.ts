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

/** Modules of this folder that run in the server's process before it. */
function importing(modules: readonly string[]): Readonly<Record<string, string>> {
  const options = modules.map((module) => `--import ${new URL(module, import.meta.url).href}`);
  return modules.length === 0 ? {} : { NODE_OPTIONS: options.join(' ') };
}

export async function startServer(
  closing: Closing,
  database: TestDatabase,
  { profile = false, collects = false }: { readonly profile?: boolean; readonly collects?: boolean },
): Promise<ServerProcess & { readonly graphql: string }> {
  const server = await startServerProcess({
    databaseUrl: database.url,
    env: {
      ...SETTINGS,
      ...importing([...(profile ? ['profiler.mjs'] : []), ...(collects ? ['collector.mjs'] : [])]),
    },
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
