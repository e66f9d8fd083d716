import { createClient } from 'graphql-ws';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import WebSocket from 'ws';
import { ask } from '../../support/api.js';
import { createDatabase, withClient, type TestDatabase } from '../../support/database.js';
import { openEventStream } from '../../support/event-stream.js';
import { waitFor } from '../../support/wait-for.js';
import { logLines, served } from './served.js';

const TOKEN = `slp_bootstrap${'T'.repeat(40)}`;
const GUESS = `slp_guess${'G'.repeat(40)}`;
/** Stands in every body, variable, header and query string that is sent. */
const MARK = 'marked-by-the-client';

describe('the log of a server, at its most talkative', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createDatabase();
  });
  afterAll(() => database.drop());

  it('is JSON, finds requests by their ids, and holds no token and nothing that clients sent', async () => {
    const server = await served({
      databaseUrl: database.url,
      env: { SLIPWAY_LOG_LEVEL: 'trace', SLIPWAY_AUTH: 'tokens', SLIPWAY_BOOTSTRAP_TOKEN: TOKEN },
    });
    const bearer = { authorization: `Bearer ${TOKEN}` };
    const byName =
      'query ($name: String!) { deployments(filter: { name: { equals: $name } }) { nodes { id } } }';
    const good = await ask(
      server.url,
      byName,
      { name: MARK },
      { ...bearer, 'x-request-id': 'request-good-1' },
    );
    expect(good.errors).toBeUndefined();
    expect((await ask(server.url, '{ head }', {}, { authorization: `Bearer ${GUESS}` })).errors).toHaveLength(
      1,
    );
    expect((await ask(server.url, `{ ${MARK.replaceAll('-', '_')} }`, {}, bearer)).errors).toHaveLength(1);
    await fetch(`${server.url}/${MARK}?token=${GUESS}`);
    await fetch(`${server.url}/graphql?query=${encodeURIComponent(`{ head } # ${MARK}`)}`, {
      headers: bearer,
    });
    await fetch(`${server.url}/graphql`, { method: 'POST', headers: bearer, body: MARK });
    const stream = await openEventStream(
      `${server.url}/graphql`,
      { query: `subscription { watchDeployments { __typename } } # ${MARK}` },
      { headers: bearer },
    );
    await stream.next();
    stream.close();
    for (const token of [TOKEN, GUESS]) {
      let ended = false;
      const client = createClient({
        url: `${server.url.replace('http', 'ws')}/graphql`,
        webSocketImpl: WebSocket,
        retryAttempts: 0,
        connectionParams: { authorization: `Bearer ${token}`, note: MARK },
      });
      onTestFinished(() => void client.dispose());
      const end = () => {
        ended = true;
      };
      client.subscribe(
        { query: 'subscription { watchDeployments { __typename } }' },
        { next: end, error: end, complete: end },
      );
      await waitFor(() => ended, 'the socket was answered');
    }

    // A bug, or a database that somebody broke: the answer has the id, the log the cause.
    await withClient(database.connection, (client) => client.query('alter table deployment rename to gone'));
    const bad = await ask(server.url, byName, { name: MARK }, { ...bearer, 'x-request-id': 'request-bad-1' });
    expect(bad.errors).toMatchObject([{ extensions: { code: 'INTERNAL', requestId: 'request-bad-1' } }]);
    expect(await server.stop()).toMatchObject({ code: 0 });

    const lines = logLines(server);
    const of = (requestId: string) => lines.filter((line) => line['requestId'] === requestId);
    expect(of('request-good-1').map(({ msg }) => msg)).toEqual(['operation', 'request']);
    expect(of('request-bad-1')).toContainEqual(
      expect.objectContaining({ level: 50, msg: 'operation failed', err: expect.anything() }),
    );
    for (const line of lines) expect(line['time']).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    for (const secret of [TOKEN, GUESS, MARK, MARK.replaceAll('-', '_')]) {
      expect(server.output.stderr + server.output.stdout).not.toContain(secret);
    }
  });

  it('holds no password of the database', async () => {
    const url = new URL(database.url);
    url.password = 'hunter2-is-no-password';
    const server = await served({ databaseUrl: url.href, env: { SLIPWAY_LOG_LEVEL: 'trace' } });
    expect(await server.stop()).toMatchObject({ code: 0 });
    expect(logLines(server)[0]).toMatchObject({ msg: 'Starting' });
    expect(server.output.stderr + server.output.stdout).not.toContain('hunter2');
  });
});
