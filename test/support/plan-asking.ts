/** How the guard of the plans asks a server, and what it has asked so far. */
import { createClient } from 'graphql-ws';
import type pg from 'pg';
import WebSocket from 'ws';

import { encodeCursor } from '../../src/kernel/cursor.js';
import { ask, mutate, valueOf } from './api.js';

export interface Asking {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}
/** Root fields, `Type.field`, that `cases` asks. */
const named = new Set<string>();
export const rootFieldsAsked = (): ReadonlySet<string> => named;

export async function query(
  asking: Asking,
  field: string,
  args: string,
  selection: string,
): Promise<unknown> {
  named.add(`Query.${field}`);
  const text = `{ ${field}${args === '' ? '' : `(${args})`} ${selection} }`;
  return valueOf(ask(asking.url, text, {}, asking.headers));
}

/** `selection` beside what every failure says. */
export async function change(
  asking: Asking,
  field: string,
  input: object,
  selection = '',
): Promise<Readonly<Record<string, Readonly<Record<string, unknown>>>>> {
  named.add(`Mutation.${field}`);
  return mutate(asking.url, field, input, `${selection} ... on Failure { code message }`, asking.headers);
}

/** The first event of a subscription. */
export function subscribed(asking: Asking, field: string, args: string): Promise<unknown> {
  named.add(`Subscription.${field}`);
  const client = createClient({
    url: `${asking.url.replace('http', 'ws')}/graphql`,
    webSocketImpl: WebSocket,
    retryAttempts: 0,
    connectionParams: asking.headers,
  });
  return new Promise((resolve, reject) => {
    client.subscribe(
      { query: `subscription { ${field}${args === '' ? '' : `(${args})`} { __typename } }` },
      {
        next: (result) =>
          result.errors ? reject(new Error(JSON.stringify(result.errors))) : resolve(result),
        error: (error) => reject(error instanceof Error ? error : new Error(JSON.stringify(error))),
        complete: () => resolve(undefined),
      },
    );
  }).finally(() => void client.dispose());
}

/** A token that sees these namespaces, as a header. */
export async function tenant(asking: Asking, namespaces: readonly string[]): Promise<Asking> {
  const input = { name: `tenant-${namespaces.join('-')}`, roles: ['VIEWER'], namespaces };
  const { secret } = await change(asking, 'createToken', input, '... on CreateTokenPayload { secret }');
  return { ...asking, headers: { authorization: `Bearer ${String(secret)}` } };
}

/** A cursor that lies so many changes back. */
export async function cursorBack(client: pg.Client, changes: number): Promise<string> {
  const { rows } = await client.query<{ epoch: string; xid: string }>(
    'SELECT (SELECT epoch FROM log_state), xid::text FROM change ORDER BY change.xid DESC OFFSET $1 LIMIT 1',
    [changes],
  );
  const [row] = rows;
  if (!row) throw new Error(`the log has no ${changes} changes`);
  return encodeCursor({ form: 'at', epoch: row.epoch, at: { xmax: BigInt(row.xid), xip: [] } });
}
