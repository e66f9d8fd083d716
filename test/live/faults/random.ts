/** Chance that comes again with its seed. */
export interface Random {
  readonly seed: number;
  /** In [0, 1). */
  next(): number;
  /** From 0 to below `bound`. */
  below(bound: number): number;
  pick<T>(from: readonly T[]): T;
  /** Chance of its own for one actor, so that the actors do not depend on the order in which they run. */
  fork(name: string): Random;
}

export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  // mulberry32: small, and good enough to choose faults by.
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (bound: number): number => Math.floor(next() * bound);
  return {
    seed,
    next,
    below,
    pick<T>(from: readonly T[]): T {
      const picked = from[below(from.length)];
      if (picked === undefined) throw new RangeError('nothing to pick from');
      return picked;
    },
    fork: (name) =>
      seededRandom([...name].reduce((sum, letter) => Math.imul(sum, 31) + letter.charCodeAt(0), seed)),
  };
}
