import { describe, expect, it } from 'vitest';

import { encodeCursor } from '../../../src/kernel/cursor.js';
import { createRecorder, type Deed } from '../../live/faults/history.js';
import { indexLog, type LoggedChange } from '../../live/faults/log-index.js';
import { VALIDATORS } from '../../live/faults/validators/validate.js';

const epoch = 'ab'.repeat(16);
/** After all transactions below `xmax`, but for those still open. */
const at = (xmax: number, ...open: number[]): string =>
  encodeCursor({ form: 'at', epoch, at: { xmax: BigInt(xmax), xip: open.map(BigInt) } });
const within = (from: number, to: number, seq: number): string =>
  encodeCursor({
    form: 'within',
    epoch,
    from: { xmax: BigInt(from), xip: [] },
    at: { xmax: BigInt(to), xip: [] },
    seq: BigInt(seq),
  });

const change = (
  seq: number,
  xid: number,
  object: string,
  version: number,
  message: string | null = null,
): LoggedChange => ({
  ...{ seq: BigInt(seq), xid: BigInt(xid), kind: 'DEPLOYMENT', object, version, message },
  ...{
    from: version % 2 === 0 ? 'RUNNING' : 'REFRESH_FAILED',
    to: version % 2 === 0 ? 'REFRESH_FAILED' : 'RUNNING',
  },
  actor: 'local',
  atMs: 0,
});
/** Transaction 13 changes both objects. */
const LOG = [
  change(1, 10, 'a', 1),
  change(2, 11, 'b', 1),
  change(3, 12, 'a', 2, 'op-1'),
  change(4, 13, 'a', 3),
  change(5, 13, 'b', 2),
  change(6, 14, 'b', 3, 'op-2'),
];
const STORED = new Map([
  ['a', 3],
  ['b', 3],
]);
const START = at(12);
const END = at(15);

type Told = readonly [who: string, server: string, deed: Deed];
const event = (object: string, version: number, cursor: string): Deed => ({
  type: 'event',
  object,
  version,
  cursor,
});
const opened = (after: string | null, mode: 'EVERY' | 'LATEST' = 'EVERY'): Deed => ({
  type: 'opened',
  mode,
  after,
});
const ended: Deed = { type: 'ended', code: '1006' };
const cut = (who: string, deeds: readonly Deed[], server = 'one'): readonly Told[] =>
  deeds.map((deed) => [who, server, deed]);

const STEP = {
  first: event('a', 2, at(13)),
  both: [event('a', 3, within(13, 14, 4)), event('b', 2, at(14))],
  last: event('b', 3, END),
};
/** One that sees every transition and is cut in the middle of a transaction, one that watches, and a writer. */
const GOOD: readonly Told[] = [
  ...cut('every', [opened(START), STEP.first, STEP.both[0] ?? ended, ended]),
  ...cut(
    'every',
    [opened(within(13, 14, 4)), STEP.both[1] ?? ended, { type: 'bookmark', cursor: at(14) }, STEP.last],
    'two',
  ),
  ...cut('watch', [
    opened(null, 'LATEST'),
    {
      type: 'snapshot',
      cursor: at(13),
      objects: new Map([
        ['a', 2],
        ['b', 1],
      ]),
    },
    event('a', 3, within(13, 15, 4)),
    ended,
  ]),
  ...cut(
    'watch',
    [opened(within(13, 15, 4), 'LATEST'), event('b', 3, END), { type: 'bookmark', cursor: END }],
    'two',
  ),
  ...cut('writer', [
    { type: 'sent', op: 'op-1', object: 'a', expected: 1 },
    { type: 'acknowledged', op: 'op-1', object: 'a', version: 2 },
    { type: 'sent', op: 'op-2', object: 'b', expected: 2 },
    { type: 'unknown', op: 'op-2', object: 'b', why: 'cut' },
    { type: 'sent', op: 'op-3', object: 'b', expected: 2 },
    { type: 'refused', op: 'op-3', object: 'b', why: 'DeploymentVersionConflict' },
  ]),
];

