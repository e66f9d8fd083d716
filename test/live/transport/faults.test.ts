import { GraphQLError } from 'graphql';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { createLogger } from '../../../src/cli/serve/logger.js';
import { StreamEnded } from '../../../src/changes/feed.js';
import { openEventStream } from '../../support/event-stream.js';
import { openAcknowledged, subscribe } from '../../support/raw-socket.js';
import { startTestTransport, type GraphQLBody, type TestTransport } from '../../support/transport-server.js';
import { waitFor } from '../../support/wait-for.js';

/** Nothing of these may leave, neither to a client nor into the log. */
const MARKS = {
  dsn: 'postgresql://owner:hunter2@10.1.2.3:5432/slipway',
  token: 'slp_4f9c2ab81d7e6035',
  statement: "select hash from token_secret where id = 'tok_1'",
  detail: 'Key (hash)=(9b74c9897bac770ffc029102a200c5de) already exists.',
};
const LEAKS = /hunter2|10\.1\.2\.3|slp_4f9c|token_secret|9b74c989/;
const PATHS = new RegExp(process.cwd());

const FAULTS: Readonly<Record<string, () => unknown>> = {
  'an address with a password': () => new Error(`connect ${MARKS.dsn} failed`),
  'a token': () => new TypeError(`bad credential ${MARKS.token}`),
  'a statement': () => new Error(`could not run: ${MARKS.statement}`),
  'an error of the driver': () =>
    Object.assign(new Error('duplicate key value'), {
      code: '23505',
      detail: MARKS.detail,
      query: MARKS.statement,
      parameters: [MARKS.token],
    }),
  'a chain of causes': () =>
    new Error('outer', {
      cause: new Error(MARKS.dsn, {
        cause: Object.assign(new Error(MARKS.statement), { detail: MARKS.detail }),
      }),
    }),
  'several at once': () => new AggregateError([new Error(MARKS.dsn), new Error(MARKS.token)], 'all failed'),
  'a text': () => `thrown text ${MARKS.dsn}`,
  'an object': () => ({ password: 'hunter2', message: MARKS.dsn }),
  nothing: () => undefined,
  null: () => null,
  'an error of graphql-js': () => new GraphQLError(`Cannot represent ${MARKS.dsn}`),
  'an error with the code of somebody else': () =>
    new GraphQLError(MARKS.dsn, { extensions: { code: 'ECONNREFUSED', dsn: MARKS.dsn } }),
  'extensions that nobody allowed': () =>
    new GraphQLError('Not now.', { extensions: { code: 'RATE_LIMITED', dsn: MARKS.dsn, stack: 'at x' } }),
  'an end of the feed': () =>
    new StreamEnded('UNAVAILABLE', 'The feed has stopped.', 'c1', { cause: new Error(MARKS.dsn) }),
  'a database that is away': () =>
    Object.assign(new Error(`connect ECONNREFUSED ${MARKS.dsn}`), { code: 'ECONNREFUSED' }),
};

describe('faults behind the transports', () => {
  let server: TestTransport;
  let lines: string[];
  beforeAll(async () => {
    const log = createLogger({ level: 'trace', format: 'json', write: (line) => void lines.push(line) });
    lines = [];
    server = await startTestTransport({
      log,
      settings: { socketMutations: true },
      limits: { messagesBurst: 100_000 },
    });
  });
  beforeEach(() => {
    lines.length = 0;
  });
  afterEach(() => server.topics.a.end());
  afterAll(() => server.close());

  function check(answer: unknown): void {
    const text = JSON.stringify(answer);
    expect(text).not.toMatch(LEAKS);
    expect(text).not.toMatch(/ {4}at |node_modules|\.ts:|"stack"/);
    const logged = lines.join('\n');
    expect(logged).not.toMatch(LEAKS);
    expect(logged).not.toMatch(PATHS);
    for (const id of requestIds(answer)) expect(logged).toContain(id);
  }

  it.each(Object.keys(FAULTS))('in a resolver: %s', async (name) => {
    server.faults.set('n', FAULTS[name] ?? (() => undefined));
    const query = '{ node(id: "n") { id broken } }';
    const byHttp = (await server.post({ query })).body;
    expect(byHttp).toMatchObject({
      data: { node: { id: 'n', broken: null } },
      errors: [{ path: ['node', 'broken'] }],
    });
    check(byHttp);
    check(await (await openEventStream(server.url, { query })).next());
    const socket = await openAcknowledged(server.wsUrl);
    socket.send(subscribe('q', query));
    check(await socket.next('next'));
    socket.close();
  });

  it.each(Object.keys(FAULTS))('in a stream, at its opening and later: %s', async (name) => {
    const fault = FAULTS[name] ?? (() => undefined);
    server.faults.set('opening', fault);
    server.faults.set('event', fault);
    const query = 'subscription ($after: String) { watchDeployments(after: $after) { value broken } }';
    const socket = await openAcknowledged(server.wsUrl);
    socket.send(subscribe('opening', query, { after: 'opening' }));
    check(await socket.next('error'));
    check(await (await openEventStream(server.url, { query, variables: { after: 'opening' } })).next());

    socket.send(subscribe('later', query));
    const stream = await openEventStream(server.url, { query });
    await waitFor(() => server.topics.a.streams.size === 2, 'both are open');
    server.topics.a.publish(1);
    check(await socket.next('next')); // a field of an event fails; the stream goes on
    check(await stream.next());
    const thrown = fault();
    // A source rejects with errors; anything else it could throw was tried above.
    server.topics.a.end(thrown instanceof Error ? thrown : new Error(MARKS.dsn));
    check(await socket.next('error'));
    check(await stream.next());
    expect(socket.ws.readyState).toBe(socket.ws.OPEN);
    socket.close();
    await waitFor(() => server.transport.open.connections === 0, 'nothing is left');
  });

  it('in the check of credentials', async () => {
    const broken = await startTestTransport({
      log: createLogger({ level: 'trace', format: 'json', write: (line) => void lines.push(line) }),
      authenticate: () => Promise.reject(new Error(MARKS.dsn)),
    });
    const { status, body } = await broken.post({ query: '{ head }' });
    expect(status).toBe(500);
    check(body);
    await broken.close();
  });

  it('in what a client sends', async () => {
    const { body } = await server.post(
      { query: `{ head # ${MARKS.token}\n nothing }`, variables: { secret: MARKS.dsn } },
      { authorization: `Bearer ${MARKS.token}` },
    );
    expect(body.errors).toHaveLength(1);
    await fetch(`${server.url}/${MARKS.token}?query=${MARKS.token}`);
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.join('\n')).not.toMatch(LEAKS); // neither bodies, nor headers, nor addresses are logged
  });
});

function requestIds(answer: unknown): string[] {
  const errors =
    (answer as { data?: GraphQLBody; payload?: GraphQLBody; errors?: GraphQLBody['errors'] }) ?? {}; // one of the three shapes above
  const list =
    errors.errors ??
    errors.data?.errors ??
    errors.payload?.errors ??
    (Array.isArray(errors.payload) ? errors.payload : []);
  return (list as NonNullable<GraphQLBody['errors']>) // formatted errors in each
    .filter(({ extensions }) => extensions['code'] === 'INTERNAL')
    .map(({ extensions }) => String(extensions['requestId']));
}
