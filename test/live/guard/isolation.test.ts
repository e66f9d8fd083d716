import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { classKey, type Role } from '../../../src/access/actor.js';
import { loadConfig } from '../../../src/config/config.js';
import type { StreamDefinition } from '../../../src/graph/stream-field.js';
import { systemClock } from '../../../src/kernel/clock.js';
import { silentLog } from '../../../src/kernel/log.js';
import { nextOf } from '../../../src/kernel/tap.js';
import type { Slipway } from '../../../src/main.js';
import { createPipeline, type Pipeline } from '../../../src/transport/pipeline.js';
import { transportSettings } from '../../../src/transport/settings.js';
import { createSharedExecution } from '../../../src/transport/shared-execution.js';
import { someone } from '../../support/callers.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { startTestGraph } from '../../support/graph.js';
import { openAcknowledged, subscribe, type RawSocket } from '../../support/raw-socket.js';
import { startTestServer } from '../../support/server.js';
import {
  absentRefs,
  findForeign,
  marked,
  seedTenants,
  TENANTS,
  type Refs,
  type Tenants,
} from '../../support/tenants.js';
import { tokenBeside } from '../../support/tokens.js';
import { waitFor } from '../../support/wait-for.js';
import { operations, SNAPSHOT, UNFILTERED, type Operation, type Rendered } from './tenant-operations.js';

const BATCH = 20;
/** With the twins about 3,000 requests. */
const BATCHES = 100;
const OPEN_AT_MOST = 3;

interface Sender {
  readonly secret: string;
  readonly home: number;
  readonly allowed: ReadonlySet<number>;
  readonly socket: RawSocket;
  /** What each subscription was asked. */
  readonly asked: Map<string, string>;
  readonly open: string[];
  scanned: number;
}

/**
 * ADMIN is left out: agents and tokens stand outside namespaces, and an ADMIN reads all tokens, the names of their
 * namespaces included.
 */
const ROLES: readonly Role[] = ['VIEWER', 'DEPLOYER', 'OPERATOR', 'CONTROLLER'];

