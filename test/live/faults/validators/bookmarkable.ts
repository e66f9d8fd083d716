import { covers, nameOf, type LogIndex } from '../log-index.js';
import { hold, missed } from './held.js';
import { findings, streamsOf, where, type Session, type Validator } from './judged.js';

/** A bookmark promises that everything before it was told: nothing that its cursor covers is missing, or comes later. */
export const bookmarkable: Validator = ({ entries, log }) => {
  const found = findings();
  for (const { sessions } of streamsOf(entries)) {
    const held = new Map<string, number>();
    for (const session of sessions) for (const text of judge(session, held, log)) found.add(text);
  }
  return found.said;
};

function judge(session: Session, held: Map<string, number>, log: LogIndex): readonly string[] {
  const said: string[] = [];
  const told = new Set<string>();
  /** From where on the bookmarks of this session can be judged. */
  let since = session.after;
  let bookmark: string | undefined;
  for (const entry of session.entries) {
    hold(held, entry);
    if (entry.type === 'reset') since = null;
    else if (entry.type === 'snapshot') since = entry.cursor;
    else if (entry.type === 'event') {
      told.add(nameOf(entry));
      const row = log.row(entry.object, entry.version);
      if (bookmark !== undefined && row && covers(bookmark, row)) {
        said.push(`${where(session)}: ${nameOf(entry)} came behind a bookmark that covers it`);
      }
    } else if (entry.type === 'bookmark') {
      bookmark = entry.cursor;
      if (since === null) continue;
      for (const row of log.between(since, bookmark, session.mode)) {
        const known = session.mode === 'EVERY' ? told.has(nameOf(row)) : !missed(log, held, row, entry);
        if (!known) said.push(`${where(session)}: a bookmark covers ${nameOf(row)}, which was not told`);
      }
      since = bookmark; // what it covers is judged
    }
  }
  return said;
}
