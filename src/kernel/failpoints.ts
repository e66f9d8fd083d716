/**
 * The places where a test may interrupt a server: hold it, make it fail, end it. Each is named for what it interrupts.
 * No setting reaches them: only whoever calls `startSlipway` with hooks of their own does, and without hooks the code that
 * would call them is not even there (`store/interrupt.ts`).
 */
export const FAILPOINTS = {
  'write.before': 'A statement that commits by itself is about to be sent.',
  'write.after': 'It has committed; who asked for it has not been told.',
  'commit.before': 'A transaction has done its work and is about to commit.',
  'commit.after': 'It has committed; who asked for it has not been told.',
  'wake.own': 'The feed of this process is about to hear of a commit of this process.',
  'feed.open': 'The feed is about to open its session.',
  'feed.step': 'The feed is about to run a statement.',
  'listen.open': 'The session that hears of the commits of other processes is about to be opened.',
  'notify.send': 'Other processes are about to be told of a commit.',
  'snapshot.read':
    'A statement of the transaction that reads a snapshot for subscribers is about to be sent.',
  'replay.read': 'A stream that resumes is about to read in the log.',
} as const;
export type Failpoint = keyof typeof FAILPOINTS;

export interface Failpoints {
  /** What is at the point waits for this, and fails if it rejects. */
  reach(point: Failpoint): Promise<void>;
}
