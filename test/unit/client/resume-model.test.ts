import { describe, expect, it } from 'vitest';
import {
  advance,
  conditionOf,
  newMachine,
  STREAM_STATES,
  TRANSITIONS,
  type Machine,
  type StreamSignal,
  type StreamSignalType,
  type StreamState,
} from '../../../src/client/resume-model.js';

const TIMING = { retryBaseMs: 1_000, retryCapMs: 30_000, stableMs: 10_000 };

function machine(facts: Partial<Machine> = {}): Machine {
  return { ...newMachine({ kind: 'watch', resumable: true, acceptsGaps: false, cursor: 'c0' }), ...facts };
}

const SIGNALS: { readonly [T in StreamSignalType]: Extract<StreamSignal, { type: T }> } = {
  start: { type: 'start' },
  located: { type: 'located', cursor: 'head' },
  accepted: { type: 'accepted' },
  event: { type: 'event', cursor: 'c1' },
  snapshotEnd: { type: 'snapshotEnd', cursor: 'c1' },
  reset: { type: 'reset' },
  lost: { type: 'lost', draw: 0.5, livedMs: 0 },
  outdated: { type: 'outdated', draw: 0.5, livedMs: 0 },
  expired: { type: 'expired', draw: 0.5 },
  refused: { type: 'refused' },
  completed: { type: 'completed' },
  due: { type: 'due' },
  full: { type: 'full' },
  drained: { type: 'drained' },
  stop: { type: 'stop' },
};

/** For a watch that holds a cursor: where each cell leads. `-` stays. */
const TRUTH: Readonly<Record<StreamSignalType, Readonly<Record<StreamState, StreamState | '-'>>>> = {
  start: row('connecting - - - - - - -'),
  located: row('- connecting - - - - - -'),
  accepted: row('- - live - - - - -'),
  event: row('- - live - - - - -'),
  snapshotEnd: row('- - live live - - - -'),
  reset: row('- - snapshot - snapshot - - -'),
  lost: row('- waiting waiting waiting waiting - - -'),
  outdated: row('- waiting waiting waiting waiting - - -'),
  expired: row('- ended waiting waiting waiting - - -'),
  refused: row('- ended ended ended ended - - -'),
  completed: row('- - ended ended ended - - -'),
  due: row('- - - - - connecting - -'),
  full: row('- - - ended paused - - -'),
  drained: row('- - - - - - connecting -'),
  stop: row('ended ended ended ended ended ended ended -'),
};

function row(text: string): Record<StreamState, StreamState | '-'> {
  const cells = text.split(' ');
  return Object.fromEntries(STREAM_STATES.map((state, index) => [state, cells[index]])) as Record<
    StreamState,
    StreamState | '-'
  >;
}

describe('the transition table', () => {
  const cells = Object.keys(TRUTH).flatMap((type) =>
    STREAM_STATES.map((state) => ({ type: type as StreamSignalType, state })),
  );

  it.each(cells)('answers $type in $state', ({ type, state }) => {
    const before = machine({ state });
    const step = advance(before, SIGNALS[type], TIMING);
    const expected = TRUTH[type][state];
    expect(step.machine.state).toBe(expected === '-' ? state : expected);
    // A cell that is not meant to do anything does nothing at all.
    const passive = TRANSITIONS[type][state] === TRANSITIONS.due.idle;
    if (passive) expect(step).toEqual({ machine: before, effects: [] });
  });

  it('ignores every signal after the end', () => {
    for (const signal of Object.values(SIGNALS)) {
      expect(advance(machine({ state: 'ended' }), signal, TIMING).effects).toEqual([]);
    }
  });
});

function run(start: Machine, ...signals: StreamSignal[]) {
  return signals.reduce(
    ({ machine: before, effects }, signal) => {
      const step = advance(before, signal, TIMING);
      return { machine: step.machine, effects: [...effects, ...step.effects] };
    },
    { machine: start, effects: [] as unknown[] },
  );
}

