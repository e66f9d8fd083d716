/**
 * A source that is read without waiting: take what is there, and be woken when there may be more. Ten thousand readers of one
 * change are then one plain loop; a promise each would cost several times what they do with it.
 */
export interface Reader {
  /** Must not throw. */
  wake(): void;
}

export interface Tap<T> {
  /** What is there now, in order. Undefined: nothing now, or nothing ever again (`ended`). Throws once when it ends by an error. */
  take(): T | undefined;
  /** Nothing comes any more. What `take` throws may still be to come. */
  readonly ended: boolean;
  /** Wakes the reader once, as soon as `take` may have something to tell, its end included. One reader at a time. */
  wait(reader: Reader): void;
}

/** For readers who would rather wait. Undefined: ended. */
export async function nextOf<T>(tap: Tap<T>): Promise<T | undefined> {
  for (;;) {
    const item = tap.take();
    if (item !== undefined || tap.ended) return item;
    await new Promise<void>((resolve) => {
      tap.wait({ wake: resolve });
    });
  }
}
