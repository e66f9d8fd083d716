import type { TransportLimits } from './limits.js';
import type { Outlet } from './outlet.js';

/**
 * Judges whether a connection lives, by what it answers and what it takes. Pure but for its own memory: the sweep says
 * what time it is. A reader that is slow but still reads is given `stalledMs`; one that neither answers nor takes
 * anything is ended after the pong's deadline.
 */
export type Verdict = 'fine' | 'ping' | 'silent' | 'stalled' | 'aged';

type LivenessLimits = Pick<
  TransportLimits,
  'pingEveryMs' | 'pongWithinMs' | 'connectionAgeMs' | 'stalledBytes' | 'stalledMs'
>;

export class Liveness {
  readonly #limits: LivenessLimits;
  readonly #ageAtMs: number;
  #pingAtMs: number;
  /** When the unanswered ping was sent. */
  #askedAtMs: number | undefined;
  #drainedWhenAsked = 0;
  #overSinceMs: number | undefined;
  #pausedSinceMs: number | undefined;
  #drainedWhenPaused = 0;

  /** `random` is in [0, 1): ages and first pings are spread by it. */
  constructor(limits: LivenessLimits, nowMs: number, random: () => number) {
    this.#limits = limits;
    this.#ageAtMs = nowMs + limits.connectionAgeMs * (0.9 + 0.2 * random());
    this.#pingAtMs = nowMs + limits.pingEveryMs * (0.5 + 0.5 * random());
  }

  /** The peer said something, whatever it was. */
  heard(): void {
    this.#askedAtMs = undefined;
  }

  /** 'ping' means: send one now; it is taken for sent. */
  judge(outlet: Pick<Outlet, 'unsentBytes' | 'drainedBytes' | 'paused'>, nowMs: number): Verdict {
    if (this.#stalled(outlet, nowMs)) return 'stalled';
    if (this.#askedAtMs !== undefined && nowMs - this.#askedAtMs >= this.#limits.pongWithinMs) {
      const takes = outlet.drainedBytes > this.#drainedWhenAsked && outlet.unsentBytes > 0;
      if (!takes || nowMs - this.#askedAtMs >= this.#limits.stalledMs) return 'silent';
    }
    if (nowMs >= this.#ageAtMs) return 'aged';
    if (nowMs < this.#pingAtMs) return 'fine';
    this.#pingAtMs = nowMs + this.#limits.pingEveryMs;
    if (this.#askedAtMs === undefined) {
      this.#askedAtMs = nowMs;
      this.#drainedWhenAsked = outlet.drainedBytes;
    }
    return 'ping';
  }

  #stalled(outlet: Pick<Outlet, 'unsentBytes' | 'drainedBytes' | 'paused'>, nowMs: number): boolean {
    if (outlet.unsentBytes <= this.#limits.stalledBytes) this.#overSinceMs = undefined;
    else this.#overSinceMs ??= nowMs;
    if (!outlet.paused || outlet.drainedBytes > this.#drainedWhenPaused) {
      this.#pausedSinceMs = outlet.paused ? nowMs : undefined;
      this.#drainedWhenPaused = outlet.drainedBytes;
    } else {
      this.#pausedSinceMs ??= nowMs;
    }
    const overFor = this.#overSinceMs === undefined ? 0 : nowMs - this.#overSinceMs;
    const pausedFor = this.#pausedSinceMs === undefined ? 0 : nowMs - this.#pausedSinceMs;
    return Math.max(overFor, pausedFor) >= this.#limits.stalledMs;
  }
}
