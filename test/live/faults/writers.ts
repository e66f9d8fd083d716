/**
 * Who changes things during a run: clients of the API, which record what they asked for and what they were told, and one
 * beside the server, as with psql, whose transactions change several objects.
 */
import { setTimeout as delay } from 'node:timers/promises';

import pg from 'pg';

import type { Connection } from '../../../src/store/embedded.js';
import type { Recorder } from './history.js';
import type { Random } from './random.js';
import type { Door } from './stream-client.js';

export interface Writer {
  /** What it has got done. */
  readonly done: number;
  /** No answer, or none that says what became of it. */
  readonly unknown: number;
  stop(): Promise<void>;
}

function writer(
  counts: { readonly done: number; readonly unknown: number },
  stopping: AbortController,
  running: Promise<void>,
): Writer {
  return {
    get done() {
      return counts.done;
    },
    get unknown() {
      return counts.unknown;
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

export interface ApiWriterOptions {
  readonly who: string;
  readonly recorder: Recorder;
  readonly random: Random;
  readonly door: () => Door;
  readonly objects: readonly string[];
  /** Part of the mutations that carry an idempotency key, and are sent again until their outcome is known. */
  readonly keyed?: number;
  /** Between two mutations. */
  readonly paceMs?: number;
  /** For an answer, before its outcome counts as unknown. */
  readonly answerMs?: number;
}

const ANSWER_MS = 2_500;
const PATCH = `mutation ($input: PatchDeploymentStatusInput!) { patchDeploymentStatus(input: $input) { __typename
  ... on PatchDeploymentStatusPayload { deployment { version status { phase } } }
  ... on DeploymentVersionConflict { current { version status { phase } } } } }`;
const READ = 'query ($id: ID!) { deployment(id: $id) { version status { phase } } }';

interface Seen {
  readonly version: number;
  readonly phase: string;
}
interface Facts {
  readonly version: number;
  readonly status: { readonly phase: string };
}
interface Answer {
  readonly data?: {
    readonly patchDeploymentStatus?: {
      readonly __typename: string;
      readonly deployment?: Facts;
      readonly current?: Facts;
    };
    readonly deployment?: Facts | null;
  } | null;
  readonly errors?: readonly { readonly message: string; readonly extensions?: { readonly code?: string } }[];
}

/** Rejects when no whole answer comes. */
export async function post(
  url: string,
  query: string,
  variables: object,
  answerMs = ANSWER_MS,
): Promise<Answer> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query, variables }),
    signal: AbortSignal.timeout(answerMs),
  });
  return (await response.json()) as Answer; // GraphQL over HTTP, of the selections above
}

