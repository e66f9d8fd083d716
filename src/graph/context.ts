import type { Caller } from '../access/caller.js';
import type { FailureKind } from '../kernel/failure.js';
import { readTurns, type ReadTurns } from '../kernel/read-turns.js';

/** What resolvers get beside their arguments: who asks. No database handle. Made once for each execution. */
export interface Context {
  readonly caller: Caller;
  /** Of what is read for this execution. */
  readonly turns: ReadTurns;
  /** A mutation ended in a failure of this kind: for the metrics. */
  failed(kind: FailureKind): void;
}

/** `turns`: if somebody else is to end them. */
export type ContextFactory = (caller: Caller, turns?: ReadTurns) => Context;

export function contextFactory(onFailure: (kind: FailureKind) => void = () => undefined): ContextFactory {
  return (caller, turns = readTurns()) => ({ caller, turns, failed: onFailure });
}
