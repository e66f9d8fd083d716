/** How quickly old payloads go while somebody patches, and what that costs the patches. */
import { createRetention } from '../../src/changes/retention.js';
import { openStore } from '../../test/support/open-store.js';
import type { TestDatabase } from '../../test/support/test-server.js';

export interface Pruning {
  readonly rows: number;
  readonly rowsPerSecond: number;
  /** Milliseconds of a patch, before and meanwhile. */
  readonly before: readonly number[];
  readonly meanwhile: readonly number[];
}

/** One pass with the shortest age that there is: most payloads of the fleet are older. */
export async function prune(
  database: TestDatabase,
  patch: () => Promise<void>,
  seconds: number,
): Promise<Pruning> {
  const timed = async () => {
    const begun = performance.now();
    await patch();
    return performance.now() - begun;
  };
  const before: number[] = [];
  for (const end = performance.now() + seconds * 1_000; performance.now() < end;) before.push(await timed());
  const store = openStore(database, 'slipway-bench', 2);
  try {
    const begun = performance.now();
    const pruning = { over: false };
    const pass = createRetention({ database: store, payloadDays: 0 })
      .run()
      .finally(() => (pruning.over = true));
    const meanwhile: number[] = [];
    do meanwhile.push(await timed());
    while (!pruning.over);
    const { payloads } = await pass;
    const rowsPerSecond = (payloads * 1_000) / (performance.now() - begun);
    return { rows: payloads, rowsPerSecond, before, meanwhile };
  } finally {
    await store.close();
  }
}
