import { describe, expect, it } from 'vitest';

import { BadRowError, decodeEntry, decodeRow, NoPayloadError } from '../../../src/changes/catalogue.js';
import type { LogRow } from '../../../src/changes/log.js';

const TIME = '2026-01-02T03:04:05.67+00:00';
const logRow = (over: Partial<LogRow> = {}, after: object = {}): LogRow => ({
  seq: '17',
  xid: '900',
  at: new Date(TIME),
  kind: 'AGENT',
  object_id: 'agt_1',
  namespace: null,
  op: 'UPDATE',
  version: 2,
  from_state: 'READY',
  to_state: 'UNAVAILABLE',
  reason: null,
  message: null,
  actor: 'local',
  trace_id: null,
  after: JSON.stringify({
    id: 'agt_1',
    createdAt: TIME,
    updatedAt: TIME,
    deletedAt: null,
    consumerLag: 3,
    lastHeartbeatAt: TIME,
    ...after,
  }),
  before: JSON.stringify({ deletedAt: TIME }),
  ...over,
});

describe('decodeRow', () => {
  it('makes dates of times, in the object as in the fields before', () => {
    const { change, xid } = decodeRow(logRow(), 'a cursor');
    expect(xid).toBe(900n);
    expect(change).toMatchObject({
      seq: 17n,
      kind: 'AGENT',
      cursor: 'a cursor',
      from: 'READY',
      to: 'UNAVAILABLE',
      after: { createdAt: new Date(TIME), deletedAt: null, lastHeartbeatAt: new Date(TIME), consumerLag: 3 },
      before: { deletedAt: new Date(TIME) },
    });
  });

  it('knows an agent before its first heartbeat', () => {
    const { change } = decodeRow(
      logRow({ before: null }, { consumerLag: undefined, lastHeartbeatAt: undefined }),
      '',
    );
    expect(change.after).toMatchObject({ consumerLag: null, lastHeartbeatAt: null });
    expect(change.before).toBeNull();
  });

  it('counts what a change takes in memory by its payload', () => {
    const small = decodeRow(logRow(), '').bytes;
    expect(decodeRow(logRow({}, { labels: { pad: 'x'.repeat(1_000) } }), '').bytes).toBeGreaterThan(
      small + 1_000,
    );
  });

  it.each([
    ['a kind it does not know', logRow({ kind: 'BOAT' })],
    ['an operation it does not know', logRow({ op: 'UPSERT' })],
    ['a payload of another object', logRow({}, { id: 'agt_2' })],
    ['a payload that is no object', logRow({ after: '[]' })],
    ['a time that is none', logRow({}, { updatedAt: 'infinity' })],
    ['a time that is a number', logRow({}, { deletedAt: 17 })],
    ['a missing time', logRow({}, { createdAt: undefined })],
  ])('refuses %s and names the row', (_what, row) => {
    expect(() => decodeRow(row, '')).toThrow(BadRowError);
    expect(() => decodeRow(row, '')).toThrow(/row 17 of the change log \(\w+ agt_1, version 2\)/);
  });

  it('tells a row without a payload from a bad one; it can still be listed', () => {
    expect(() => decodeRow(logRow({ after: null }), '')).toThrow(NoPayloadError);
    expect(decodeEntry(logRow({ after: null }), 'a cursor')).toMatchObject({
      objectId: 'agt_1',
      version: 2,
      cursor: 'a cursor',
    });
  });
});
