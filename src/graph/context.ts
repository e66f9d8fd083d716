import type { Caller } from '../access/caller.js';
import type { FailureKind } from '../kernel/failure.js';

/** What resolvers get beside their arguments: who asks. No database handle. Made once for each execution. */
export interface Context {
  readonly caller: Caller;
  /** A mutation ended in a failure of this kind: for the metrics. */
  failed(kind: FailureKind): void;
}

export function contextFactory(
  onFailure: (kind: FailureKind) => void = () => undefined,
): (caller: Caller) => Context {
  return (caller) => ({ caller, failed: onFailure });
}
