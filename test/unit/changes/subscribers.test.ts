import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import type { StreamRequest } from '../../../src/changes/stream-types.js';
import { allows, judge, Subscribers, type Subscriber } from '../../../src/changes/subscribers.js';
import { row } from './rows.js';

const request = (over: Partial<StreamRequest>): StreamRequest => ({
  kinds: ['DEPLOYMENT'],
  namespaces: 'all',
  mode: 'EVERY',
  matches: () => true,
  after: null,
  onExpired: 'ERROR',
  ...over,
});
const names = fc.constantFrom('a', 'b', 'c');
const kinds = fc.constantFrom('DEPLOYMENT' as const, 'AGENT' as const);
const interests = fc.record({
  kinds: fc.uniqueArray(kinds, { minLength: 1 }),
  namespaces: fc.oneof(
    fc.constant('all' as const),
    fc.uniqueArray(names).map((list) => new Set(list)),
  ),
  objectIds: fc.option(
    fc.uniqueArray(names).map((list) => new Set(list)),
    { nil: undefined },
  ),
});

describe('Subscribers', () => {
  it('finds exactly those whose interest allows the change, and nobody who left', () => {
    fc.assert(
      fc.property(fc.array(interests), kinds, names, names, (list, kind, namespace, objectId) => {
        const index = new Subscribers();
        const all = list.map((interest): Subscriber => ({
          request: request(interest),
          deliver: () => undefined,
        }));
        for (const subscriber of all) index.add(subscriber);
        const { change } = row({
          seq: 1,
          kind,
          objectId,
          namespace: kind === 'AGENT' ? (null as unknown as string) : namespace,
        }); // agents have none
        const found = index.of(change);
        expect(new Set(found)).toEqual(new Set(all.filter((one) => allows(one.request, change))));
        expect(found.length).toBe(new Set(found).size);
        for (const subscriber of all) index.remove(subscriber);
        expect([index.size, index.of(change)]).toEqual([0, []]);
      }),
    );
  });
});

describe('judge', () => {
  const inShop = request({ matches: (_kind, object) => 'app' in object && object.app === 'shop' });

  it.each([
    ['inside', 'shop', { app: 'shop' }, 'UPDATE', { had: true, has: true }],
    ['entering', 'shop', { app: 'other' }, 'UPDATE', { had: false, has: true }],
    ['leaving', 'other', { app: 'shop' }, 'UPDATE', { had: true, has: false }],
    ['outside', 'other', { app: 'other' }, 'UPDATE', undefined],
    ['made inside', 'shop', null, 'INSERT', { had: false, has: true }],
    ['made outside', 'other', null, 'INSERT', undefined],
    ['deleted inside', 'shop', { app: 'shop' }, 'DELETE', { had: true, has: false }],
    ['deleted outside', 'other', { app: 'other' }, 'DELETE', undefined],
  ] as const)('tells an object %s of the filter', (_what, app, before, op, verdict) => {
    expect(judge(inShop, row({ seq: 1, app, before, op }).change)).toEqual(verdict);
  });

  it('leaves out changes that do not count for the stream', () => {
    const { change } = row({ seq: 1 });
    expect(judge(request({ changed: () => false }), change)).toBeUndefined();
  });
});
