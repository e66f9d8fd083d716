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
  it('tells exactly those whose interest allows the change, once, and nobody who left', () => {
    fc.assert(
      fc.property(fc.array(interests), kinds, names, names, (list, kind, namespace, objectId) => {
        const index = new Subscribers();
        const told: Subscriber[] = [];
        const all = list.map((interest) => {
          const subscriber: Subscriber = {
            request: request(interest),
            deliver: () => told.push(subscriber) < 0,
            told: () => undefined,
          };
          return subscriber;
        });
        for (const subscriber of all) index.add(subscriber);
        const changed = row({
          seq: 1,
          kind,
          objectId,
          namespace: kind === 'AGENT' ? (null as unknown as string) : namespace,
        }); // agents have none
        index.tell([changed]);
        expect(new Set(told)).toEqual(new Set(all.filter((one) => allows(one.request, changed.change))));
        expect(told.length).toBe(new Set(told).size);
        for (const subscriber of all) index.remove(subscriber);
        told.splice(0);
        index.tell([changed]);
        expect([index.size, index.interests, told]).toEqual([0, 0, []]);
      }),
    );
  });

  it('asks a filter once for all of one scope and key, and tells each of its own answer', () => {
    const asked: string[] = [];
    const told: unknown[] = [];
    const index = new Subscribers();
    const add = (name: string, over: Partial<StreamRequest>) =>
      index.add({
        request: request({
          filterKey: 'shop',
          matches: (_kind, object) => {
            asked.push(name);
            return 'app' in object && object.app === 'shop';
          },
          ...over,
        }),
        deliver: ({ item }) => told.push(`${name} ${item.had} ${item.has}`) < 0,
        told: () => undefined,
      });
    add('one', { namespaces: new Set(['a', 'b']) });
    add('other', { namespaces: new Set(['b', 'a']) });
    add('narrow', { namespaces: new Set(['a']) });
    add('elsewhere', { namespaces: new Set(['b']) });
    add('all', {});
    expect(index.interests).toBe(4);
    index.tell([row({ seq: 1, namespace: 'a', before: { app: 'other' } })]);
    expect(new Set(asked)).toEqual(new Set(['one', 'narrow', 'all']));
    expect(new Set(told)).toEqual(
      new Set(['one false true', 'other false true', 'narrow false true', 'all false true']),
    );
  });

  it('tells of a change whoever was there when it began, unless they left meanwhile', () => {
    const index = new Subscribers();
    const told: string[] = [];
    const late: Subscriber = {
      request: request({ filterKey: '' }),
      deliver: () => told.push('late') < 0,
      told: () => undefined,
    };
    const leaving: Subscriber = {
      ...late,
      deliver: () => {
        told.push('leaving');
        index.remove(leaving);
        index.add(late);
        return false;
      },
    };
    index.add(leaving);
    index.tell([row({ seq: 1 })]);
    index.tell([row({ seq: 2 })]);
    expect(told).toEqual(['leaving', 'late']);
  });

  it('says when all of a step was delivered, to whoever asked for it', () => {
    const index = new Subscribers();
    const told: string[] = [];
    index.add({
      request: request({}),
      deliver: ({ item }) => told.push(item.cursor) === 1,
      told: () => void told.push('all'),
    });
    index.tell([row({ seq: 1 }), row({ seq: 2 })]);
    expect(told).toEqual(['cursor-1', 'cursor-2', 'all']);
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
