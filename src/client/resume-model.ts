/**
 * The life of one resumable subscription, as a pure machine: the shell (stream.ts) tells it what happened and does what
 * it answers. Nothing here waits, sends or draws a random number.
 *
 * Guarantees, given a server that keeps its side (nothing lost and nothing repeated after a cursor):
 *  1. Each event is delivered once, in the order it came, however often the connection breaks.
 *  2. A cursor is used only when everything before it was delivered: inside a snapshot there is none, so a snapshot
 *     that was cut is begun anew, after the caller was told that what it holds is replaced.
 *  3. Where events were missed, the caller learns it: `resync` before a new snapshot, `gap` or a failure otherwise.
 *  4. It tries again for ever, unless trying again cannot help.
 */
import { retryDelayMs, type Timing } from './timing.js';

/** `watch…` fields hold objects and begin with a snapshot; all others carry every transition and begin at a cursor. */
export type StreamKind = 'watch' | 'every';

export const STREAM_STATES = [
  'idle',
  /** Reading where "now" is, so that a stream of transitions has a place to resume from before its first event. */
  'locating',
  'connecting',
  /** Accepted; the objects of a snapshot are coming. */
  'snapshot',
  'live',
  'waiting',
  /** Given up on purpose, until the caller has read what is buffered. */
  'paused',
  'ended',
] as const;
export type StreamState = (typeof STREAM_STATES)[number];

export type ResyncReason =
  'RESET' | 'CURSOR_EXPIRED' | 'ACCESS_CHANGED' | 'SNAPSHOT_INTERRUPTED' | 'NOT_RESUMABLE';

export type StreamSignal =
  | { readonly type: 'start' }
  | { readonly type: 'located'; readonly cursor: string }
  | { readonly type: 'accepted' }
  | { readonly type: 'event'; readonly cursor: string | null }
  | { readonly type: 'snapshotEnd'; readonly cursor: string | null }
  | { readonly type: 'reset' }
  /** The attempt is over, another one may help. `livedMs`: since it was accepted, 0 if it never was. */
  | { readonly type: 'lost'; readonly draw: number; readonly livedMs: number }
  /** As `lost`, but what was delivered cannot be continued: rights changed. */
  | { readonly type: 'outdated'; readonly draw: number; readonly livedMs: number }
  /** The cursor is too old, or of another history. */
  | { readonly type: 'expired'; readonly draw: number }
  | { readonly type: 'refused' }
  | { readonly type: 'completed' }
  | { readonly type: 'due' }
  /** More is buffered than may be; and nothing is buffered any more. */
  | { readonly type: 'full' }
  | { readonly type: 'drained' }
  | { readonly type: 'stop' };
export type StreamSignalType = StreamSignal['type'];

export type StreamEffect =
  | { readonly do: 'locate' }
  | { readonly do: 'open'; readonly after: string | null }
  | { readonly do: 'cancel' }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'deliver' }
  /** What the caller holds is about to be replaced by a new snapshot. */
  | { readonly do: 'resync'; readonly reason: ResyncReason }
  /** Events were missed, and the caller asked to go on. */
  | { readonly do: 'gap' }
  /** `why` tells the shell which failure to throw; null is a normal end. */
  | { readonly do: 'end'; readonly why: 'refused' | 'expired' | 'gap' | 'overflow' | null };

export interface Machine {
  readonly state: StreamState;
  readonly kind: StreamKind;
  /** The document takes `$after`. Without it a lost connection is a gap, or a new snapshot. */
  readonly resumable: boolean;
  /** A gap is told and passed over instead of ending the stream. */
  readonly acceptsGaps: boolean;
  /** Everything up to here was delivered; null: nothing to resume from. */
  readonly cursor: string | null;
  /** Failures in a row. */
  readonly attempt: number;
  /** The caller holds objects of a snapshot, whole or in part. */
  readonly holding: boolean;
  /** A snapshot that replaces an older one is on its way. */
  readonly resyncing: boolean;
  /** Something was accepted once: later trouble is "reconnecting". */
  readonly seen: boolean;
}

export interface Step {
  readonly machine: Machine;
  readonly effects: readonly StreamEffect[];
}

type Arm<T extends StreamSignalType> = (
  machine: Machine,
  signal: Extract<StreamSignal, { type: T }>,
  timing: RetryTiming,
) => Step;
type RetryTiming = Pick<Timing, 'retryBaseMs' | 'retryCapMs' | 'stableMs'>;

export function newMachine(options: Pick<Machine, 'kind' | 'resumable' | 'acceptsGaps' | 'cursor'>): Machine {
  return { ...options, state: 'idle', attempt: 0, holding: false, resyncing: false, seen: false };
}

const stay = (machine: Machine): Step => ({ machine, effects: [] });