interface Run {
  readonly told?: readonly Told[];
  readonly log?: readonly LoggedChange[];
  readonly stored?: ReadonlyMap<string, number>;
}

function judge(
  name: keyof typeof VALIDATORS,
  { told = GOOD, log = LOG, stored = STORED }: Run,
): readonly string[] {
  const recorder = createRecorder();
  for (const [who, server, deed] of told) recorder.add(who, server, deed);
  return VALIDATORS[name]({ entries: recorder.entries, log: indexLog(log), stored, end: END });
}

const ofWho = (wanted: string, type: Deed['type'], nth = 0): Deed | undefined =>
  GOOD.filter(([who, , deed]) => who === wanted && deed.type === type)[nth]?.[2];

/** The watch stands behind b@2 without it: right only if b@3, which took its place, was there by then. */
const OVERTAKEN: readonly Told[] = GOOD.flatMap(([who, server, deed]): readonly Told[] =>
  deed === ofWho('watch', 'event', 1)
    ? [
        [who, server, { type: 'bookmark', cursor: at(14) }],
        [who, server, { type: 'ended', code: '1006' }],
        [who, server, { type: 'opened', mode: 'LATEST', after: at(14) }],
        [who, server, deed],
      ]
    : [[who, server, deed]],
);
const LATER = LOG.map((row) => (row.seq === 6n ? { ...row, atMs: Number.MAX_SAFE_INTEGER } : row));

const without = (...gone: readonly (Deed | undefined)[]): readonly Told[] =>
  GOOD.filter(([, , deed]) => !gone.includes(deed));
const replacing = (old: Deed | undefined, ...by: readonly Deed[]): readonly Told[] =>
  GOOD.flatMap(([who, server, deed]): readonly Told[] =>
    deed === old ? by.map((one) => [who, server, one]) : [[who, server, deed]],
  );

