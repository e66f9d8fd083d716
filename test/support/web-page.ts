/** Pages for browser tests: a small site on an origin of its own, whose page carries our client as a browser gets it. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

export interface Site {
  /** `http://127.0.0.1:41234` */
  readonly origin: string;
  close(): Promise<void>;
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

let bundled: Promise<string> | undefined;

/** src/client/index.ts for a browser, as `globalThis.slipway`. Fails if it needs anything that a browser has not. */
function clientBundle(): Promise<string> {
  bundled ??= build({
    absWorkingDir: ROOT,
    entryPoints: ['src/client/index.ts'],
    bundle: true,
    write: false,
    platform: 'browser',
    format: 'iife',
    globalName: 'slipway',
    target: 'es2022',
    logLevel: 'silent',
  }).then(({ outputFiles: [file] }) => {
    if (!file) throw new Error('the bundle is empty');
    return file.text;
  });
  return bundled;
}

/** The page does nothing by itself: tests call `slipway` in it. */
export async function startSite(): Promise<Site> {
  const script = await clientBundle();
  const server = createServer((request, response) => {
    if (request.url === '/client.js') {
      response.writeHead(200, { 'content-type': 'text/javascript' }).end(script);
    } else {
      response.writeHead(200, { 'content-type': 'text/html' });
      response.end(
        '<!doctype html><title>A dashboard elsewhere</title><link rel="icon" href="data:,"><script src="/client.js"></script>',
      );
    }
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo; // it listens on TCP
  return {
    origin: `http://127.0.0.1:${port}`,
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
    },
  };
}
