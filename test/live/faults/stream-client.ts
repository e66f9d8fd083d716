/**
 * One reader of a stream, as cheap as a socket and a map: it goes from server to server by its cursor for as long as it
 * runs, and records what it is told. Hundreds live in one process.
 */
import { request, type ClientRequest } from 'node:http';

import { WebSocket } from 'ws';

import { sseParser } from '../../../src/client/sse-parser.js';
import type { Recorder, StreamMode } from './history.js';
import type { Random } from './random.js';

/** A way to one server. */
export interface Door {
  readonly name: string;
  /** `http://127.0.0.1:…` */
  readonly url: string;
}

export interface StreamClientOptions {
  readonly who: string;
  readonly mode: StreamMode;
  readonly transport: 'websocket' | 'sse';
  readonly recorder: Recorder;
  readonly random: Random;
  /** Which way to take now. */
  readonly door: () => Door;
  /** Where to begin. Null: a LATEST stream takes a snapshot. */
  readonly after: string | null;
  /** A connection that is silent for so long is given up. Above the server's ping interval. */
  readonly idleMs?: number;
  /** One that is not accepted within so long is given up. */
  readonly connectMs?: number;
  /** Chance, at each event, to go away and come back: mostly with more of the same step on its way. */
  readonly leaves?: number;
}

export interface StreamClient {
  readonly who: string;
  readonly mode: StreamMode;
  readonly cursor: string | null;
  /** What is held, of LATEST. */
  readonly held: ReadonlyMap<string, number>;
  /** Events told. */
  readonly told: number;
  /** Times that it went on after a cursor. */
  readonly resumes: number;
  /** Whether a subscription is accepted and has told something, or is at least being waited on. */
  readonly open: boolean;
  /** Closes that only a bug of the server makes, and ends that lose its place. */
  readonly problems: readonly string[];
  /** How its connections ended, and when by the monotonic clock. */
  readonly endings: readonly { readonly code: string; readonly server: string; readonly atMs: number }[];
  stop(): void;
}

const EVERY =
  'subscription ($after: ChangeCursor) { deploymentPhaseChanged(after: $after) { cursor version deployment { id } } }';
const LATEST = `subscription ($after: ChangeCursor) { watchDeployments(after: $after, onExpired: SNAPSHOT) {
  __typename ... on StreamEvent { cursor } ... on Reset { reason }
  ... on DeploymentAdded { deployment { id version } } ... on DeploymentChanged { deployment { id version } } } }`;
/** Tripled each time: clients that never let go would keep servers busy with what nobody waits for any more. */
const RETRY_MS = { base: 20, cap: 2_000 } as const;
const IDLE_MS = 3_000;
const PROBLEMS_MAX = 5;
const CONNECT_MS = 3_000;

interface EventBody {
  readonly __typename?: string;
  readonly cursor: string;
  readonly version?: number;
  readonly reason?: string;
  readonly deployment?: { readonly id: string; readonly version: number };
}
interface Result {
  readonly data?: Readonly<Record<string, EventBody>> | null;
  readonly errors?: readonly { readonly message: string; readonly extensions?: { readonly code?: string } }[];
}

export function openStream(options: StreamClientOptions): StreamClient {
  const reader = new Reader(options);
  reader.connect();
  return reader;
}

class Reader implements StreamClient {
  readonly #options: StreamClientOptions;
  readonly held = new Map<string, number>();
  readonly problems: string[] = [];
  readonly endings: { code: string; server: string; atMs: number }[] = [];
  cursor: string | null;
  told = 0;
  resumes = 0;
  open = false;
  /** Of the snapshot that is being told; undefined outside. */
  #snapshot: Map<string, number> | undefined;
  #attempts = 0;
  #openings = 0;
  #stopped = false;
  #leave: (() => void) | undefined;
  #idle: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;
  #server = '';

  constructor(options: StreamClientOptions) {
    this.#options = options;
    this.cursor = options.after;
  }

  get who(): string {
    return this.#options.who;
  }
  get mode(): StreamMode {
    return this.#options.mode;
  }

  connect(): void {
    const door = this.#options.door();
    this.#server = door.name;
    let over = false;
    const end = (code: string): void => {
      if (over) return;
      over = true;
      clearTimeout(this.#idle);
      this.#leave = undefined;
      leave();
      this.#ended(code);
    };
    const leave = this.#options.transport === 'sse' ? this.#overSse(door, end) : this.#overSocket(door, end);
    this.#leave = () => end('LEFT');
    this.#idle = setTimeout(() => end('NOT_CONNECTED'), this.#options.connectMs ?? CONNECT_MS);
  }

  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    clearTimeout(this.#retry);
    this.#leave?.();
  }

  #heard(end: (code: string) => void): void {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => end('SILENT'), this.#options.idleMs ?? IDLE_MS);
  }

