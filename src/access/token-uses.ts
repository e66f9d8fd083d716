import type { Clock } from '../kernel/clock.js';
import type { TokenId } from '../kernel/ids.js';
import type { Queryable } from '../store/database.js';
import { LRUCache } from 'lru-cache';

import { tokenRecordUse } from './store.js';

/** When a token was last used: noted on the way, at most once a minute a token, and written in batches. */
const NOTE_EVERY_MS = 60_000;
/** Beyond it a token's use may be noted more often, or one be left out until the next batch: no more than that. */
const TOKENS_MAX = 10_000;

export interface TokenUses {
  note(id: TokenId): void;
  flush(): Promise<void>;
}

export function tokenUses(pool: Queryable, clock: Clock): TokenUses {
  const notedMs = new LRUCache<TokenId, number>({ max: TOKENS_MAX });
  let waiting = new Map<TokenId, Date>();
  return {
    note(id) {
      const nowMs = clock.monotonicMs();
      const lastMs = notedMs.get(id);
      if ((lastMs !== undefined && nowMs - lastMs < NOTE_EVERY_MS) || waiting.size >= TOKENS_MAX) return;
      notedMs.set(id, nowMs);
      waiting.set(id, clock.now());
    },
    async flush() {
      if (waiting.size === 0) return;
      const batch = waiting;
      waiting = new Map();
      try {
        await tokenRecordUse(pool, batch);
      } catch (error) {
        // Not lost, unless a later use is waiting by now.
        waiting = new Map([...batch, ...waiting]);
        throw error;
      }
    },
  };
}
