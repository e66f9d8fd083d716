import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

/**
 * GraphiQL at the endpoint itself, for browsers that ask for HTML: the whole page from the package, no CDN, compressed
 * once on first use (9 MB become 2.5) and kept. Its subscriptions go by WebSocket on the same path.
 */
export interface GraphiQLPage {
  serve(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

const EXAMPLES = [
  `# Everything that is deployed, with where it runs. Press ▶ or Ctrl-Enter.
query Deployments {
  deployments(first: 20) {
    nodes {
      id
      namespace
      name
      app
      status {
        phase
        summary
      }
      runtime {
        name
        type
      }
    }
    pageInfo {
      hasNextPage
      endCursor
    }
  }
}
`,
  `# Every phase transition from now on, live. To miss nothing over a restart, pass the last \`cursor\` as \`after\`.
subscription DeploymentPhases {
  deploymentPhaseChanged {
    cursor
    at
    from
    to
    reason
    deployment {
      namespace
      name
      version
    }
  }
}
`,
  `# How every agent is doing, live: READY, CONGESTED, UNAVAILABLE.
subscription AgentHealth {
  agentHealthChanged {
    cursor
    at
    from
    to
    reason
    agent {
      name
      environment
      cordoned
    }
  }
}
`,
] as const;

const CONTENT_SECURITY = [
  "default-src 'self'",
  // The page is one file: its script, styles, fonts and workers are inline, data or blob.
  "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:",
  "style-src 'self' 'unsafe-inline'",
  "worker-src 'self' blob:",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self' ws: wss:",
  "frame-ancestors 'none'",
].join('; ');

export function createGraphiQL(path: string): GraphiQLPage {
  let page: Promise<{ readonly plain: Buffer; readonly packed: Buffer; readonly tag: string }> | undefined;

  async function render() {
    // Loaded on first use: 9 MB of text that a server without visitors never needs.
    const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql');
    const html = renderGraphiQL({
      title: 'Slipway',
      endpoint: path,
      subscriptionsProtocol: 'WS',
      defaultTabs: EXAMPLES.map((query) => ({ query })),
      defaultEditorToolsVisibility: false,
      schemaDescription: true,
      inputValueDeprecation: true,
    });
    const plain = Buffer.from(html);
    const packed = await promisify(gzip)(plain, { level: 6 });
    return { plain, packed, tag: `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"` };
  }

  return {
    async serve(request, response) {
      const { plain, packed, tag } = await (page ??= render());
      const headers = {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': CONTENT_SECURITY,
        'cache-control': 'no-cache', // ask again, and get 304
        etag: tag,
        vary: 'accept, accept-encoding',
      };
      if (request.headers['if-none-match'] === tag) {
        response.writeHead(304, headers).end();
        return;
      }
      const gzipped = /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''));
      const body = gzipped ? packed : plain;
      response.writeHead(200, {
        ...headers,
        ...(gzipped ? { 'content-encoding': 'gzip' } : {}),
        'content-length': body.length,
      });
      response.end(request.method === 'HEAD' ? undefined : body);
    },
  };
}
