import { describe, expect, it } from 'vitest';
import { createCollection, type WatchEvent } from '../../../src/client/collection.js';

interface Thing {
  readonly id: string;
  readonly version: number;
}
const put = (id: string, version: number): WatchEvent<Thing> => ({ type: 'put', object: { id, version } });
const END: WatchEvent<Thing> = { type: 'snapshotEnd' };

describe('createCollection', () => {
  it('shows a snapshot as a whole, when it is complete', () => {
    const things = createCollection<Thing>();
    expect([
      things.apply(put('a', 1)),
      things.apply(put('b', 1)),
      things.objects.size,
      things.synced,
    ]).toEqual([[], [], 0, false]);
    expect(things.apply(END).map(({ type }) => type)).toEqual(['added', 'added', 'synced']);
    expect([...things.objects.keys()]).toEqual(['a', 'b']);
  });

  it('follows changes afterwards', () => {
    const things = createCollection<Thing>([{ id: 'a', version: 1 }]);
    expect(things.apply(put('a', 2))).toEqual([
      { type: 'changed', object: { id: 'a', version: 2 }, previous: { id: 'a', version: 1 } },
    ]);
    expect(things.apply(put('b', 1))).toEqual([{ type: 'added', object: { id: 'b', version: 1 } }]);
    expect(things.apply({ type: 'removed', id: 'a' })).toEqual([
      { type: 'removed', object: { id: 'a', version: 2 } },
    ]);
    expect(things.apply({ type: 'removed', id: 'a' })).toEqual([]);
    expect(things.apply({ type: 'other' })).toEqual([]);
    expect([...things.objects.keys()]).toEqual(['b']);
  });

  it('keeps what it has until a new snapshot is complete, and then tells only what differs', () => {
    const things = createCollection<Thing>([
      { id: 'gone', version: 4 },
      { id: 'moved', version: 1 },
      { id: 'same', version: 7 },
    ]);
    things.restart();
    things.apply(put('moved', 2));
    things.apply(put('same', 7));
    things.apply(put('new', 1));
    expect(things.synced).toBe(false);
    expect([...things.objects.keys()]).toEqual(['gone', 'moved', 'same']);
    expect(things.apply(END)).toEqual([
      { type: 'removed', object: { id: 'gone', version: 4 } },
      { type: 'changed', object: { id: 'moved', version: 2 }, previous: { id: 'moved', version: 1 } },
      { type: 'added', object: { id: 'new', version: 1 } },
      { type: 'synced' },
    ]);
  });

  it('drops a snapshot that is begun anew', () => {
    const things = createCollection<Thing>();
    things.apply(put('half', 1));
    things.restart();
    things.apply(put('whole', 1));
    things.apply(END);
    expect([...things.objects.keys()]).toEqual(['whole']);
  });
});