/** The next attempt: a stream of transitions without a cursor first finds out where now is. */
function attempt(machine: Machine): Step {
  if (machine.kind === 'every' && machine.resumable && machine.cursor === null) {
    return { machine: { ...machine, state: 'locating' }, effects: [{ do: 'locate' }] };
  }
  return { machine: { ...machine, state: 'connecting' }, effects: [{ do: 'open', after: machine.cursor }] };
}

function located(machine: Machine, signal: { readonly cursor: string }): Step {
  return attempt({ ...machine, cursor: signal.cursor });
}

function accepted(machine: Machine): Step {
  const state = machine.kind === 'watch' && machine.cursor === null ? 'snapshot' : 'live';
  return stay({ ...machine, state, seen: true });
}

function liveEvent(machine: Machine, signal: { readonly cursor: string | null }): Step {
  const cursor = machine.resumable ? (signal.cursor ?? machine.cursor) : null;
  return { machine: { ...machine, cursor, attempt: 0, holding: true }, effects: [{ do: 'deliver' }] };
}

/** Its cursor stands for the whole snapshot, of which a part is still to come: not one to resume from. */
function snapshotEvent(machine: Machine): Step {
  return { machine: { ...machine, attempt: 0, holding: true }, effects: [{ do: 'deliver' }] };
}

function snapshotEnd(machine: Machine, signal: { readonly cursor: string | null }): Step {
  return liveEvent({ ...machine, state: 'live', resyncing: false }, signal);
}

function reset(machine: Machine): Step {
  return {
    machine: { ...machine, state: 'snapshot', cursor: null, attempt: 0, holding: false, resyncing: true },
    effects: [{ do: 'resync', reason: 'RESET' }, { do: 'deliver' }],
  };
}

function wait(
  machine: Machine,
  signal: { readonly draw: number; readonly livedMs?: number },
  timing: RetryTiming,
): Step {
  const tried = (signal.livedMs ?? 0) >= timing.stableMs ? 0 : machine.attempt;
  return {
    machine: { ...machine, state: 'waiting', attempt: tried + 1 },
    effects: [{ do: 'wait', ms: retryDelayMs(tried, signal.draw, timing) }],
  };
}

/** Forgets the cursor; what comes next does not continue what the caller has. */
function startOver(machine: Machine, reason: ResyncReason): Step {
  const replaces = machine.kind === 'watch' && machine.holding;
  return {
    machine: { ...machine, cursor: null, holding: false, resyncing: machine.resyncing || replaces },
    effects: replaces ? [{ do: 'resync', reason }] : [],
  };
}

function then(first: Step, next: (machine: Machine) => Step): Step {
  const second = next(first.machine);
  return { machine: second.machine, effects: [...first.effects, ...second.effects] };
}

const lost: Arm<'lost'> = (machine, signal, timing) => wait(machine, signal, timing);

/** The connection broke in the middle of events. */
const lostLive: Arm<'lost'> = (machine, signal, timing) => {
  if (machine.resumable && machine.cursor !== null) return wait(machine, signal, timing);
  if (machine.kind === 'watch') {
    const reason = machine.state === 'snapshot' ? 'SNAPSHOT_INTERRUPTED' : 'NOT_RESUMABLE';
    return then(startOver(machine, reason), (next) => wait(next, signal, timing));
  }
  return missed(machine, signal, timing, 'gap');
};

/** A stream of transitions cannot say what was missed: the caller decides whether that matters. */
function missed(
  machine: Machine,
  signal: { readonly draw: number; readonly livedMs?: number },
  timing: RetryTiming,
  why: 'gap' | 'expired',
): Step {
  if (!machine.acceptsGaps) return end(machine, why);
  return then({ machine: { ...machine, cursor: null }, effects: [{ do: 'gap' }] }, (next) =>
    wait(next, signal, timing),
  );
}

/** Transitions go on under the new rights; only what is held as a set of objects must be taken anew. */
const outdated: Arm<'outdated'> = (machine, signal, timing) => {
  if (machine.kind === 'every') return lostLive(machine, { ...signal, type: 'lost' }, timing);
  return then(startOver(machine, 'ACCESS_CHANGED'), (next) => wait(next, signal, timing));
};

const outdatedEarly: Arm<'outdated'> = (machine, signal, timing) =>
  machine.kind === 'every' ? wait(machine, signal, timing) : outdated(machine, signal, timing);

const expired: Arm<'expired'> = (machine, signal, timing) => {
  if (machine.kind === 'every') return missed(machine, signal, timing, 'expired');
  // Without a cursor the server has nothing to call expired: asking again would ask the same.
  if (machine.cursor === null) return end(machine, 'expired');
  return then(startOver(machine, 'CURSOR_EXPIRED'), (next) => wait(next, signal, timing));
};