describe('tenants on one server', () => {
  let test: TestDatabase;
  let server: Slipway;
  let tenants: Tenants;
  const senders: Sender[] = [];
  const cursors = { page: [] as string[], change: [] as string[] };

  beforeAll(async () => {
    test = await createDatabase();
    const env = {
      SLIPWAY_AUTH: 'tokens',
      SLIPWAY_BOOTSTRAP_TOKEN: `slp_${'x'.repeat(40)}`,
      SLIPWAY_SOCKET_MESSAGES_PER_SECOND: '10000',
      SLIPWAY_SOCKET_MESSAGE_BURST: '100000',
    };
    server = await startTestServer({ databaseUrl: test.url, env });
    tenants = await seedTenants(server.store.database);
    for (let home = 0; home < TENANTS; home += 1) {
      for (const role of ROLES) {
        // The wide one first: whoever comes first is whom a shared execution runs for.
        if (role === 'VIEWER' || role === 'CONTROLLER') {
          await addSender(role, home, [home, (home + 1) % TENANTS]);
        }
        await addSender(role, home, [home]);
      }
    }
    await waitFor(() => server.feed.stats.attached === senders.length, 'all streams are open');
    // At once, so that snapshots are asked for within the time in which equal ones share a read.
    for (const { socket } of senders) socket.send(subscribe('snapshot', SNAPSHOT, { flag: true }));
    const ended = ({ socket }: Sender) => JSON.stringify(socket.messages).includes('SnapshotEnd');
    await waitFor(() => senders.every(ended), 'the snapshots came');
    for (const { socket } of senders) socket.send({ id: 'snapshot', type: 'complete' });
  });
  afterAll(async () => {
    await server.close();
    await test.drop();
  });

  async function addSender(role: Role, home: number, allowed: readonly number[]): Promise<void> {
    const rights = { roles: [role], namespaces: allowed.map(marked) };
    const { secret } = await tokenBeside(server.store.database, rights);
    const socket = await openAcknowledged(`${server.url.replace('http', 'ws')}/graphql`, secret);
    socket.send(subscribe('unfiltered', UNFILTERED));
    const asked = new Map([['unfiltered', '']]);
    senders.push({ secret, home, allowed: new Set(allowed), socket, asked, open: [], scanned: 0 });
  }

  const at = <T>(list: readonly T[], n: number): T | undefined => list[n % Math.max(1, list.length)];

  async function ask(sender: Sender, request: Rendered): Promise<string> {
    const response = await fetch(`${server.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...bearer(sender) },
      body: JSON.stringify(request),
    });
    return response.text();
  }

  /** What leaked to the sender; empty if all is well. */
  async function perform(operation: Operation): Promise<() => string[]> {
    const sender = at(senders, operation.sender);
    if (!sender) throw new Error('no senders');
    if (operation.name === 'move') {
      await tenants.move(operation.target, operation.pick);
      server.feed.wake();
      return () => [];
    }
    const seen = {
      page: at(cursors.page, operation.cursor) ?? null,
      change: at(cursors.change, operation.cursor) ?? null,
    };
    const rendered = (refs: Refs): Rendered => {
      const { query, variables } = operation.render(refs, seen);
      const home = JSON.stringify(variables).replaceAll('"SENDER"', `"${marked(sender.home)}"`);
      return { query, variables: JSON.parse(home) as Rendered['variables'] };
    };
    const refs = tenants.refs(operation.target, operation.pick);
    const request = rendered(refs);
    const asked = JSON.stringify(request.variables);
    if (operation.name === 'subscribe') {
      const id = `s${sender.asked.size}`;
      sender.asked.set(id, asked);
      sender.open.push(id);
      sender.socket.send(subscribe(id, request.query, request.variables));
      if (sender.open.length > OPEN_AT_MOST) {
        sender.socket.send({ id: sender.open.shift(), type: 'complete' });
      }
      return () => [];
    }
    const answer = await ask(sender, request);
    expect(answer).not.toContain('GRAPHQL_VALIDATION_FAILED');
    for (const kind of ['page', 'change'] as const) {
      for (const [, cursor = ''] of answer.matchAll(new RegExp(`"${kind}At":"([^"]+)"`, 'g'))) {
        cursors[kind].push(cursor);
      }
      cursors[kind].splice(0, cursors[kind].length - 500);
    }
    const told: string[] = [];
    if (operation.twin && !sender.allowed.has(operation.target)) {
      const absent = absentRefs();
      const twin = anonymous(absent, await ask(sender, rendered(absent)));
      if (twin !== anonymous(refs, answer)) {
        told.push(`${operation.name}: what is another's is told from what is not: ${answer} / ${twin}`);
      }
    }
    return () => [
      ...told,
      ...findForeign(tenants, sender.allowed, asked, answer).map(
        (found) => `${operation.name} of ${asked} told ${found}: ${answer}`,
      ),
    ];
  }

  /** In the frames that came since the last time, up to now. */
  function frames(): (() => string[])[] {
    return senders.map((sender) => {
      const { messages } = sender.socket;
      const fresh = messages.slice(sender.scanned);
      sender.scanned = messages.length;
      return () =>
        fresh.flatMap((message) => {
          const text = JSON.stringify(message);
          const asked = sender.asked.get(message.id ?? '') ?? '';
          return findForeign(tenants, sender.allowed, asked, text).map(
            (found) => `an event told ${found}: ${text}`,
          );
        });
    });
  }

  it('see nothing of each other in any answer, event, error or cursor', async () => {
    let performed = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(operations, { minLength: BATCH, maxLength: BATCH }), async (batch) => {
        const leaks = [...(await Promise.all(batch.map(perform))), ...frames()];
        await tenants.refresh();
        expect(leaks.flatMap((leak) => leak())).toEqual([]);
        performed += batch.length;
      }),
      { numRuns: BATCHES, endOnFailure: true },
    );
    expect(performed).toBe(BATCH * BATCHES);
    await lastEvents();
    await tenants.refresh();
    expect(frames().flatMap((leak) => leak())).toEqual([]);
    await expectSharing();
  }, 180_000);

  /** Until each stream without a filter told the last move of each tenant that it may see. */
  async function lastEvents(): Promise<void> {
    for (let tenant = 0; tenant < TENANTS; tenant += 1) {
      const { id, version } = await tenants.move(tenant, 1);
      server.feed.wake();
      const wanted = (message: object | undefined) =>
        [`"version":${version},`, id].every((part) => JSON.stringify(message ?? {}).includes(part));
      for (const { socket, allowed } of senders) {
        if (allowed.has(tenant)) {
          await waitFor(() => socket.messages.slice(-20).some(wanted), 'the last event came');
        }
      }
    }
  }

  const bearer = (sender: Sender | undefined) => ({ authorization: `Bearer ${sender?.secret}` });

  /** Streams that shared nothing would prove nothing of what is shared. */
  async function expectSharing(): Promise<void> {
    const metrics = await (await fetch(`${server.url}/metrics`, { headers: bearer(senders[0]) })).text();
    const count = (name: string) => Number(new RegExp(`^${name} (\\d+)`, 'm').exec(metrics)?.[1]);
    expect(count('slipway_events_sent_total')).toBeGreaterThan(1_000);
    expect(count('slipway_event_executions_total')).toBeLessThan(count('slipway_events_sent_total') * 0.9);
  }
});

