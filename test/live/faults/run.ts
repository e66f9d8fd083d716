/**
 * One run of a scenario: its fleet, its readers and writers, everything they did, and the judgement at the end. A run
 * that did too little fails, however little went wrong.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';

import { waitFor } from '../../support/wait-for.js';
import { startFleet, type Fleet, type FleetOptions } from './fleet.js';
import { createRecorder, type Recorder, type StreamMode } from './history.js';
import { indexLog, takes } from './log-index.js';
import type { Postgres } from './postgres.js';
import { seededRandom, type Random } from './random.js';
import { openStream, type StreamClient, type StreamClientOptions } from './stream-client.js';
import { validate } from './validators/validate.js';
import {
  startApiWriter,
  startSqlWriter,
  type ApiWriterOptions,
  type SqlWriterOptions,
  type Writer,
} from './writers.js';

export interface Verdict {
  readonly scenario: string;
  readonly seed: number;
  /** Empty: it passed. */
  readonly problems: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
  readonly seconds: number;
}

export interface RunContext {
  readonly scenario: string;
  readonly seed: number;
  readonly postgres: Postgres;
  /** Where the history goes if the run fails. */
  readonly keepIn: string;
  /** Of long runs: what they have come to. */
  readonly say?: (text: string) => void;
}

const SETTLE_MS = 90_000;

export class Run {
  readonly context: RunContext;
  readonly random: Random;
  readonly recorder: Recorder = createRecorder();
  readonly fleet: Fleet;
  readonly clients: StreamClient[] = [];
  readonly writers: Writer[] = [];
  readonly #problems: string[] = [];
  readonly #leftProblems: string[] = [];
  readonly #counts: Record<string, number> = {};
  readonly #startedMs = performance.now();
  /** What this process took to look: beyond a second, its clients were slow and not the servers. */
  readonly #lag = monitorEventLoopDelay({ resolution: 20 });
  #logged: readonly object[] = [];
  #faults = 0;
  #named = 0;

  private constructor(context: RunContext, fleet: Fleet) {
    this.context = context;
    this.fleet = fleet;
    this.random = seededRandom(context.seed);
    this.#lag.enable();
  }

  static async start(context: RunContext, options: Omit<FleetOptions, 'postgres'>): Promise<Run> {
    return new Run(context, await startFleet({ ...options, postgres: context.postgres }));
  }

  get acknowledged(): number {
    return this.recorder.count('acknowledged');
  }
  get resumes(): number {
    return this.clients.reduce((sum, { resumes }) => sum + resumes, 0);
  }

  problem(text: string): void {
    this.#problems.push(text);
    this.context.say?.(`! ${text}`);
  }
  count(name: string, value: number): void {
    this.#counts[name] = value;
  }
  /** Fewer would mean that the run proves nothing. */
  atLeast(name: string, least: number, value: number): void {
    this.count(name, value);
    if (value < least) this.problem(`too little happened: ${value} ${name}, where at least ${least} belong`);
  }
  atMost(name: string, most: number, value: number): void {
    this.count(name, value);
    if (value > most) this.problem(`${value} ${name}, where at most ${most} may be`);
  }

  fault(name: string, server = '-'): void {
    this.#faults += 1;
    this.recorder.add('harness', server, { type: 'fault', fault: name });
  }

  open(mode: StreamMode, over: Partial<StreamClientOptions> = {}): StreamClient {
    const who = `${mode.toLowerCase()}-${(this.#named += 1)}`;
    const random = this.random.fork(who);
    const client = openStream({
      who,
      mode,
      transport: this.#named % 3 === 0 ? 'sse' : 'websocket',
      recorder: this.recorder,
      random,
      door: () => this.fleet.any(random),
      after: null,
      ...over,
    });
    this.clients.push(client);
    return client;
  }

  /** It has done its part: nobody waits for it any more. */
  leave(client: StreamClient): void {
    client.stop();
    this.clients.splice(this.clients.indexOf(client), 1);
    this.#leftProblems.push(...client.problems);
  }

  /** Half take every transition from now on, half watch. */
  async openMany(count: number, over: Partial<StreamClientOptions> = {}): Promise<void> {
    const after = await this.fleet.head();
    for (let made = 0; made < count; made += 1) {
      if (made % 2 === 0) this.open('EVERY', { ...over, after });
      else this.open('LATEST', over);
    }
    await this.until(
      () => this.clients.every((client) => client.open && client.cursor !== null),
      'all streams are open',
    );
  }

