import type { Entry } from '../history.js';
import type { LogIndex, LoggedChange } from '../log-index.js';
import { findings, type Judged, type Validator } from './judged.js';

/**
 * Each acknowledged mutation has exactly one change, of the version that was told; one of unknown outcome happened once or
 * never; a refused one never. An object's versions count up by one without a gap, as far as its row says. What was
 * acknowledged or read before something was sent lies before it.
 */
export const durable: Validator = (judged) => [
  ...outcomes(judged.entries, judged.log),
  ...chains(judged),
  ...realTime(judged.entries),
];

function outcomes(entries: readonly Entry[], log: LogIndex): readonly string[] {
  const found = findings();
  const made = new Map<string, LoggedChange[]>();
  for (const row of log.rows) {
    if (row.message?.startsWith('op-') !== true) continue;
    const known = made.get(row.message);
    if (known) known.push(row);
    else made.set(row.message, [row]);
  }
  for (const [op, rows] of made) if (rows.length > 1) found.add(`${op} happened ${rows.length} times`);
  const answered = new Map<string, number>();
  for (const entry of entries) {
    if (entry.type === 'acknowledged') {
      const [row] = made.get(entry.op) ?? [];
      if (!row) found.add(`${entry.op} was acknowledged by ${entry.server} and is not in the log`);
      else if (row.object !== entry.object || row.version !== entry.version) {
        found.add(
          `${entry.op} was acknowledged as ${entry.object}@${entry.version} and made ${row.object}@${row.version}`,
        );
      }
      const before = answered.get(entry.op) ?? entry.version;
      if (before !== entry.version) {
        found.add(`${entry.op} was acknowledged as @${before} and as @${entry.version}`);
      }
      answered.set(entry.op, entry.version);
    } else if (entry.type === 'refused' && made.has(entry.op)) {
      found.add(`${entry.op} was refused (${entry.why}) and happened`);
    }
  }
  return found.said;
}

function chains({ log, stored }: Judged): readonly string[] {
  const found = findings();
  for (const [object, rows] of log.objects) {
    for (const [index, { version }] of rows.entries()) {
      if (version !== index + 1) {
        found.add(`${object} has version ${version} where ${index + 1} belongs`);
        break;
      }
    }
    const row = stored.get(object);
    if (row !== undefined && row !== rows.length) {
      found.add(`${object} is at version ${row} and has ${rows.length} changes`);
    }
  }
  for (const object of stored.keys()) if (!log.objects.has(object)) found.add(`${object} has no change`);
  return found.said;
}

function realTime(entries: readonly Entry[]): readonly string[] {
  const found = findings();
  /** The newest version of each object that was known at an entry, by the entries that told a newer one. */
  const known = new Map<string, { readonly n: number; readonly version: number }[]>();
  const firstSent = new Map<string, number>();
  for (const entry of entries) {
    if (entry.type === 'sent' && !firstSent.has(entry.op)) firstSent.set(entry.op, entry.n);
    if (entry.type !== 'acknowledged' && entry.type !== 'read') continue;
    const steps = known.get(entry.object) ?? [];
    const since = entry.type === 'read' ? entry.since : (firstSent.get(entry.op) ?? entry.n);
    const before = steps.findLast(({ n }) => n < since)?.version ?? 0;
    const tooOld = entry.type === 'read' ? entry.version < before : entry.version <= before;
    if (tooOld) {
      found.add(
        `${entry.who}: ${entry.type} ${entry.object}@${entry.version} on ${entry.server}, after @${before} was known`,
      );
    }
    if (entry.version > (steps.at(-1)?.version ?? 0)) {
      steps.push({ n: entry.n, version: entry.version });
      known.set(entry.object, steps);
    }
  }
  return found.said;
}