export function startApiWriter(options: ApiWriterOptions): Writer {
  const { who, recorder, random, objects, keyed = 0.5, paceMs = 0, answerMs } = options;
  const seen = new Map<string, Seen>();
  const stopping = new AbortController();
  const counts = { done: 0, unknown: 0 };
  let sent = 0;

  /** What became of it, once that is known; undefined if it stays unknown. */
  async function patch(op: string, object: string, from: Seen, key: boolean): Promise<Seen | undefined> {
    const phase = from.phase === 'RUNNING' ? 'REFRESH_FAILED' : 'RUNNING';
    const input = { id: object, expectedVersion: from.version, phase, reason: 'Moved', message: op };
    const door = options.door();
    recorder.add(who, door.name, { type: 'sent', op, object, expected: from.version });
    try {
      const answer = await post(
        door.url,
        PATCH,
        { input: key ? { ...input, idempotencyKey: op } : input },
        answerMs,
      );
      const result = answer.data?.patchDeploymentStatus;
      const facts = result?.deployment ?? result?.current;
      if (!result) throw new Error(answer.errors?.[0]?.extensions?.code ?? 'no data');
      if (result.deployment) {
        counts.done += 1;
        recorder.add(who, door.name, {
          type: 'acknowledged',
          op,
          object,
          version: result.deployment.version,
        });
      } else recorder.add(who, door.name, { type: 'refused', op, object, why: result.__typename });
      return facts && { version: facts.version, phase: facts.status.phase };
    } catch (error) {
      counts.unknown += 1;
      recorder.add(who, door.name, { type: 'unknown', op, object, why: String(error) });
      return undefined;
    }
  }

  async function look(object: string): Promise<Seen | undefined> {
    const door = options.door();
    const since = recorder.entries.length;
    try {
      const answer = await post(door.url, READ, { id: object });
      const facts = answer.data?.deployment;
      if (!facts) return undefined;
      recorder.add(who, door.name, { type: 'read', object, version: facts.version, since });
      return { version: facts.version, phase: facts.status.phase };
    } catch {
      return undefined; // nothing was learned, so there is nothing to record
    }
  }

  /** With its key a mutation is sent again until its outcome is known. */
  async function insist(op: string, object: string, from: Seen): Promise<Seen | undefined> {
    for (;;) {
      const next = await patch(op, object, from, true);
      if (next ?? stopping.signal.aborted) return next;
      await delay(20);
    }
  }

  let object = random.pick(objects);
  async function step(): Promise<void> {
    const from = seen.get(object) ?? (await look(object));
    const before = counts.done;
    if (from) {
      const op = `op-${who}-${(sent += 1)}`;
      const next =
        random.next() < keyed ? await insist(op, object, from) : await patch(op, object, from, false);
      if (next) seen.set(object, next);
      else seen.delete(object);
    }
    // Who lost tries again with what it was told, as a controller does.
    if (counts.done > before) object = random.pick(objects);
    if (!seen.has(object)) await delay(20);
    if (paceMs > 0) await delay(paceMs);
  }

  const running = (async () => {
    while (!stopping.signal.aborted) await step();
  })();
  return writer(counts, stopping, running);
}

export interface SqlWriterOptions {
  readonly connection: Connection;
  readonly random: Random;
  readonly objects: readonly string[];
  readonly paceMs?: number;
  /** Objects in one transaction at most. */
  readonly most?: number;
  /** Chance that a transaction is held open for a moment. */
  readonly holding?: number;
  /** Whether a transaction changes all its objects by one statement: only where no other writer has any of them. */
  readonly atOnce?: boolean;
}

const MOVE = `update deployment set version = version + 1, changed_by = 'system:test', change_reason = 'Moved', change_message = null,
  phase = (case phase when 'RUNNING' then 'REFRESH_FAILED' else 'RUNNING' end)::"DeploymentPhase", trace_id = null,
  change_token = gen_random_uuid()::text where id = any($1)`;

/** Transactions of one to five objects, some held open for a moment, some rolled back. */
export function startSqlWriter(options: SqlWriterOptions): Writer {
  const { connection, random, objects, paceMs = 5, most = 5, holding = 0.5, atOnce = false } = options;
  const stopping = new AbortController();
  const counts = { done: 0, unknown: 0 };
  let client: pg.Client | undefined;

  async function transaction(): Promise<void> {
    if (!client) {
      client = new pg.Client(connection);
      client.on('error', () => (client = undefined)); // PostgreSQL was stopped
      await client.connect();
    }
    const count = 1 + random.below(most);
    // In one order, so that two transactions never wait for each other.
    const ids = [...new Set(Array.from({ length: count }, () => random.pick(objects)))].sort();
    await client.query('begin');
    const parts = atOnce ? [ids] : ids.map((id) => [id]);
    for (const part of parts) await client.query({ name: 'move', text: MOVE, values: [part] });
    if (random.next() < holding) await delay(random.below(20));
    const back = random.next() < 0.1;
    await client.query(back ? 'rollback' : 'commit');
    if (!back) counts.done += ids.length;
  }

  const running = (async () => {
    while (!stopping.signal.aborted) {
      try {
        await transaction();
      } catch {
        counts.unknown += 1;
        await client?.end().catch(() => undefined); // it is broken already
        client = undefined;
        await delay(50);
      }
      await delay(paceMs);
    }
    await client?.end();
  })();
  return writer(counts, stopping, running);
}