function end(machine: Machine, why: 'refused' | 'expired' | 'gap' | 'overflow' | null): Step {
  return { machine: { ...machine, state: 'ended', resyncing: false }, effects: [{ do: 'end', why }] };
}

const refused = (machine: Machine): Step => end(machine, 'refused');
const completed = (machine: Machine): Step => end(machine, null);

/** `cancel` is harmless where nothing is open, and also ends a wait. */
const stop = (machine: Machine): Step =>
  then({ machine, effects: [{ do: 'cancel' }] }, (next) => end(next, null));

const full: Arm<'full'> = (machine) => {
  const cancelled: Step = { machine: { ...machine, state: 'paused' }, effects: [{ do: 'cancel' }] };
  if (machine.resumable && machine.cursor !== null) return cancelled;
  if (machine.kind === 'watch') return then(cancelled, (next) => startOver(next, 'NOT_RESUMABLE'));
  return then(cancelled, (next) => end(next, 'overflow'));
};

/** A transport says `accepted` first; should one ever not, an event is as good. */
const early: Arm<'event'> = (machine, signal) =>
  then(accepted(machine), (next) =>
    next.state === 'snapshot' ? snapshotEvent(next) : liveEvent(next, signal),
  );

/** A snapshot has no place to resume from, so it cannot be paused; it is bounded by the server, and here. */
const overflow = (machine: Machine): Step =>
  then({ machine, effects: [{ do: 'cancel' }] }, (next) => end(next, 'overflow'));

/** An attempt that was given up can still have something on its way: states without an attempt ignore it. */
const _ = stay;

// prettier-ignore
export const TRANSITIONS: { readonly [T in StreamSignalType]: Readonly<Record<StreamState, Arm<T>>> } = {
  start:       { idle: attempt, locating: _, connecting: _, snapshot: _, live: _, waiting: _, paused: _, ended: _ },
  located:     { idle: _, locating: located, connecting: _, snapshot: _, live: _, waiting: _, paused: _, ended: _ },
  accepted:    { idle: _, locating: _, connecting: accepted, snapshot: _, live: _, waiting: _, paused: _, ended: _ },
  event:       { idle: _, locating: _, connecting: early, snapshot: snapshotEvent, live: liveEvent, waiting: _, paused: _, ended: _ },
  snapshotEnd: { idle: _, locating: _, connecting: snapshotEnd, snapshot: snapshotEnd, live: snapshotEnd, waiting: _, paused: _, ended: _ },
  reset:       { idle: _, locating: _, connecting: reset, snapshot: reset, live: reset, waiting: _, paused: _, ended: _ },
  lost:        { idle: _, locating: lost, connecting: lost, snapshot: lostLive, live: lostLive, waiting: _, paused: _, ended: _ },
  outdated:    { idle: _, locating: outdatedEarly, connecting: outdatedEarly, snapshot: outdated, live: outdated, waiting: _, paused: _, ended: _ },
  expired:     { idle: _, locating: refused, connecting: expired, snapshot: expired, live: expired, waiting: _, paused: _, ended: _ },
  refused:     { idle: _, locating: refused, connecting: refused, snapshot: refused, live: refused, waiting: _, paused: _, ended: _ },
  completed:   { idle: _, locating: _, connecting: completed, snapshot: completed, live: completed, waiting: _, paused: _, ended: _ },
  due:         { idle: _, locating: _, connecting: _, snapshot: _, live: _, waiting: attempt, paused: _, ended: _ },
  full:        { idle: _, locating: _, connecting: _, snapshot: overflow, live: full, waiting: _, paused: _, ended: _ },
  drained:     { idle: _, locating: _, connecting: _, snapshot: _, live: _, waiting: _, paused: attempt, ended: _ },
  stop:        { idle: stop, locating: stop, connecting: stop, snapshot: stop, live: stop, waiting: stop, paused: stop, ended: _ },
};

export function advance(machine: Machine, signal: StreamSignal, timing: RetryTiming): Step {
  // The row of `signal.type` takes exactly that signal; the compiler cannot follow a union through an index.
  const arm = TRANSITIONS[signal.type][machine.state] as Arm<StreamSignalType>;
  return arm(machine, signal, timing);
}

export type StreamCondition = 'connecting' | 'connected' | 'reconnecting' | 'resyncing' | 'ended';

/** What a person should be told. */
export function conditionOf(machine: Machine): StreamCondition {
  switch (machine.state) {
    case 'ended':
      return 'ended';
    case 'live':
      return 'connected';
    case 'paused': // The connection is well; the caller has enough to read.
      return 'connected';
    case 'snapshot':
      return machine.resyncing ? 'resyncing' : 'connected';
    case 'idle':
    case 'locating':
    case 'connecting':
    case 'waiting':
      return machine.seen || machine.attempt > 0 ? 'reconnecting' : 'connecting';
  }
}