  #accepted(): void {
    const { who, recorder, mode } = this.#options;
    if (this.#openings > 0 && this.cursor !== null) this.resumes += 1;
    this.#openings += 1;
    if (this.cursor === null) this.#snapshot = new Map();
    recorder.add(who, this.#server, { type: 'opened', mode, after: this.cursor });
    this.open = true;
  }

  #ended(code: string): void {
    const { who, recorder, random } = this.#options;
    if (this.open) {
      recorder.add(who, this.#server, { type: 'ended', code });
      this.endings.push({ code, server: this.#server, atMs: performance.now() });
    }
    this.open = false;
    this.#snapshot = undefined;
    if (code === '4500' || code === 'CURSOR_EXPIRED' || code === 'CURSOR_INVALID' || code === 'INTERNAL') {
      if (this.problems.length < PROBLEMS_MAX) {
        this.problems.push(`${who} on ${this.#server} was ended with ${code}`);
      }
    }
    if (this.#stopped) return;
    this.#attempts += 1;
    const wait =
      Math.min(RETRY_MS.cap, RETRY_MS.base * 3 ** Math.min(this.#attempts, 5)) * (0.5 + random.next() / 2);
    this.#retry = setTimeout(() => this.connect(), wait);
  }

  get #request(): object {
    return { query: this.mode === 'EVERY' ? EVERY : LATEST, variables: { after: this.cursor } };
  }

  #overSocket(door: Door, end: (code: string) => void): () => void {
    const ws = new WebSocket(`${door.url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws', {
      perMessageDeflate: false,
    });
    ws.on('open', () => ws.send('{"type":"connection_init"}'));
    ws.on('ping', () => this.#heard(end));
    ws.on('error', () => undefined); // the close tells
    ws.on('close', (code) => end(String(code)));
    ws.on('message', (data: Buffer) => {
      this.#heard(end);
      const message = JSON.parse(data.toString()) as { type: string; payload?: unknown }; // the protocol's messages
      if (message.type === 'connection_ack') {
        this.#accepted();
        ws.send(JSON.stringify({ id: '1', type: 'subscribe', payload: this.#request }));
      } else if (message.type === 'next') {
        this.#take(message.payload as Result, end);
      } // what was asked for
      else if (message.type === 'error') {
        this.#refused({ errors: message.payload as NonNullable<Result['errors']> }, end);
      } // the protocol's list
      else if (message.type === 'complete') end('COMPLETE');
    });
    return () => {
      ws.removeAllListeners('message');
      ws.terminate();
    };
  }

  #overSse(door: Door, end: (code: string) => void): () => void {
    const body = JSON.stringify(this.#request);
    const headers = {
      accept: 'text/event-stream',
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    };
    const parse = sseParser();
    let left = false;
    const asked: ClientRequest = request(
      `${door.url}/graphql`,
      { method: 'POST', headers, agent: false },
      (response) => {
        if (response.statusCode !== 200) return end(String(response.statusCode));
        this.#accepted();
        this.#heard(end);
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          this.#heard(end);
          for (const { event, data } of parse(chunk)) {
            if (left) return;
            if (event === 'complete') end('COMPLETE');
            else if (event === 'next') this.#take(JSON.parse(data) as Result, end); // what was asked for
          }
        });
        response.on('error', () => end('CUT'));
        response.on('close', () => end('CUT'));
        return undefined;
      },
    );
    asked.on('error', () => end('CUT'));
    asked.end(body);
    return () => {
      left = true;
      asked.destroy();
    };
  }

  #refused({ errors }: Result, end: (code: string) => void): void {
    end(errors?.[0]?.extensions?.code ?? 'NO_CODE');
  }

  #take(result: Result, end: (code: string) => void): void {
    const [event] = Object.values(result.data ?? {});
    if (result.errors !== undefined || !event) return this.#refused(result, end);
    this.#attempts = 0;
    const { who, recorder } = this.#options;
    const { cursor } = event;
    const type = event.__typename;
    if (type === 'Reset') {
      this.cursor = null;
      this.held.clear();
      this.#snapshot = new Map();
      recorder.add(who, this.#server, { type: 'reset', why: event.reason ?? '' });
      return;
    }
    if (type === 'Bookmark') {
      // Inside a snapshot it is a place to begin another one at, not one to resume after.
      if (this.#snapshot) return;
      this.cursor = cursor;
      recorder.add(who, this.#server, { type: 'bookmark', cursor });
      return;
    }
    if (type === 'SnapshotEnd') {
      const objects = this.#snapshot ?? new Map<string, number>();
      this.#snapshot = undefined;
      this.cursor = cursor;
      this.held.clear();
      for (const [object, version] of objects) this.held.set(object, version);
      recorder.add(who, this.#server, { type: 'snapshot', cursor, objects });
      return;
    }
    const object = event.deployment?.id ?? '';
    const version = event.version ?? event.deployment?.version ?? 0;
    if (this.#snapshot) {
      this.#snapshot.set(object, version);
      return;
    }
    this.told += 1;
    this.cursor = cursor;
    if (this.mode === 'LATEST') this.held.set(object, version);
    recorder.add(who, this.#server, { type: 'event', object, version, cursor });
    const { leaves = 0, random } = this.#options;
    if (leaves > 0 && random.next() < leaves) end('WENT_AWAY');
  }
}
