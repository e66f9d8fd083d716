import type { Clock } from '../kernel/clock.js';
import { done, notFound, refused, versionConflict, type Failure, type Outcome } from '../kernel/failure.js';
import { redecide } from '../kernel/redecide.js';

/** What was decided about one version of a row, and how to write it. */
export type RowDecision<Row> =
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'refused'; readonly failure: Failure<never> }
  /** Undefined from `write`: the row had moved on from the version that was decided on. */
  | { readonly kind: 'applied'; readonly write: () => Promise<Row | undefined> };

export interface RowChange<Row> {
  /** For messages: `deployment`. */
  readonly what: string;
  /** Without one the change is meant for whatever the row is: it is read and decided on again until it fits. */
  readonly expectedVersion: number | undefined;
  readonly read: () => Promise<Row | undefined>;
  readonly decide: (row: Row) => RowDecision<Row>;
}

/** Read, decide, write with the version that was decided on. A change that changes nothing writes nothing. */
export async function changeRow<Row extends { readonly version: number }>(
  clock: Clock,
  change: RowChange<Row>,
): Promise<Outcome<Row, Failure<Row>>> {
  const { what, expectedVersion, read, decide } = change;
  let latest: Row | undefined;
  const attempt = async (): Promise<Outcome<Row, Failure<Row>> | 'again'> => {
    const row = await read();
    if (row === undefined) return notFound(what);
    latest = row;
    if (expectedVersion !== undefined && expectedVersion !== row.version) return versionConflict(what, row);
    const decision = decide(row);
    if (decision.kind === 'refused') return refused(decision.failure);
    if (decision.kind === 'unchanged') return done(row);
    const written = await decision.write();
    // With an expected version the next attempt meets it as a conflict, with the row as it is then.
    return written === undefined ? 'again' : done(written);
  };
  const outcome = await redecide(clock, Math.random, attempt);
  if (outcome !== undefined) return outcome;
  if (latest === undefined) throw new Error('decided a hundred times without a row');
  return versionConflict(what, latest);
}
