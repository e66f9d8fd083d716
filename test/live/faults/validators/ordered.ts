import { findings, streamsOf, where, type Validator } from './judged.js';

/**
 * Versions of an object rise on each stream, resumes included; after a reset from the snapshot on. Changes of one
 * transaction come in the order in which it made them.
 */
export const ordered: Validator = ({ entries, log }) => {
  const found = findings();
  for (const { mode, sessions } of streamsOf(entries)) {
    let newest = new Map<string, number>();
    let last: { readonly xid: bigint; readonly seq: bigint } | undefined;
    for (const session of sessions) {
      for (const entry of session.entries) {
        if (entry.type === 'snapshot') newest = new Map(entry.objects);
        if (entry.type !== 'event') continue;
        const { object, version } = entry;
        const before = newest.get(object) ?? 0;
        if (version <= before) found.add(`${where(session)}: ${object}@${version} after @${before}`);
        newest.set(object, version);
        const row = log.row(object, version);
        if (mode === 'LATEST' || !row) continue;
        if (row.xid === last?.xid && row.seq <= last.seq) {
          found.add(`${where(session)}: ${object}@${version} came behind a later change of its transaction`);
        }
        last = row;
      }
    }
  }
  return found.said;
};
