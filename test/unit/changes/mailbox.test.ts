import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import {
  EVERY_MAX_CHANGES,
  EveryMailbox,
  LATEST_MAX_OBJECTS,
  LatestMailbox,
  MAILBOX_MAX_BYTES,
} from '../../../src/changes/mailbox.js';
import { row } from './rows.js';

const offer = (seq: number, had = true, has = true, over: Partial<Parameters<typeof row>[0]> = {}) => {
  const { change, bytes } = row({ seq, ...over });
  return { item: { type: 'change', change, had, has, cursor: change.cursor } as const, bytes };
};

describe('EveryMailbox', () => {
  it('gives each change in order', () => {
    const mailbox = new EveryMailbox();
    for (let seq = 1; seq <= 10; seq += 1) expect(mailbox.offer(offer(seq))).toBe(true);
    const taken = Array.from({ length: 10 }, () => mailbox.take()?.cursor);
    expect(taken).toEqual(Array.from({ length: 10 }, (_, i) => `cursor-${i + 1}`));
    expect(mailbox.take()).toBeUndefined();
    expect([mailbox.size, mailbox.bytes]).toEqual([0, 0]);
  });

  it('is full at its number of changes and at its bytes', () => {
    const many = new EveryMailbox();
    for (let seq = 1; seq <= EVERY_MAX_CHANGES; seq += 1) expect(many.offer(offer(seq))).toBe(true);
    expect(many.offer(offer(5_000))).toBe(false);
    expect(many.size).toBe(EVERY_MAX_CHANGES);

    const large = new EveryMailbox();
    expect(large.offer(offer(1, true, true, { bytes: MAILBOX_MAX_BYTES }))).toBe(true);
    expect(large.offer(offer(2))).toBe(false);
  });

  it('lets one change through that alone is larger than the bound', () => {
    const mailbox = new EveryMailbox();
    expect(mailbox.offer(offer(1, true, true, { bytes: 2 * MAILBOX_MAX_BYTES }))).toBe(true);
    expect(mailbox.take()?.cursor).toBe('cursor-1');
  });
});

describe('LatestMailbox', () => {
  it('keeps the newest change of an object, at the end of the queue', () => {
    const mailbox = new LatestMailbox();
    mailbox.offer(offer(1, true, true, { objectId: 'a' }));
    mailbox.offer(offer(2, true, true, { objectId: 'b' }));
    mailbox.offer(offer(3, true, true, { objectId: 'a' }));
    expect([mailbox.take()?.cursor, mailbox.take()?.cursor, mailbox.take()]).toEqual([
      'cursor-2',
      'cursor-3',
      undefined,
    ]);
  });

  it.each([
    [
      'entered and changed',
      [
        [false, true],
        [true, true],
      ],
      [false, true],
    ],
    [
      'changed and left',
      [
        [true, true],
        [true, false],
      ],
      [true, false],
    ],
    [
      'left and came back',
      [
        [true, false],
        [false, true],
      ],
      [true, true],
    ],
    [
      'entered, left, entered',
      [
        [false, true],
        [true, false],
        [false, true],
      ],
      [false, true],
    ],
  ] as const)('folds an object that %s', (_what, steps, [had, has]) => {
    const mailbox = new LatestMailbox();
    steps.forEach(([before, after], i) => mailbox.offer(offer(i + 1, before, after)));
    expect(mailbox.take()).toMatchObject({ had, has, cursor: `cursor-${steps.length}` });
    expect(mailbox.take()).toBeUndefined();
  });

  it('forgets an object that came and went unseen', () => {
    const mailbox = new LatestMailbox();
    mailbox.offer(offer(1, false, true));
    mailbox.offer(offer(2, true, false));
    expect([mailbox.size, mailbox.bytes, mailbox.take()]).toEqual([0, 0, undefined]);
  });

  it('is full at its number of objects and at its bytes, but takes news of what it holds', () => {
    const mailbox = new LatestMailbox();
    for (let i = 1; i <= LATEST_MAX_OBJECTS; i += 1) {
      expect(mailbox.offer(offer(i, true, true, { objectId: `o${i}` }))).toBe(true);
    }
    expect(mailbox.offer(offer(9_000, true, true, { objectId: 'one more' }))).toBe(false);
    expect(mailbox.offer(offer(9_001, true, true, { objectId: 'o1' }))).toBe(true);
    expect(mailbox.offer(offer(9_002, true, true, { objectId: 'o1', bytes: MAILBOX_MAX_BYTES }))).toBe(false);
    expect(mailbox.size).toBe(LATEST_MAX_OBJECTS);
  });

  it('leads to the same objects however often its reader is cut and resumes from the last cursor', () => {
    const moves = fc.array(
      fc.record({
        object: fc.nat(4),
        inside: fc.boolean(),
        take: fc.constantFrom(0, 0, 0, 1, 1, 4),
        cut: fc.integer({ min: 0, max: 9 }),
      }),
      { minLength: 1, maxLength: 60 },
    );
    fc.assert(
      fc.property(moves, (steps) => {
        // The history: each change moves one object into, inside, out of or outside of the filter.
        const inside = new Map<number, boolean>();
        const history = steps.map(({ object, inside: has }, i) => {
          const had = inside.get(object) ?? false;
          inside.set(object, has);
          return { ...offer(i + 1, had, has, { objectId: `o${object}` }), relevant: had || has };
        });
        const held = new Map<string, string>();
        let cursor = 0;
        let mailbox = new LatestMailbox();
        const take = () => {
          const item = mailbox.take();
          if (!item) return false;
          if (item.has) held.set(item.change.objectId, item.cursor);
          else held.delete(item.change.objectId);
          cursor = Number(item.change.seq);
          return true;
        };
        steps.forEach(({ take: count, cut }, i) => {
          const change = history[i];
          if (change?.relevant) mailbox.offer(change);
          for (let n = 0; n < count; n += 1) take();
          if (cut > 0) return;
          mailbox = new LatestMailbox();
          for (const again of history.slice(cursor, i + 1)) if (again.relevant) mailbox.offer(again);
        });
        while (take());
        const expected = new Map<string, string>();
        for (const {
          item: { change, has },
        } of history) {
          if (has) expected.set(change.objectId, change.cursor);
          else expected.delete(change.objectId);
        }
        expect(new Map([...held].sort())).toEqual(new Map([...expected].sort()));
      }),
      { numRuns: 500 },
    );
  });
});
