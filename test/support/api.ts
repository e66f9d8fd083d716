/** The public API as any client uses it, over HTTP and WebSocket, for tests of whole servers. */
import { createClient } from 'graphql-ws';
import { onTestFinished } from 'vitest';
import WebSocket from 'ws';
import { waitFor } from './wait-for.js';

type Fields = Record<string, unknown>;

export interface Answer {
  readonly data?: Fields | null;
  readonly errors?: readonly { readonly message: string; readonly extensions?: Fields }[];
}

/** One operation over HTTP. */
export async function ask(
  url: string,
  query: string,
  variables: object = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ query, variables }),
  });
  return (await response.json()) as Answer; // GraphQL over HTTP
}

/** The one root field of an operation that must succeed. */
export async function valueOf<T>(answer: Answer | Promise<Answer>): Promise<T> {
  const { data, errors } = await answer;
  const [value] = Object.values(data ?? {});
  if (errors !== undefined || value === undefined) throw new Error(JSON.stringify(errors ?? data));
  return value as T; // what the caller selected
}

/** One mutation `name(input)`, of whose result `selection` is selected. */
export const mutate = <T = Fields>(
  url: string,
  name: string,
  input: object,
  selection: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<T> => {
  const type = `${name.slice(0, 1).toUpperCase()}${name.slice(1)}Input`;
  const query = `mutation ($input: ${type}!) { ${name}(input: $input) { __typename ${selection} } }`;
  return valueOf<T>(ask(url, query, { input }, headers));
};

export interface Deployed {
  readonly id: string;
  readonly name: string;
  readonly version: number;
}

let made = 0;

/** A deployment in PENDING, with a runtime and a release of its own. */
export async function deploy(url: string): Promise<Deployed> {
  made += 1;
  const name = `shop-${made}`;
  const { runtime } = await mutate<{ runtime: { id: string } }>(
    url,
    'createRuntime',
    { name, type: 'external' },
    '... on CreateRuntimePayload { runtime { id } }',
  );
  const { release } = await mutate<{ release: { id: string } }>(
    url,
    'createRelease',
    { app: name, label: 'v1', resources: [{ name: 'web', serviceType: 'process' }] },
    '... on CreateReleasePayload { release { id } }',
  );
  const { deployment } = await mutate<{ deployment: Deployed }>(
    url,
    'applyDeployment',
    { name, app: name, runtime: { id: runtime.id }, release: { id: release.id } },
    '... on ApplyDeploymentPayload { deployment { id name version } }',
  );
  return deployment;
}

export interface PatchResult {
  readonly __typename: 'PatchDeploymentStatusPayload' | 'DeploymentVersionConflict' | 'InvalidTransition';
  readonly deployment?: { readonly version: number; readonly status: { readonly phase: string } };
  /** Of a conflict. */
  readonly currentVersion?: number;
  readonly current?: { readonly version: number; readonly status: { readonly phase: string } };
}

export const patchStatus = (
  url: string,
  input: {
    readonly id: string;
    readonly expectedVersion: number;
    readonly phase?: string;
    readonly conditions?: readonly object[];
  },
): Promise<PatchResult> =>
  mutate<PatchResult>(
    url,
    'patchDeploymentStatus',
    input,
    `... on PatchDeploymentStatusPayload { deployment { version status { phase } } }
     ... on DeploymentVersionConflict { currentVersion current { version status { phase } } }`,
  );

export interface Watching<Event> {
  /** In the order of their coming. */
  readonly events: readonly Event[];
  /** Errors of the operation. */
  readonly errors: readonly unknown[];
  /** Waits until an event that came, or comes, fits. */
  seen(fits: (event: Event) => boolean, what: string): Promise<Event>;
}

/** One subscription on a socket of its own, until the test ends. */
export function watch<Event>(
  url: string,
  query: string,
  variables: Record<string, unknown> = {},
): Watching<Event> {
  const events: Event[] = [];
  const errors: unknown[] = [];
  const client = createClient({
    url: `${url.replace('http', 'ws')}/graphql`,
    webSocketImpl: WebSocket,
    retryAttempts: 0,
  });
  onTestFinished(() => void client.dispose());
  client.subscribe<Record<string, Event>>(
    { query, variables },
    {
      next({ data, errors: failed }) {
        if (failed) errors.push(...failed);
        const [event] = Object.values(data ?? {});
        if (event !== undefined) events.push(event);
      },
      error: (error) => errors.push(error),
      complete: () => undefined,
    },
  );
  return {
    events,
    errors,
    seen: (fits, what) =>
      waitFor(() => {
        if (errors.length > 0) throw new Error(JSON.stringify(errors));
        return events.find(fits);
      }, what),
  };
}
