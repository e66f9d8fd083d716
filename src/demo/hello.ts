/**
 * The program that the demo deploys: a page and a health check, and nothing else. Takes its port as the first argument, or
 * a free one, and prints where it listens. Needs a moment until it is healthy, as real programs do.
 */
import { createServer } from 'node:http';
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const WARM_UP_MS = 400;

const page = (release: string): string => `<!doctype html>
<html lang="en">
  <head><meta charset="utf-8"><title>Hello from Slipway</title></head>
  <body><h1>Hello from Slipway</h1><p>This is release ${release.replace(/[^\w.+-]/g, '')}.</p></body>
</html>
`;

export function main([port = '0', release = 'unknown']: readonly string[]): void {
  let healthy = false;
  setTimeout(() => {
    healthy = true;
  }, WARM_UP_MS);
  const server = createServer((request, response) => {
    if (request.url === '/health') {
      response.writeHead(healthy ? 200 : 503, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ status: healthy ? 'ok' : 'starting' }));
    } else if (request.url === '/') {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
      response.end(page(release));
    } else {
      response.writeHead(404).end();
    }
  });
  server.listen(Number(port), '127.0.0.1', () => {
    const address = server.address();
    if (address !== null && typeof address === 'object') {
      process.stdout.write(`http://127.0.0.1:${address.port}\n`);
    }
  });
  // Whoever started it holds the other end: without a parent it would run for ever.
  process.stdin.on('end', () => process.exit(0)).resume();
  process.once('SIGTERM', () => server.close(() => process.exit(0)));
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  main(process.argv.slice(2));
}
