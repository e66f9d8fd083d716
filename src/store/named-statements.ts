import { createHash } from 'node:crypto';

import { LRUCache } from 'lru-cache';
import type { Pool, PoolClient } from 'pg';

import { ReadsEnded, type ReadTurns } from '../kernel/read-turns.js';
import { lanesOf, type Watch } from './lanes.js';
import type { CancelStatement } from './session.js';

/**
 * Statements whose texts clients have a hand in. A prepared one saves parsing and planning, and stays in its session:
 * both what this process remembers and what a session holds have a bound, however many shapes are asked for.
 */
export interface NamedStatements {
  /** The first row, as texts: statements here give one. */
  row(statement: NamedStatement, turns: ReadTurns): Promise<readonly (string | null)[]>;
}

export interface NamedStatement {
  readonly text: string;
  readonly values: readonly unknown[];
  /** Whether one plan is good for all values. */
  readonly prepare: boolean;
}

export interface StatementLimits {
  /** Texts that are remembered. */
  readonly texts: number;
  /** Statements that one session prepares before it is ended and another takes its place. */
  readonly perSession: number;
}

const LIMITS: StatementLimits = { texts: 500, perSession: 1_000 };
const REMEMBERED_CHARACTERS = 4_000_000;

/** A text without a name was seen once: most that come once do not come again. */
interface Remembered {
  readonly name: string | undefined;
}

export function namedStatements(
  pool: Pool,
  cancel: CancelStatement,
  limits: StatementLimits = LIMITS,
): NamedStatements {
  const remembered = new LRUCache<string, Remembered>({
    max: limits.texts,
    maxSize: REMEMBERED_CHARACTERS,
    sizeCalculation: (_value, text) => text.length,
  });
  const lanes = lanesOf(pool);
  const prepared = new WeakMap<PoolClient, Set<string>>();

  function nameOf(text: string): string | undefined {
    const known = remembered.get(text);
    if (known?.name !== undefined) return known.name;
    // Of the text alone: a session that still holds the statement of a text that was forgotten need not prepare it anew.
    const name = known && `read_${createHash('sha256').update(text).digest('base64url')}`;
    remembered.set(text, { name });
    return name;
  }

  /** Whether the session holds as many as it may. */
  function noteIn(session: PoolClient, name: string): boolean {
    let names = prepared.get(session);
    if (names === undefined) prepared.set(session, (names = new Set()));
    names.add(name);
    return names.size >= limits.perSession;
  }

  /** Cancelled when the operation ends; the session is not used for others then: a cancellation may come late. */
  function watchOf(name: string | undefined, turns: ReadTurns): Watch {
    return {
      refused: () => (turns.ended ? new ReadsEnded() : undefined),
      begun(session) {
        let cancelled = false;
        const done = turns.running(() => {
          cancelled = true;
          cancel(session);
        });
        return () => {
          done();
          return cancelled || (name !== undefined && noteIn(session, name));
        };
      },
    };
  }

  return {
    async row(statement, turns) {
      const free = turns.enter();
      if (free) await free;
      try {
        const { text, values, prepare } = statement;
        const name = prepare ? nameOf(text) : undefined;
        const call = name === undefined ? { text, values: [...values] } : { name, text, values: [...values] };
        return (await lanes.cells(call, watchOf(name, turns)))[0] ?? [];
      } finally {
        turns.leave();
      }
    },
  };
}
