import { nameOf } from '../log-index.js';
import { hold, missed, newestCovered } from './held.js';
import {
  arrivedMs,
  findings,
  lastCursor,
  streamsOf,
  type Judged,
  type StreamHistory,
  type Validator,
} from './judged.js';

/**
 * Nothing is lost. A stream of every transition was told each one between where it began and where it stands; the reader
 * of the newest state holds, of each object, what its place covers. Who is still open has come to the end.
 */
export const reliable: Validator = (judged) => {
  const found = findings();
  for (const stream of streamsOf(judged.entries)) {
    const last = stream.sessions.at(-1);
    const place = last && lastCursor(last);
    if (last && place && stillOpen(stream) && judged.end !== null) {
      const rest = judged.log
        .between(place, judged.end, stream.mode)
        .filter((row) => !isTold(stream, nameOf(row)));
      if (rest[0]) {
        found.add(`${stream.who}: ${rest.length} changes are still to come, first ${nameOf(rest[0])}`);
      }
    }
    for (const text of stream.mode === 'EVERY' ? missing(stream, judged) : behind(stream, judged)) {
      found.add(text);
    }
  }
  return found.said;
};

function stillOpen({ sessions }: StreamHistory): boolean {
  return sessions.at(-1)?.entries.at(-1)?.type !== 'ended';
}

function isTold({ sessions }: StreamHistory, name: string): boolean {
  return sessions.some(({ entries }) =>
    entries.some((entry) => entry.type === 'event' && nameOf(entry) === name),
  );
}

function missing({ who, sessions }: StreamHistory, { log }: Judged): readonly string[] {
  const [first] = sessions;
  const last = sessions.at(-1);
  const place = last && lastCursor(last);
  if (!first || first.after === null || !place) return [];
  const told = new Set<string>();
  for (const { entries } of sessions) {
    for (const entry of entries) if (entry.type === 'event') told.add(nameOf(entry));
  }
  return log
    .between(first.after, place, 'EVERY')
    .filter((row) => !told.has(nameOf(row)))
    .map((row) => `${who}: lost ${nameOf(row)}`);
}

function behind({ who, sessions }: StreamHistory, { log }: Judged): readonly string[] {
  const held = new Map<string, number>();
  for (const { entries } of sessions) for (const entry of entries) hold(held, entry);
  const last = sessions.at(-1);
  const place = last && lastCursor(last);
  if (!place) return [];
  const ms = Math.max(...sessions.map(arrivedMs).filter(Number.isFinite));
  return [...newestCovered(log, place)].flatMap(([object, version]) => {
    const row = log.row(object, version);
    if (!row || !missed(log, held, row, { cursor: place, ms })) return [];
    return [`${who}: holds ${object}@${held.get(object) ?? 0}, its place covers @${version}`];
  });
}
