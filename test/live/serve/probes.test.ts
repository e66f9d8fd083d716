import { join } from 'node:path';
import { chownSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { silentLog } from '../../../src/kernel/log.js';
import { startEmbedded } from '../../../src/store/embedded.js';
import { ask, deploy, patchStatus, watch } from '../../support/api.js';
import { createDatabase, makeTestFolder } from '../../support/database.js';
import { processesIn } from '../../support/run-folder.js';
import { waitFor } from '../../support/wait-for.js';
import { probe, refused, served } from './served.js';

const NOBODY = 65_534;

describe('a server whose PostgreSQL goes and comes back', () => {
  it('lives on, says that it is not ready, and serves again, streams included', async () => {
    const dataDir = join(makeTestFolder('away'), 'database');
    const start = () => startEmbedded({ dataDir, log: silentLog, listen: 'tcp', settings: { fsync: 'off' } });
    let postgres = await start();
    onTestFinished(() => postgres.stop());
    const { host, port, user, password = '', database } = postgres.connection;
    const server = await served({
      databaseUrl: `postgresql://${user}:${encodeURIComponent(password)}@${host}:${port}/${database}`,
    });
    const { id, version } = await deploy(server.url);
    const events = watch<{ to: string }>(server.url, 'subscription { deploymentPhaseChanged { to } }');
    const board = watch<{ __typename: string }>(
      server.url,
      'subscription { watchDeployments { __typename } }',
    );
    await board.seen(({ __typename }) => __typename === 'SnapshotEnd', 'the snapshot');
    expect(await probe(server, '/readyz')).toBe('200 ready');

    await postgres.stop();
    await waitFor(async () => (await probe(server, '/readyz')) !== '200 ready', 'it is not ready');
    expect(await probe(server, '/readyz')).toMatch(/^503 not ready: (database|feed|database, feed)$/);
    expect(await probe(server, '/livez')).toBe('200 live');
    const answer = await ask(server.url, '{ deployments { nodes { id } } }');
    expect(answer.errors).toMatchObject([{ extensions: { code: 'UNAVAILABLE' } }]);
    expect(JSON.stringify(answer)).not.toMatch(/ECONNREFUSED|127\.0\.0\.1|slipway_read|password/i);

    postgres = await start();
    await waitFor(async () => (await probe(server, '/readyz')) === '200 ready', 'it is ready again');
    const patched = await patchStatus(server.url, { id, expectedVersion: version, phase: 'INITIAL_SETUP' });
    expect(patched.deployment?.version).toBe(version + 1);
    await events.seen(
      ({ to }) => to === 'INITIAL_SETUP',
      'the phase, on the stream that was open all the time',
    );
    expect(await server.stop()).toMatchObject({ code: 0 });
  });
});

describe('/metrics', () => {
  it('counts what was done, in the words of Prometheus', async () => {
    const database = await createDatabase();
    const server = await served({ databaseUrl: database.url });
    onTestFinished(async () => {
      server.kill('SIGKILL');
      await database.drop();
    });
    const { id, version } = await deploy(server.url);
    const events = watch(server.url, 'subscription { watchDeployments { __typename } }');
    await events.seen(() => true, 'an event');
    const conditions = [{ type: 'Ready', status: 'TRUE', reason: 'Up' }];
    await patchStatus(server.url, { id, expectedVersion: version, phase: 'INITIAL_SETUP', conditions });
    await patchStatus(server.url, { id, expectedVersion: version, phase: 'PROVISIONING' });
    await waitFor(() => events.events.length >= 3, 'the change came');

    const response = await fetch(`${server.url}/metrics`);
    expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
    const text = await response.text();
    const value = (sample: string) => {
      const line = text.split('\n').find((candidate) => candidate.startsWith(`${sample} `));
      return line === undefined ? undefined : Number(line.slice(sample.length));
    };
    expect(value('slipway_operations_total{transport="http",kind="mutation",outcome="ok"}')).toBe(5);
    expect(value('slipway_failures_total{kind="VersionConflict"}')).toBe(1);
    expect(value('slipway_subscriptions')).toBe(1);
    expect(value('slipway_connections')).toBe(1);
    expect(value('slipway_feed_streams')).toBe(1);
    expect(value('slipway_feed_pending_items')).toBe(0);
    expect(value('slipway_feed_bad_rows')).toBe(0);
    expect(value('slipway_commit_to_send_seconds_count')).toBe(1);
    expect(value('slipway_feed_changes')).toBe(5);
    expect(value('process_resident_memory_bytes')).toBeGreaterThan(0);
    expect(value('nodejs_eventloop_lag_p99_seconds')).toBeGreaterThanOrEqual(0);
    for (const line of text.split('\n').filter((candidate) => candidate !== '')) {
      expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|\w+(\{[^}]*\})? (-?[\d.e+-]+|NaN|\+Inf))$/);
    }
  });
});

describe('a server of an ordinary user', () => {
  it('starts with the embedded database and stops it; a port of the system is not for it', async () => {
    const dataDir = makeTestFolder('user');
    const as = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : undefined;
    if (as) chownSync(dataDir, as.uid, as.gid);
    const server = await served({ env: { SLIPWAY_DATA_DIR: dataDir }, as });
    expect(await probe(server, '/readyz')).toBe('200 ready');
    const { message } = await refused({ env: { SLIPWAY_DATA_DIR: dataDir, SLIPWAY_PORT: '1' }, as });
    expect(message).toBe(
      'Cannot listen on 127.0.0.1:1: this user may not open this port. Set SLIPWAY_PORT above 1023.',
    );
    expect(await server.stop()).toMatchObject({ code: 0 });
    expect(processesIn(dataDir)).toEqual([]);
  });
});