describe('a watch', () => {
  const fresh = machine({ cursor: null });

  it('takes no cursor from inside a snapshot', () => {
    const { machine: now } = run(fresh, SIGNALS.start, SIGNALS.accepted, { type: 'event', cursor: 'head' });
    expect(now).toMatchObject({ state: 'snapshot', cursor: null });
  });

  it('resumes after the cursor of the end of the snapshot', () => {
    const { effects } = run(
      fresh,
      SIGNALS.start,
      SIGNALS.accepted,
      SIGNALS.event,
      { type: 'snapshotEnd', cursor: 'c5' },
      SIGNALS.lost,
      SIGNALS.due,
    );
    expect(effects.at(-1)).toEqual({ do: 'open', after: 'c5' });
  });

  it('begins a cut snapshot anew, and says so first', () => {
    const { effects, machine: now } = run(
      fresh,
      SIGNALS.start,
      SIGNALS.accepted,
      SIGNALS.event,
      SIGNALS.lost,
      SIGNALS.due,
    );
    expect(effects).toEqual([
      { do: 'open', after: null },
      { do: 'deliver' },
      { do: 'resync', reason: 'SNAPSHOT_INTERRUPTED' },
      { do: 'wait', ms: 500 },
      { do: 'open', after: null },
    ]);
    expect(now.resyncing).toBe(true);
  });

  it('says nothing about a resync when nothing was delivered yet', () => {
    const { effects } = run(fresh, SIGNALS.start, SIGNALS.accepted, SIGNALS.lost, SIGNALS.due);
    expect(effects).toEqual([
      { do: 'open', after: null },
      { do: 'wait', ms: 500 },
      { do: 'open', after: null },
    ]);
  });

  it.each([
    ['expired', 'CURSOR_EXPIRED'],
    ['outdated', 'ACCESS_CHANGED'],
  ] as const)('drops its cursor when it is %s', (type, reason) => {
    const { effects, machine: now } = run(
      machine(),
      SIGNALS.start,
      SIGNALS.accepted,
      SIGNALS.event,
      SIGNALS[type],
      SIGNALS.due,
    );
    expect(effects.slice(2)).toEqual([
      { do: 'resync', reason },
      { do: 'wait', ms: 500 },
      { do: 'open', after: null },
    ]);
    expect(conditionOf(run(now, SIGNALS.accepted).machine)).toBe('resyncing');
  });

  it('is resyncing from a reset to the end of the new snapshot', () => {
    const during = run(machine(), SIGNALS.start, SIGNALS.accepted, SIGNALS.reset, SIGNALS.event);
    expect(conditionOf(during.machine)).toBe('resyncing');
    expect(during.machine.cursor).toBeNull();
    const after = run(during.machine, SIGNALS.snapshotEnd);
    expect(conditionOf(after.machine)).toBe('connected');
    expect(after.machine.cursor).toBe('c1');
  });

  it('fails when the server calls a snapshot without a cursor expired', () => {
    const { effects } = run(fresh, SIGNALS.start, SIGNALS.expired);
    expect(effects.at(-1)).toEqual({ do: 'end', why: 'expired' });
  });
});

describe('a stream of transitions', () => {
  const every = machine({ kind: 'every', cursor: null });

  it('reads where now is before it subscribes, so that it can resume before its first event', () => {
    const { effects } = run(
      every,
      SIGNALS.start,
      SIGNALS.located,
      SIGNALS.accepted,
      SIGNALS.lost,
      SIGNALS.due,
    );
    expect(effects).toEqual([
      { do: 'locate' },
      { do: 'open', after: 'head' },
      { do: 'wait', ms: 500 },
      { do: 'open', after: 'head' },
    ]);
  });

  it('keeps its cursor when rights changed', () => {
    const { effects } = run(
      every,
      SIGNALS.start,
      SIGNALS.located,
      SIGNALS.accepted,
      SIGNALS.event,
      SIGNALS.outdated,
      SIGNALS.due,
    );
    expect(effects.at(-1)).toEqual({ do: 'open', after: 'c1' });
  });

  it('ends when its cursor expired', () => {
    const { effects } = run(machine({ kind: 'every' }), SIGNALS.start, SIGNALS.expired);
    expect(effects.at(-1)).toEqual({ do: 'end', why: 'expired' });
  });

  it('tells a gap and goes on from now, if asked', () => {
    const { effects } = run(
      machine({ kind: 'every', acceptsGaps: true }),
      SIGNALS.start,
      SIGNALS.expired,
      SIGNALS.due,
    );
    expect(effects.slice(1)).toEqual([{ do: 'gap' }, { do: 'wait', ms: 500 }, { do: 'locate' }]);
  });

  it('calls a lost connection a gap when its document cannot be resumed', () => {
    const { effects } = run(
      machine({ kind: 'every', resumable: false, cursor: null }),
      SIGNALS.start,
      SIGNALS.accepted,
      SIGNALS.lost,
    );
    expect(effects.at(-1)).toEqual({ do: 'end', why: 'gap' });
  });

  it('is given up while its reader is behind, and resumed when it has caught up', () => {
    const { effects } = run(
      machine({ kind: 'every' }),
      SIGNALS.start,
      SIGNALS.accepted,
      SIGNALS.event,
      SIGNALS.full,
      SIGNALS.event,
      SIGNALS.drained,
    );
    expect(effects.slice(1)).toEqual([{ do: 'deliver' }, { do: 'cancel' }, { do: 'open', after: 'c1' }]);
  });
});

describe('the wait between attempts', () => {
  it('doubles its ceiling up to the cap and is drawn from the whole of it', () => {
    let now = machine({ state: 'connecting' });
    const waits: number[] = [];
    for (let attempt = 0; attempt < 8; attempt += 1) {
      const lost = advance(now, { type: 'lost', draw: 0.5, livedMs: 0 }, TIMING);
      const [effect] = lost.effects;
      if (effect?.do === 'wait') waits.push(effect.ms);
      now = advance(lost.machine, SIGNALS.due, TIMING).machine;
    }
    expect(waits).toEqual([500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000]);
    expect(advance(now, { type: 'lost', draw: 0, livedMs: 0 }, TIMING).effects).toEqual([
      { do: 'wait', ms: 0 },
    ]);
  });

  it('begins anew after an event, and after a connection that held', () => {
    const tired = machine({ state: 'live', attempt: 6 });
    expect(run(tired, SIGNALS.event, SIGNALS.lost).effects.at(-1)).toEqual({ do: 'wait', ms: 500 });
    expect(run(tired, { type: 'lost', draw: 0.5, livedMs: 10_000 }).effects).toEqual([
      { do: 'wait', ms: 500 },
    ]);
    expect(run(tired, { type: 'lost', draw: 0.5, livedMs: 9_999 }).effects).toEqual([
      { do: 'wait', ms: 15_000 },
    ]);
  });
});
