import type { Caller } from '../access/caller.js';
import type { FailureKind } from '../kernel/failure.js';
import type { PublicReads } from '../store/public-types.js';
import { createLoaders, type Loaders } from './loaders.js';

/**
 * What resolvers get: who asks, and loaders that show only what that caller may see. No database handle.
 *
 * Made once for each query or mutation, and once for each event of a subscription.
 */
export interface Context {
  readonly caller: Caller;
  readonly load: Loaders;
  /** A mutation ended in a failure of this kind: for the metrics. */
  failed(kind: FailureKind): void;
}

export function contextFactory(
  reads: PublicReads,
  onFailure: (kind: FailureKind) => void = () => undefined,
): (caller: Caller) => Context {
  return (caller) => {
    let load: Loaders | undefined;
    return {
      caller,
      failed: onFailure,
      // Most events select no relation and need no loader.
      get load() {
        return (load ??= createLoaders(reads, caller));
      },
    };
  };
}
