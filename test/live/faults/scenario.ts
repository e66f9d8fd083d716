/** A scenario has one body and two sizes: what `npm test` has time for, and what `npm run soak` is for. */
import type { Failpoint } from '../../../src/kernel/failpoints.js';
import type { FaultName } from './faults.js';
import type { RunContext, Verdict } from './run.js';

export type Size = Readonly<Record<string, number>>;

export interface Scenario<S extends Size = Size> {
  readonly name: string;
  /** What it shows. */
  readonly shows: string;
  readonly small: S;
  readonly full: S;
  /** Which of the sizes `--rounds` and `--minutes` stand for, where they do. */
  readonly rounds?: keyof S & string;
  readonly minutes?: keyof S & string;
  /** Failpoints that it hits for certain, in any size. */
  readonly points?: readonly Failpoint[];
  readonly faults?: readonly FaultName[];
  run(context: RunContext, size: S): Promise<Verdict>;
}

export function scenario<S extends Size>(one: Scenario<S>): Scenario<S> {
  return one;
}
