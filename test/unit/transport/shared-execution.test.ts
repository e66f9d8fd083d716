import { describe, expect, it } from 'vitest';

import { localActor } from '../../../src/access/actor.js';
import type { SourceEvent } from '../../../src/graph/stream-field.js';
import type { Prepared } from '../../../src/transport/pipeline.js';
import { createSharedExecution } from '../../../src/transport/shared-execution.js';

const caller = { actor: localActor(), requestId: 'r', traceId: null };
const prepared = { variables: {}, cost: 1 } as unknown as Prepared; // only handed on
const event = (n: number, share: object | null = { n }): SourceEvent => ({
  value: n,
  cursor: `c${n}`,
  share,
  variant: 'CHANGED',
});
const KIB = 1_024;

/** Executions are counted and give a text of a KiB; late ones as a promise. */
function sharing(late = false) {
  const executed: unknown[] = [];
  const shared = createSharedExecution(
    {
      shareKey: () => 'one class',
      runEvent(_prepared, _caller, { value }) {
        executed.push(value);
        const answer = { data: { value, text: 'x'.repeat(KIB) } };
        return late ? Promise.resolve(answer) : answer;
      },
    },
    { onExecuted: () => undefined, keepBytes: 20 * KIB },
  );
  return { shared, executed, group: shared.join(prepared, caller) };
}

describe('shared execution', () => {
  it.each([false, true])('keeps the newest results, and no more than its bytes (late: %s)', async (late) => {
    const { shared, executed, group } = sharing(late);
    const events = Array.from({ length: 100 }, (_, n) => event(n));
    for (const one of events) {
      await shared.payload(group, caller, one);
      expect(shared.keptBytes).toBeLessThanOrEqual(20 * KIB);
    }
    expect(executed).toHaveLength(100);
    const [oldest, newest] = [events[0], events[95]];
    if (!oldest || !newest) throw new Error('a hundred events');
    await shared.payload(group, caller, newest);
    expect(executed).toHaveLength(100);
    await shared.payload(group, caller, oldest);
    expect(executed).toHaveLength(101);
  });

  it('keeps nothing of what is nobody else’s', () => {
    const { shared, executed, group } = sharing();
    void shared.payload(group, caller, event(1, null));
    void shared.payload(group, caller, event(1, null));
    expect([executed.length, shared.keptBytes]).toEqual([2, 0]);
  });

  it('gives a later group nothing of one whose last member left', () => {
    const { shared, executed, group } = sharing();
    const one = event(1);
    void shared.payload(group, caller, one);
    shared.leave(group);
    expect(shared.groups).toBe(0);
    void shared.payload(shared.join(prepared, caller), caller, one);
    expect(executed).toEqual([1, 1]);
  });
});