/** Texts without what was named, so that answers about two objects can be compared. */
function anonymous(refs: Refs, text: string): string {
  // A namespace begins the other names.
  const names = Object.entries(refs).sort(([, one], [, other]) => other.length - one.length);
  return names.reduce((rest, [name, value]) => rest.replaceAll(value, `<${name}>`), text);
}

describe('subscribers who share executions', () => {
  const namespaces = fc.uniqueArray(fc.constantFrom('a', 'b', 'a,b', 'c"', '*'), { maxLength: 3 });

  it('are of one class only with the same namespaces, in whatever order', () => {
    fc.assert(
      fc.property(namespaces, namespaces, (one, other) => {
        const keys = [one, other].map((names) =>
          classKey({ roles: ['VIEWER'], namespaces: names, agentName: null }),
        );
        expect(keys[0] === keys[1]).toBe(
          JSON.stringify([...one].sort()) === JSON.stringify([...other].sort()),
        );
      }),
    );
  });

  it('would tell each other what only one may see, if the key of their class forgot the namespaces', async () => {
    const graph = await startTestGraph();
    const tenants = await seedTenants(graph.database);
    const { limits } = transportSettings(loadConfig({}));
    const right = createPipeline({
      schema: graph.schema,
      limits,
      introspection: true,
      clock: systemClock,
      log: silentLog,
      createContext: graph.contextOf,
    });
    const [wide, narrow] = [[0, 1], [0]].map((of) =>
      someone({ roles: ['VIEWER'], namespaces: of.map(marked) }),
    );
    if (!wide || !narrow) throw new Error('two callers');
    const field = graph.schema.getSubscriptionType()?.getFields()['deploymentPhaseChanged'];
    const definition = field?.extensions['stream'] as StreamDefinition; // every subscription field carries one
    const source = definition.open({ after: await graph.feed.head() }, graph.contextOf(narrow));
    // The first deployment of a tenant stands on the runtime of the next.
    await tenants.move(0, 0);
    graph.feed.wake();
    const event = await nextOf(source);
    if (!event) throw new Error('the stream ended');
    const tellBoth = async (pipeline: Pipeline) => {
      const shared = createSharedExecution(pipeline, { onExecuted: () => undefined });
      const texts: string[] = [];
      for (const caller of [wide, narrow]) {
        const preparation = pipeline.prepare({ query: UNFILTERED }, caller, new Set(['subscription']));
        if (!preparation.prepared) throw new Error(JSON.stringify(preparation.errors));
        const payload = await shared.payload(shared.join(preparation.prepared, caller), caller, event);
        texts.push(payload.json.toString());
      }
      expect(findForeign(tenants, new Set([0, 1]), '', texts[0] ?? '')).toEqual([]);
      // Otherwise there is nothing that could be told on.
      expect(texts[0]).toContain(marked(1));
      return findForeign(tenants, new Set([0]), '', texts[1] ?? '');
    };
    expect(await tellBoth(right)).toEqual([]);
    const forgetful = {
      ...right,
      shareKey: (prepared: Parameters<Pipeline['shareKey']>[0]) => String(prepared.plan.planId),
    };
    expect(await tellBoth(forgetful)).toContain(marked(1));
    source.close();
    await graph.close();
  });
});
