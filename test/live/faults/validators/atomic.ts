import { covers, nameOf, takes, type LogIndex } from '../log-index.js';
import { newestCovered } from './held.js';
import { findings, streamsOf, where, type StreamHistory, type Validator } from './judged.js';

/**
 * A cursor between two changes of one transaction covers those that were told and leaves the rest to come; a snapshot holds
 * exactly what its place in the log covers, of each transaction all or nothing.
 */
export const atomic: Validator = ({ entries, log }) => {
  const found = findings();
  for (const stream of streamsOf(entries)) {
    for (const text of stream.mode === 'EVERY' ? torn(stream, log) : blurred(stream, log)) found.add(text);
  }
  return found.said;
};

function torn({ sessions }: StreamHistory, log: LogIndex): readonly string[] {
  const start = sessions[0]?.after;
  if (start === undefined || start === null) return [];
  const said: string[] = [];
  const told = new Set<string>();
  for (const session of sessions) {
    for (const entry of session.entries) {
      if (entry.type !== 'event') continue;
      told.add(nameOf(entry));
      const row = log.row(entry.object, entry.version);
      if (!row) continue;
      for (const part of log.ofTransaction(row.xid)) {
        if (!takes('EVERY', part) || covers(start, part)) continue;
        if (covers(entry.cursor, part) === told.has(nameOf(part))) continue;
        const what = told.has(nameOf(part)) ? 'does not cover what was told' : 'hides what was not told';
        said.push(
          `${where(session)}: the cursor of ${nameOf(row)} ${what}: ${nameOf(part)} of its transaction`,
        );
      }
    }
  }
  return said;
}

function blurred({ sessions }: StreamHistory, log: LogIndex): readonly string[] {
  const said: string[] = [];
  for (const session of sessions) {
    for (const entry of session.entries) {
      if (entry.type !== 'snapshot') continue;
      const covered = newestCovered(log, entry.cursor);
      for (const object of new Set([...covered.keys(), ...entry.objects.keys()])) {
        const [has, belongs] = [entry.objects.get(object), covered.get(object)];
        if (has !== belongs) {
          said.push(
            `${where(session)}: a snapshot holds ${object}@${has ?? 'nothing'}, its place covers @${belongs ?? 'nothing'}`,
          );
        }
      }
    }
  }
  return said;
}
