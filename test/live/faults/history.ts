/**
 * What everybody did and saw in a run, in the order in which this process learned of it. Validators judge it afterwards
 * against the database's own log.
 */
import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

/** What a stream takes: every transition of a deployment's phase, or the newest state of every deployment. */
export type StreamMode = 'EVERY' | 'LATEST';

export type Entry = {
  readonly n: number;
  /** By the clock that the database on this machine tells time by. */
  readonly ms: number;
  readonly who: string;
  readonly server: string;
} & Deed;

export type Deed =
  /** A mutation. `op` is written into the change that it makes; sent again with an idempotency key it stays the same. */
  | { readonly type: 'sent'; readonly op: string; readonly object: string; readonly expected: number }
  | { readonly type: 'acknowledged'; readonly op: string; readonly object: string; readonly version: number }
  | { readonly type: 'refused'; readonly op: string; readonly object: string; readonly why: string }
  /** No answer, or one that does not say what became of it. */
  | { readonly type: 'unknown'; readonly op: string; readonly object: string; readonly why: string }
  /** A read of an object; `since` is the number of entries when it was sent. */
  | { readonly type: 'read'; readonly object: string; readonly version: number; readonly since: number }
  /** A stream begins, or goes on after a cursor. */
  | { readonly type: 'opened'; readonly mode: StreamMode; readonly after: string | null }
  | { readonly type: 'event'; readonly object: string; readonly version: number; readonly cursor: string }
  /** A snapshot of LATEST is complete. */
  | { readonly type: 'snapshot'; readonly cursor: string; readonly objects: ReadonlyMap<string, number> }
  | { readonly type: 'bookmark'; readonly cursor: string }
  /** What was held means nothing any more; a snapshot follows. */
  | { readonly type: 'reset'; readonly why: string }
  /** The operation or its connection ended. */
  | { readonly type: 'ended'; readonly code: string }
  | { readonly type: 'fault'; readonly fault: string };

export interface Recorder {
  readonly entries: readonly Entry[];
  add(who: string, server: string, deed: Deed): void;
  count(type: Deed['type']): number;
  /** One JSON object a line; what the database's log said comes behind. */
  save(file: string, log: readonly object[]): void;
}

/** Above it a run keeps nothing but counts and is refused: a validator must never judge half of what happened. */
const ENTRIES_MAX = 20_000_000;
const LINES_AT_ONCE = 10_000;

export function createRecorder(): Recorder {
  const entries: Entry[] = [];
  const counts = new Map<Deed['type'], number>();
  // Shared executions send one text to many: kept once.
  const texts = new Map<string, string>();
  const shared = (text: string): string => {
    const known = texts.get(text);
    if (known !== undefined) return known;
    texts.set(text, text);
    return text;
  };
  return {
    entries,
    add(who, server, deed) {
      if (entries.length >= ENTRIES_MAX) throw new Error(`a history holds at most ${ENTRIES_MAX} entries`);
      counts.set(deed.type, (counts.get(deed.type) ?? 0) + 1);
      const kept = 'cursor' in deed ? { ...deed, cursor: shared(deed.cursor) } : deed;
      entries.push({ n: entries.length, ms: Date.now(), who, server, ...kept });
    },
    count: (type) => counts.get(type) ?? 0,
    save(file, log) {
      mkdirSync(dirname(file), { recursive: true });
      const plain = (_key: string, value: unknown): unknown => {
        if (value instanceof Map) return Object.fromEntries(value as Map<string, unknown>);
        return typeof value === 'bigint' ? String(value) : value;
      };
      // In pieces: one text of a long history would be longer than a text can be.
      const written = openSync(file, 'w');
      for (const part of [entries, log.map((row) => ({ type: 'logged', ...row }))]) {
        for (let from = 0; from < part.length; from += LINES_AT_ONCE) {
          const lines = part.slice(from, from + LINES_AT_ONCE);
          writeSync(written, lines.map((line) => `${JSON.stringify(line, plain)}\n`).join(''));
        }
      }
      closeSync(written);
    },
  };
}
