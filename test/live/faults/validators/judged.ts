/** What validators judge, and the streams of a history taken apart. */
import type { Entry, StreamMode } from '../history.js';
import type { LogIndex } from '../log-index.js';

export interface Judged {
  readonly entries: readonly Entry[];
  readonly log: LogIndex;
  /** The version of each deployment that is in its table, not deleted. */
  readonly stored: ReadonlyMap<string, number>;
  /** A cursor behind the last change: streams that are still open must have come this far. Null: nothing is said of it. */
  readonly end: string | null;
}

/** Says what is wrong, a sentence for each; nothing if all is well. */
export type Validator = (judged: Judged) => readonly string[];

export type StreamEntry = Extract<
  Entry,
  { readonly type: 'event' | 'snapshot' | 'bookmark' | 'reset' | 'ended' }
>;

/** From one opening to the next. */
export interface Session {
  readonly who: string;
  readonly server: string;
  readonly mode: StreamMode;
  readonly after: string | null;
  readonly entries: readonly StreamEntry[];
}

export interface StreamHistory {
  readonly who: string;
  readonly mode: StreamMode;
  readonly sessions: readonly Session[];
}

export function streamsOf(entries: readonly Entry[]): readonly StreamHistory[] {
  const streams = new Map<string, { mode: StreamMode; sessions: (Session & { entries: StreamEntry[] })[] }>();
  for (const entry of entries) {
    if (entry.type === 'opened') {
      const { who, server, mode, after } = entry;
      const stream = streams.get(who) ?? { mode, sessions: [] };
      stream.sessions.push({ who, server, mode, after, entries: [] });
      streams.set(who, stream);
    } else if (isStreamEntry(entry)) {
      const session = streams.get(entry.who)?.sessions.at(-1);
      if (!session) throw new Error(`${entry.who} was told something before it opened a stream`);
      session.entries.push(entry);
    }
  }
  return [...streams].map(([who, { mode, sessions }]) => ({ who, mode, sessions }));
}

function isStreamEntry(entry: Entry): entry is StreamEntry {
  return ['event', 'snapshot', 'bookmark', 'reset', 'ended'].includes(entry.type);
}

/** Where the session's reader stands at its end; null if it was told nothing that could be resumed from. */
export function lastCursor({ after, entries }: Session): string | null {
  let cursor = after;
  for (const entry of entries) {
    if ('cursor' in entry) cursor = entry.cursor;
    else if (entry.type === 'reset') cursor = null;
  }
  return cursor;
}

/** When it came there; Infinity if it was told nothing. */
export function arrivedMs({ entries }: Session): number {
  return entries.findLast((entry) => 'cursor' in entry)?.ms ?? Infinity;
}

export const where = ({ who, server }: Pick<Entry, 'who' | 'server'>): string => `${who} on ${server}`;

/** Bounds what a validator says: the first few tell what happened. */
const SAID_MAX = 20;

export function findings(): { add(text: string): void; readonly said: readonly string[] } {
  const said: string[] = [];
  let more = 0;
  return {
    add(text) {
      if (said.length < SAID_MAX) said.push(text);
      else more += 1;
    },
    get said() {
      return more === 0 ? said : [...said, `… and ${more} more`];
    },
  };
}
