/**
 * Lets at most `max` pieces of work through at a time; the others wait in the order they came. Who waits is not
 * bounded here: callers are bounded where they come in.
 */
export function turnstile(max: number): <T>(work: () => Promise<T>) => Promise<T> {
  let inside = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (inside < max) {
      inside += 1;
    } else {
      // The place is handed over, never given up in between: `inside` stays as it is.
      await new Promise<void>((enter) => {
        waiting.push(enter);
      });
    }
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else inside -= 1;
    }
  };
}
