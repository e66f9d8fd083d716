import type { DocumentFacts } from './document.js';
import { SlipwayStreamError } from './errors.js';
import {
  advance,
  conditionOf,
  newMachine,
  type Machine,
  type ResyncReason,
  type StreamCondition,
  type StreamEffect,
  type StreamKind,
  type StreamSignal,
} from './resume-model.js';
import { endOf, eventFacts, failureOf, type FinalReason } from './stream-words.js';
import type { ClientClock, Timing } from './timing.js';
import type { GraphResult, StreamEnd, StreamTransport, TransportName } from './transport.js';
import { judge, type Judgement } from './verdict.js';

/** Events that wait for a slow reader before its subscription is given up until it has read them. */
export const BUFFER_MAX_EVENTS = 1_000;
/** Objects of one snapshot that wait for a slow reader before the stream fails with OVERFLOW. */
export const SNAPSHOT_BUFFER_MAX_EVENTS = 100_000;

export interface StreamStatus {
  readonly condition: StreamCondition;
  readonly transport: TransportName;
  /** Failures in a row; 0 while all is well. */
  readonly attempt: number;
  /** While waiting: after how many milliseconds the next attempt comes. */
  readonly retryInMs: number | null;
  /** Why it is not connected, for people; null if there was no trouble. */
  readonly reason: string | null;
}

export type StreamItem =
  | { readonly type: 'data'; readonly data: unknown; readonly cursor: string | null }
  | { readonly type: 'resync'; readonly reason: ResyncReason }
  | { readonly type: 'gap'; readonly reason: string };

export interface StreamDeps {
  readonly transport: StreamTransport;
  /** Reads the cursor of now. */
  readonly head: () => Promise<string>;
  readonly clock: ClientClock;
  readonly timing: Timing;
  readonly random: () => number;
}

export interface StreamSpec {
  readonly document: DocumentFacts;
  readonly variables: Readonly<Record<string, unknown>>;
  readonly kind: StreamKind;
  readonly acceptsGaps: boolean;
  readonly onStatus: (status: StreamStatus) => void;
}

/** The effects of the machine in resume-model.ts: opens attempts, keeps what arrives until it is read. */
export class ResumingStream {
  /** Resolves when the server has first accepted it: what changes afterwards is delivered. Rejects if it ends before. */
  readonly opened: Promise<void>;
  #machine: Machine;
  readonly #deps: StreamDeps;
  readonly #spec: StreamSpec;
  readonly #buffer: StreamItem[] = [];
  #reader: { resolve: (item: StreamItem | undefined) => void; reject: (error: unknown) => void } | null =
    null;
  #settleOpened: { resolve: () => void; reject: (error: unknown) => void } | null = null;
  #release: () => void = () => undefined;
  /** What the latest attempt is known by: reports of older ones are dropped. */
  #attempt: object = {};
  #acceptedAtMs: number | null = null;
  #judgement: Judgement | null = null;
  #failure: SlipwayStreamError | null = null;
  #retryInMs: number | null = null;
  #readCursor: string | null;
  #statusText = '';

