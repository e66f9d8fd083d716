import type { StreamCondition } from './resume-model.js';
import type { StreamStatus } from './stream.js';

export interface ClientStatus {
  /** `idle` while no subscription is open; else the worst of all that are. */
  readonly condition: StreamCondition | 'idle';
  readonly subscriptions: number;
  /** The one that `condition` was taken from; null while idle. */
  readonly worst: StreamStatus | null;
}

const SEVERITY: Readonly<Record<StreamCondition, number>> = {
  ended: 0,
  connected: 1,
  connecting: 2,
  resyncing: 3,
  reconnecting: 4,
};

/** What a page with many subscriptions says in one place. `tell` hears each change once. */
export function statusBoard(tell: (status: ClientStatus) => void): {
  set(stream: object, status: StreamStatus): void;
} {
  const streams = new Map<object, StreamStatus>();
  let told = '';
  return {
    set(stream, status) {
      if (status.condition === 'ended') streams.delete(stream);
      else streams.set(stream, status);
      const all = [...streams.values()];
      const worst = all.reduce<StreamStatus | null>(
        (found, one) => (found === null || SEVERITY[one.condition] > SEVERITY[found.condition] ? one : found),
        null,
      );
      const next: ClientStatus = { condition: worst?.condition ?? 'idle', subscriptions: all.length, worst };
      const text = JSON.stringify(next);
      if (text === told) return;
      told = text;
      tell(next);
    },
  };
}
