/**
 * Bugs that were found and mended, each with the run that would find it again. A seed decides the order of the faults and
 * what each of them hits; the moments are the machine's, so a run is repeated rather than replayed to the instruction.
 */
export interface PastBug {
  readonly was: string;
  /** By its name in SCENARIOS. */
  readonly scenario: string;
  readonly seed: number;
}

export const PAST_BUGS: readonly PastBug[] = [
  {
    was: 'A resumed stream lost a change: a crash of PostgreSQL gave the id of a transaction that had been rolled back to another one, which the cursor already counted as ended.',
    scenario: 'database-stops',
    seed: 11,
  },
  {
    was: 'A session of the pool that broke while it was lent out, between two statements, ended the process with an error that nobody heard.',
    scenario: 'chaos',
    seed: 2,
  },
  {
    was: 'SIGTERM during a start ended the process without closing what it had opened.',
    scenario: 'starts',
    seed: 3,
  },
  {
    was: 'A date beyond the year 9999, written beside the server, could not be decoded and stopped the feed.',
    scenario: 'chaos',
    seed: 5,
  },
  {
    was: 'A sweep judged an agent by an older snapshot while a beat committed beside it, and left it UNAVAILABLE although it beat.',
    scenario: 'replica-kills',
    seed: 4,
  },
  {
    was: 'A drain waited to its end for the body of a request that never came.',
    scenario: 'drains',
    seed: 6,
  },
];

export const commandOf = ({ scenario, seed }: Pick<PastBug, 'scenario' | 'seed'>): string =>
  `npm run soak -- ${scenario} --small --seed ${seed}`;
