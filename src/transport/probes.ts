import type { ServerResponse } from 'node:http';

import type { Registry } from 'prom-client';

/**
 * What orchestrators and Prometheus ask. `/livez` says that the event loop turns and nothing else; `/readyz` that a
 * client sent here would be served: database, migrations and feed current, and no drain begun.
 */
export interface ReadinessCheck {
  readonly name: string;
  /** Resolves to true when well. A rejection or an answer later than `READINESS_MS` is a no. */
  well(): boolean | Promise<boolean>;
}

const READINESS_MS = 2_000;

export interface Probes {
  live(response: ServerResponse): void;
  ready(response: ServerResponse): Promise<void>;
  metrics(response: ServerResponse): Promise<void>;
}

export interface ProbeDeps {
  readonly checks: readonly ReadinessCheck[];
  readonly isDraining: () => boolean;
  readonly registry: Registry;
  readonly after: (ms: number, run: () => void) => () => void;
}

export function createProbes(deps: ProbeDeps): Probes {
  const within = (check: ReadinessCheck) =>
    new Promise<boolean>((resolve) => {
      const cancel = deps.after(READINESS_MS, () => resolve(false));
      const answer = (well: boolean) => {
        cancel();
        resolve(well);
      };
      Promise.resolve()
        .then(() => check.well())
        .then(answer, () => answer(false));
    });

  return {
    live: (response) => text(response, 200, 'live\n'),
    async ready(response) {
      if (deps.isDraining()) return text(response, 503, 'not ready: draining\n');
      const answers = await Promise.all(
        deps.checks.map(async (check) => ((await within(check)) ? [] : [check.name])),
      );
      const unwell = answers.flat();
      if (unwell.length > 0) return text(response, 503, `not ready: ${unwell.join(', ')}\n`);
      text(response, 200, 'ready\n');
    },
    async metrics(response) {
      const body = await deps.registry.metrics();
      response
        .writeHead(200, { 'content-type': deps.registry.contentType, 'cache-control': 'no-store' })
        .end(body);
    },
  };
}

function text(response: ServerResponse, status: number, body: string): void {
  response
    .writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' })
    .end(body);
}