/** For each validator what it must not let pass, and the word by which it says so. */
const BAD: readonly (readonly [keyof typeof VALIDATORS, string, string, Run])[] = [
  [
    'ordered',
    'a version that goes back',
    'b@2 after @3',
    { told: [...without(STEP.both[1]), ['every', 'two', event('b', 2, END)]] },
  ],
  [
    'ordered',
    'a transaction told backwards',
    'behind a later change',
    {
      told: cut('every', [
        opened(START),
        STEP.first,
        event('b', 2, within(13, 14, 5)),
        event('a', 3, at(14)),
        STEP.last,
      ]),
    },
  ],
  [
    'ordered',
    'a watch that goes back behind its snapshot',
    'a@1 after @2',
    {
      told: replacing(ofWho('watch', 'event'), event('a', 1, at(13))),
    },
  ],
  [
    'unique',
    'a change told again after a resume',
    'told twice',
    { told: replacing(STEP.last, event('a', 3, at(14)), STEP.last) },
  ],
  [
    'unique',
    'a change that never happened',
    'not in the log',
    { told: replacing(STEP.last, STEP.last, event('b', 4, END)) },
  ],
  ['reliable', 'a change lost in a resume', 'lost b@2', { told: without(STEP.both[1]) }],
  ['reliable', 'a change lost at the end', 'still to come', { told: without(STEP.last) }],
  [
    'reliable',
    'a watch that stands still',
    'watch: holds b@1',
    { told: replacing(ofWho('watch', 'event', 1), { type: 'bookmark', cursor: END }) },
  ],
  [
    'atomic',
    'a cursor that hides the rest of a transaction',
    'hides what was not told',
    {
      told: cut('every', [
        opened(START),
        STEP.first,
        event('a', 3, at(14)),
        event('b', 2, at(14)),
        STEP.last,
      ]),
    },
  ],
  [
    'atomic',
    'a snapshot with half a transaction in it',
    'holds b@1, its place covers @2',
    {
      told: replacing(ofWho('watch', 'snapshot'), {
        type: 'snapshot',
        cursor: at(14),
        objects: new Map([
          ['a', 3],
          ['b', 1],
        ]),
      }),
    },
  ],
  [
    'atomic',
    'a snapshot without an object',
    'holds b@nothing',
    {
      told: replacing(ofWho('watch', 'snapshot'), {
        type: 'snapshot',
        cursor: at(13),
        objects: new Map([['a', 2]]),
      }),
    },
  ],
  [
    'resumable',
    'a change before the cursor',
    'which its cursor covers',
    { told: replacing(STEP.both[1], STEP.first, ...STEP.both.slice(1)) },
  ],
  [
    'resumable',
    'a change right behind the cursor left out',
    'went past b@2',
    { told: without(STEP.both[1]) },
  ],
  [
    'resumable',
    'a watch that resumes too far',
    'went past b@3',
    {
      told: replacing(ofWho('watch', 'event', 1), { type: 'bookmark', cursor: END }),
    },
  ],
  [
    'resumable',
    'a client that resumed elsewhere',
    'did not resume where it stood',
    {
      told: replacing(ofWho('every', 'opened', 1), opened(START)),
    },
  ],
  [
    'bookmarkable',
    'a bookmark before what it covers',
    'came behind a bookmark',
    {
      told: replacing(ofWho('every', 'bookmark'), { type: 'bookmark', cursor: END }),
    },
  ],
  [
    'bookmarkable',
    'a bookmark of a watch over something untold',
    'which was not told',
    {
      told: replacing(ofWho('watch', 'event', 1), { type: 'bookmark', cursor: END }),
    },
  ],
  [
    'bookmarkable',
    'a bookmark over what nothing had overtaken yet',
    'covers b@2, which was not told',
    { told: OVERTAKEN, log: LATER },
  ],
  [
    'resumable',
    'a watch that leaves out what nothing had overtaken yet',
    'went past b@2',
    { told: OVERTAKEN, log: LATER },
  ],
  [
    'durable',
    'an acknowledged mutation without a change',
    'not in the log',
    { log: LOG.map((row) => ({ ...row, message: null })) },
  ],
  [
    'durable',
    'one that happened twice',
    'happened 2 times',
    { log: LOG.map((row) => ({ ...row, message: row.version === 3 ? 'op-2' : row.message })) },
  ],
  [
    'durable',
    'one acknowledged as another version',
    'and made a@2',
    {
      told: replacing(ofWho('writer', 'acknowledged'), {
        type: 'acknowledged',
        op: 'op-1',
        object: 'a',
        version: 3,
      }),
    },
  ],
  [
    'durable',
    'a refused one that happened',
    'was refused',
    { log: LOG.map((row) => (row.seq === 5n ? { ...row, message: 'op-3' } : row)) },
  ],
  [
    'durable',
    'a gap in the versions',
    'has version 3 where 2 belongs',
    { log: LOG.filter(({ seq }) => seq !== 3n) },
  ],
  ['durable', 'a row that moved without a change', 'is at version 4', { stored: new Map([['a', 4]]) }],
  ['durable', 'a row without any change', 'c has no change', { stored: new Map([['c', 1]]) }],
  [
    'durable',
    'a read of something older than what was known',
    'read a@1',
    {
      told: [...GOOD, ['writer', 'two', { type: 'read', object: 'a', version: 1, since: GOOD.length }]],
    },
  ],
];

describe('the validators of a history', () => {
  it.each(Object.keys(VALIDATORS) as (keyof typeof VALIDATORS)[])(
    '%s finds nothing in a good one',
    (name) => {
      expect(judge(name, {})).toEqual([]);
    },
  );

  it.each(Object.keys(VALIDATORS) as (keyof typeof VALIDATORS)[])(
    '%s lets a newer version take the place of one that waits',
    (name) => {
      expect(judge(name, { told: OVERTAKEN })).toEqual([]);
    },
  );

  it.each(BAD)('%s finds %s', (name, _what, words, run) => {
    expect(judge(name, run).join('\n')).toContain(words);
  });

  it('each find something in at least two bad ones', () => {
    for (const name of Object.keys(VALIDATORS)) {
      expect(BAD.filter(([of]) => of === name).length).toBeGreaterThan(1);
    }
  });
});
