import type { Clock } from '../../src/kernel/clock.js';

/** Time that stands still until a test moves it. Timers run in their order, as `advance` passes them. */
export class ManualClock implements Clock {
  #ms: number;
  readonly #startMs: number;
  readonly #timers = new Set<{ readonly atMs: number; readonly run: () => void }>();

  constructor(start = '2030-01-01T00:00:00.000Z') {
    this.#startMs = this.#ms = Date.parse(start);
  }

  now(): Date {
    return new Date(this.#ms);
  }

  monotonicMs(): number {
    return this.#ms - this.#startMs;
  }

  after(ms: number, run: () => void): () => void {
    const timer = { atMs: this.#ms + ms, run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Timers that wait, in how many milliseconds each. */
  get waiting(): number[] {
    return [...this.#timers].map(({ atMs }) => atMs - this.#ms).sort((a, b) => a - b);
  }

  advance(ms: number): void {
    const untilMs = this.#ms + ms;
    for (;;) {
      const next = [...this.#timers].filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0];
      if (!next) break;
      this.#timers.delete(next);
      this.#ms = Math.max(this.#ms, next.atMs);
      next.run();
    }
    this.#ms = untilMs;
  }
}
