import { covers, nameOf, type LogIndex } from '../log-index.js';
import { hold, missed, type Place } from './held.js';
import { arrivedMs, findings, lastCursor, streamsOf, where, type Session, type Validator } from './judged.js';

/**
 * Who resumes by a cursor, on whichever server, goes on exactly behind it: is told nothing that it covers, and everything
 * from there to where the session ended.
 */
export const resumable: Validator = ({ entries, log }) => {
  const found = findings();
  for (const { mode, sessions } of streamsOf(entries)) {
    const held = new Map<string, number>();
    let place: string | null = sessions[0]?.after ?? null;
    for (const session of sessions) {
      if (session.after !== place) found.add(`${where(session)}: did not resume where it stood`);
      place = lastCursor(session);
      for (const entry of session.entries) hold(held, entry);
      if (session.after === null || session.entries.some(({ type }) => type === 'reset')) continue;
      for (const entry of session.entries) {
        if (entry.type !== 'event') continue;
        const row = log.row(entry.object, entry.version);
        if (row && covers(session.after, row)) {
          found.add(`${where(session)}: told ${nameOf(entry)}, which its cursor covers`);
        }
      }
      if (place === null) continue;
      const skipped =
        mode === 'EVERY'
          ? untold(session, place, log)
          : unheld(held, session.after, { cursor: place, ms: arrivedMs(session) }, log);
      for (const name of skipped) found.add(`${where(session)}: went past ${name}`);
    }
  }
  return found.said;
};

function untold(session: Session, place: string, log: LogIndex): readonly string[] {
  const told = new Set(session.entries.flatMap((entry) => (entry.type === 'event' ? [nameOf(entry)] : [])));
  return log
    .between(session.after ?? place, place, 'EVERY')
    .map(nameOf)
    .filter((name) => !told.has(name));
}

function unheld(
  held: ReadonlyMap<string, number>,
  after: string,
  place: Place,
  log: LogIndex,
): readonly string[] {
  return log
    .between(after, place.cursor, 'LATEST')
    .filter((row) => missed(log, held, row, place))
    .map(nameOf);
}