  write(count: number, over: Partial<ApiWriterOptions> = {}): void {
    for (let made = 0; made < count; made += 1) {
      const who = `writer-${(this.#named += 1)}`;
      const random = this.random.fork(who);
      const door = () => this.fleet.any(random);
      const { objects } = this.fleet;
      this.writers.push(startApiWriter({ who, recorder: this.recorder, random, door, objects, ...over }));
    }
  }

  writeBeside(over: Partial<SqlWriterOptions> = {}): void {
    const random = this.random.fork(`beside-${(this.#named += 1)}`);
    const { objects, database } = this.fleet;
    this.writers.push(startSqlWriter({ connection: database.connection, random, objects, ...over }));
  }

  until(condition: () => boolean | Promise<boolean>, what: string, withinMs = SETTLE_MS): Promise<unknown> {
    return waitFor(condition, `${what} (${this.context.scenario}, seed ${this.context.seed})`, withinMs);
  }

  /** Until so many more mutations are acknowledged: the servers that should serve do. */
  async progress(acknowledged: number): Promise<void> {
    const goal = this.acknowledged + acknowledged;
    await this.until(() => this.acknowledged >= goal, `${acknowledged} more mutations are acknowledged`);
  }

  /** Everything runs and passes again. */
  async heal(): Promise<void> {
    for (const server of this.fleet.servers) {
      server.api.swallow = false;
      server.sql.swallow = false;
      server.api.shape({});
      server.sql.shape({});
      await server.signal('SIGCONT');
      await server.start();
      await server.disarm();
    }
  }

  /** Ends the writing, waits for the readers, judges, and takes everything down. */
  async finish(): Promise<Verdict> {
    try {
      await this.heal();
      await Promise.all(this.writers.map((writer) => writer.stop()));
      await this.#judge();
    } catch (error) {
      this.problem(error instanceof Error ? (error.stack ?? error.message) : String(error));
    }
    return this.close();
  }

  async #judge(): Promise<void> {
    const rows = await this.fleet.readLog();
    this.#logged = rows;
    const log = indexLog(rows);
    const stored = await this.fleet.readStored();
    const end = await this.fleet.head();
    const settled = () =>
      this.clients.every(
        (client) =>
          client.cursor !== null &&
          caughtUp(client, stored, log.between(client.cursor, end, client.mode).length),
      );
    // Who does not arrive is named by the validators.
    await this.until(settled, 'all streams have come to the end').catch((error: unknown) =>
      this.problem(String(error)),
    );
    for (const text of validate({ entries: this.recorder.entries, log, stored, end })) this.problem(text);
    this.count('changes', rows.filter((row) => takes('LATEST', row)).length);
    this.count('events', this.recorder.count('event'));
  }

  async close(): Promise<Verdict> {
    for (const client of this.clients) client.stop();
    await Promise.all(this.writers.map((writer) => writer.stop()));
    const { scenario, seed, keepIn } = this.context;
    this.#problems.push(...this.#leftProblems);
    for (const { problems } of [...this.clients, ...this.fleet.servers]) this.#problems.push(...problems);
    this.count('acknowledged', this.acknowledged);
    this.count('resumes', this.resumes);
    this.count('faults', this.#faults);
    this.#lag.disable();
    this.count('ownLagP99Ms', this.#lag.percentile(99) / 1e6);
    if (this.#problems.length > 0) {
      const file = `${keepIn}/${scenario}-${seed}.jsonl`;
      this.recorder.save(file, this.#logged);
      this.problem(`the history is kept in ${file}`);
    }
    await this.fleet.close();
    const seconds = (performance.now() - this.#startedMs) / 1_000;
    return { scenario, seed, problems: this.#problems, counts: this.#counts, seconds };
  }
}

function caughtUp(client: StreamClient, stored: ReadonlyMap<string, number>, missing: number): boolean {
  if (client.mode === 'EVERY') return missing === 0;
  return [...stored].every(([object, version]) => client.held.get(object) === version);
}

/** For what has no condition to wait for: how long something stays broken. */
export const wait = (ms: number): Promise<void> => delay(ms);

/** A body that throws fails its run; what was started ends in any case. */
export async function withRun(
  context: RunContext,
  options: Omit<FleetOptions, 'postgres'>,
  body: (run: Run) => Promise<void>,
): Promise<Verdict> {
  const run = await Run.start(context, options);
  try {
    await body(run);
  } catch (error) {
    run.problem(error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
  return run.finish();
}