  constructor(deps: StreamDeps, spec: StreamSpec) {
    this.#deps = deps;
    this.#spec = spec;
    const after = spec.variables['after'];
    this.#readCursor = typeof after === 'string' ? after : null;
    this.#machine = newMachine({
      kind: spec.kind,
      resumable: spec.document.takesAfter,
      acceptsGaps: spec.acceptsGaps,
      cursor: this.#readCursor,
    });
    this.opened = new Promise((resolve, reject) => {
      this.#settleOpened = { resolve, reject };
    });
    // Nobody has to look at `opened`: the failure also comes by `next()`.
    this.opened.catch(() => undefined);
    this.#signal({ type: 'start' });
  }

  /** All that was handed out by `next()` lies before it; null inside a snapshot. */
  get cursor(): string | null {
    return this.#readCursor;
  }

  /** One reader at a time. Undefined: ended. Rejects with SlipwayStreamError if it failed. */
  async next(): Promise<StreamItem | undefined> {
    const item = this.#buffer.shift();
    if (item !== undefined) {
      if (this.#buffer.length === 0) this.#signal({ type: 'drained' });
      return this.#handOut(item);
    }
    if (this.#machine.state === 'ended') return this.#finish();
    if (this.#reader) {
      throw new TypeError('A subscription has one reader: await next() before calling it again.');
    }
    const arrived = await new Promise<StreamItem | undefined>((resolve, reject) => {
      this.#reader = { resolve, reject };
    });
    return arrived && this.#handOut(arrived);
  }

  /** Ends it at once; what is buffered is dropped, and a pending `next()` gives undefined. */
  stop(): void {
    this.#buffer.length = 0;
    this.#signal({ type: 'stop' });
  }

  #handOut(item: StreamItem): StreamItem {
    this.#readCursor = item.type === 'data' ? item.cursor : null;
    return item;
  }

  #finish(): undefined {
    const failure = this.#failure;
    // Told once; whoever goes on reading sees the end.
    this.#failure = null;
    if (failure !== null) throw failure;
    return undefined;
  }

  #signal(signal: StreamSignal, data?: unknown): void {
    const step = advance(this.#machine, signal, this.#deps.timing);
    this.#machine = step.machine;
    if (step.machine.state !== 'waiting') this.#retryInMs = null;
    for (const effect of step.effects) this.#run(effect, data);
    if (step.machine.state === 'live' || step.machine.state === 'snapshot') this.#open();
    this.#tellStatus();
  }

  #open(): void {
    this.#acceptedAtMs ??= this.#deps.clock.monotonicMs();
    this.#settleOpened?.resolve();
    this.#settleOpened = null;
  }

  #run(effect: StreamEffect, data: unknown): void {
    switch (effect.do) {
      case 'locate':
        return this.#locate();
      case 'open':
        return this.#connect(effect.after);
      case 'cancel':
        this.#attempt = {};
        return this.#release();
      case 'wait':
        this.#retryInMs = effect.ms;
        this.#release = this.#deps.clock.after(effect.ms, () => this.#signal({ type: 'due' }));
        return;
      case 'deliver':
        return this.#put({ type: 'data', data, cursor: this.#machine.cursor });
      case 'resync':
        return this.#put({ type: 'resync', reason: effect.reason });
      case 'gap':
        return this.#put({ type: 'gap', reason: this.#judgement?.message ?? 'Events were missed.' });
      case 'end':
        return this.#end(effect.why);
    }
  }

  #locate(): void {
    const attempt = this.#begin();
    this.#release = () => undefined;
    this.#deps.head().then(
      (cursor) => {
        if (attempt !== this.#attempt) return;
        this.#readCursor ??= cursor;
        this.#signal({ type: 'located', cursor });
      },
      (error: unknown) => {
        if (attempt === this.#attempt) this.#over(endOf(error), this.#deps.random());
      },
    );
  }

  #connect(after: string | null): void {
    const attempt = this.#begin();
    const { document, variables } = this.#spec;
    const request = {
      query: document.text,
      operationName: document.operationName,
      variables: document.takesAfter ? { ...variables, after } : variables,
      after: document.takesAfter ? after : null,
    };
    const current = () => attempt === this.#attempt;
    this.#release = this.#deps.transport.open(request, {
      accepted: () => {
        if (current()) this.#signal({ type: 'accepted' });
      },
      next: (result) => {
        if (current()) this.#receive(result);
      },
      ended: (end, draw) => {
        if (current()) this.#over(end, draw);
      },
    });
  }

  #begin(): object {
    this.#attempt = {};
    this.#acceptedAtMs = null;
    return this.#attempt;
  }

  #receive(result: GraphResult): void {
    if (result.errors && result.errors.length > 0) {
      // An event that could not be made whole: ours to report, not to hand out in parts.
      this.#release();
      this.#over({ type: 'errors', errors: result.errors }, this.#deps.random());
      return;
    }
    const event = eventFacts(result.data?.[this.#spec.document.rootKey]);
    if (event.typename === 'Reset') this.#signal({ type: 'reset' }, result.data);
    else if (event.typename === 'SnapshotEnd') {
      this.#signal({ type: 'snapshotEnd', cursor: event.cursor }, result.data);
    } else this.#signal({ type: 'event', cursor: event.cursor }, result.data);
    const limit = this.#machine.state === 'snapshot' ? SNAPSHOT_BUFFER_MAX_EVENTS : BUFFER_MAX_EVENTS;
    if (this.#buffer.length >= limit) this.#signal({ type: 'full' });
  }

  #over(end: StreamEnd, draw: number): void {
    const livedMs = this.#acceptedAtMs === null ? 0 : this.#deps.clock.monotonicMs() - this.#acceptedAtMs;
    this.#attempt = {};
    this.#judgement = judge(end);
    switch (this.#judgement.verdict) {
      case 'again':
        return this.#signal({ type: 'lost', draw, livedMs });
      case 'fresh':
        return this.#signal({ type: 'outdated', draw, livedMs });
      case 'expired':
        return this.#signal({ type: 'expired', draw });
      case 'final':
        return this.#signal({ type: 'refused' });
      case 'over':
        return this.#signal({ type: 'completed' });
    }
  }

  #put(item: StreamItem): void {
    const reader = this.#reader;
    this.#reader = null;
    if (reader) reader.resolve(item);
    else this.#buffer.push(item);
  }

  #end(why: FinalReason | null): void {
    this.#attempt = {};
    this.#failure = why === null ? null : failureOf(why, this.#judgement, this.#machine.cursor);
    this.#settleOpened?.reject(
      this.#failure ??
        new SlipwayStreamError({
          code: 'ABORTED',
          message: 'The subscription was ended.',
          cursor: this.#readCursor,
        }),
    );
    this.#settleOpened = null;
    const reader = this.#reader;
    this.#reader = null;
    if (!reader) return;
    try {
      reader.resolve(this.#finish());
    } catch (error) {
      reader.reject(error);
    }
  }

  #tellStatus(): void {
    const { attempt, state } = this.#machine;
    const condition = conditionOf(this.#machine);
    const troubled = condition === 'reconnecting' || condition === 'resyncing' || state === 'ended';
    const status: StreamStatus = {
      condition,
      transport: this.#deps.transport.name,
      attempt: condition === 'connected' ? 0 : attempt,
      retryInMs: this.#retryInMs,
      reason: troubled ? (this.#judgement?.message ?? null) : null,
    };
    const text = JSON.stringify(status);
    if (text === this.#statusText) return;
    this.#statusText = text;
    this.#spec.onStatus(status);
  }
}
