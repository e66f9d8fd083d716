import { nameOf } from '../log-index.js';
import { findings, streamsOf, where, type Validator } from './judged.js';

/** No version comes twice on a stream of every transition, across all its resumes; and none that is not in the log. */
export const unique: Validator = ({ entries, log }) => {
  const found = findings();
  for (const { mode, sessions } of streamsOf(entries)) {
    const told = new Set<string>();
    for (const session of sessions) {
      for (const entry of session.entries) {
        if (entry.type !== 'event') continue;
        const name = nameOf(entry);
        if (!log.row(entry.object, entry.version)) found.add(`${where(session)}: ${name} is not in the log`);
        if (mode === 'EVERY' && told.has(name)) found.add(`${where(session)}: ${name} was told twice`);
        told.add(name);
      }
    }
  }
  return found.said;
};
