import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  advance,
  newMachine,
  type StreamEffect,
  type StreamSignal,
} from '../../../src/client/resume-model.js';

const TIMING = { retryBaseMs: 1_000, retryCapMs: 30_000, stableMs: 10_000 };

type Act =
  'write' | 'send' | 'cut' | 'outdate' | 'expire' | 'full' | 'drain' | 'due' | 'locate' | 'accept' | 'reset';
const act = fc.constantFrom<Act>(
  ...([
    'write',
    'write',
    'send',
    'send',
    'send',
    'cut',
    'full',
    'drain',
    'due',
    'due',
    'locate',
    'accept',
    'accept',
  ] as const),
);

/** A log of numbered changes to a few objects, and one connection that may have sent some of them. */
function world(kind: 'watch' | 'every') {
  const log: { object: number; value: number }[] = [];
  let machine = newMachine({ kind, resumable: true, acceptsGaps: false, cursor: null });
  let connection: {
    at: number;
    snapshot: { object: number; value: number }[] | null;
    accepted: boolean;
  } | null = null;
  let locating = false;
  let waiting = false;
  const seen: number[] = [];
  let held = new Map<number, number>();
  let startedAt: number | null = null;

  function handle(effect: StreamEffect, deliver: () => void): void {
    switch (effect.do) {
      case 'locate':
        locating = true;
        return;
      case 'open': {
        const at = effect.after === null ? log.length : Number(effect.after);
        const objects = [...new Map(log.map((change) => [change.object, change])).values()];
        connection = {
          at,
          snapshot: kind === 'watch' && effect.after === null ? objects : null,
          accepted: false,
        };
        return;
      }
      case 'cancel':
        connection = null;
        return;
      case 'wait':
        waiting = true;
        connection = null;
        return;
      case 'deliver':
        return deliver();
      case 'resync':
        held = new Map();
        return;
      case 'gap':
      case 'end':
        throw new Error(`unexpected ${effect.do}`);
    }
  }

  function signal(given: StreamSignal, deliver: () => void = () => undefined): void {
    const step = advance(machine, given, TIMING);
    machine = step.machine;
    for (const effect of step.effects) handle(effect, deliver);
  }

  function send(): void {
    if (!connection?.accepted) return;
    const { snapshot } = connection;
    if (snapshot) {
      const next = snapshot.shift();
      // Each object of a snapshot carries the cursor of the whole snapshot, as a server may do.
      if (next) {
        return signal({ type: 'event', cursor: String(connection.at) }, () =>
          held.set(next.object, next.value),
        );
      }
      connection.snapshot = null;
      return signal({ type: 'snapshotEnd', cursor: String(connection.at) });
    }
    const change = log[connection.at];
    if (!change) return;
    connection.at += 1;
    const cursor = String(connection.at);
    signal({ type: 'event', cursor }, () => {
      seen.push(change.value);
      held.set(change.object, change.value);
    });
  }

  const acts: Record<Act, (draw: number) => void> = {
    write: (draw) => void log.push({ object: Math.floor(draw * 4), value: log.length }),
    send,
    cut: (draw) => connection && signal({ type: 'lost', draw, livedMs: 0 }),
    outdate: (draw) => connection && signal({ type: 'outdated', draw, livedMs: 0 }),
    expire: (draw) => connection && machine.cursor !== null && signal({ type: 'expired', draw }),
    full: () => machine.state === 'live' && signal({ type: 'full' }),
    drain: () => signal({ type: 'drained' }),
    due: () => {
      if (waiting) {
        waiting = false;
        signal({ type: 'due' });
      }
    },
    locate: () => {
      if (locating) {
        locating = false;
        startedAt ??= log.length;
        signal({ type: 'located', cursor: String(log.length) });
      }
    },
    accept: () => {
      if (connection && !connection.accepted) {
        connection.accepted = true;
        signal({ type: 'accepted' });
      }
    },
    reset: () => {
      if (!connection?.accepted || kind === 'every') return;
      connection.at = log.length;
      connection.snapshot = [...new Map(log.map((change) => [change.object, change])).values()];
      signal({ type: 'reset' });
    },
  };

  signal({ type: 'start' });
  return {
    acts,
    settle() {
      for (let round = 0; round < log.length * 2 + 20; round += 1) {
        for (const name of ['locate', 'due', 'drain', 'accept', 'send'] as const) acts[name](0.5);
      }
      const state = [...new Map(log.map((change) => [change.object, change.value])).entries()].sort();
      return {
        seen,
        expected: log.slice(startedAt ?? 0).map(({ value }) => value),
        held: [...held.entries()].sort(),
        state,
      };
    },
  };
}

describe('a subscription over a connection that is cut anywhere', () => {
  it('delivers every transition once and in order', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(act, fc.double({ min: 0, max: 0.999, noNaN: true })), {
          minLength: 20,
          maxLength: 200,
          size: 'max',
        }),
        (steps) => {
          const every = world('every');
          for (const [name, draw] of steps) every.acts[name](draw);
          const { seen, expected } = every.settle();
          expect(seen).toEqual(expected);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('leaves a watch with exactly the objects of the server', () => {
    const any = fc.oneof(
      { weight: 12, arbitrary: act },
      { weight: 1, arbitrary: fc.constantFrom<Act>('outdate', 'expire', 'reset') },
    );
    fc.assert(
      fc.property(
        fc.array(fc.tuple(any, fc.double({ min: 0, max: 0.999, noNaN: true })), {
          minLength: 20,
          maxLength: 200,
          size: 'max',
        }),
        (steps) => {
          const watch = world('watch');
          for (const [name, draw] of steps) watch.acts[name](draw);
          const { held, state } = watch.settle();
          expect(held).toEqual(state);
        },
      ),
      { numRuns: 500 },
    );
  });
});
