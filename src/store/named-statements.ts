import { createHash } from 'node:crypto';

import { LRUCache } from 'lru-cache';
import type { Pool, PoolClient } from 'pg';

import { ReadsEnded, type ReadTurns } from '../kernel/read-turns.js';
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

  async function ask(
    { text, values, prepare }: NamedStatement,
    turns: ReadTurns,
  ): Promise<readonly (string | null)[]> {
    const name = prepare ? nameOf(text) : undefined;
    const session = await pool.connect();
    let end = false;
    if (turns.ended) {
      session.release();
      throw new ReadsEnded();
    }
    const done = turns.running(() => {
      // A cancellation that comes late must not meet the statement of somebody else.
      end = true;
      cancel(session);
    });
    try {
      const query = { text, values: [...values], rowMode: 'array' as const, types: TEXTS };
      const { rows } = await session.query<(string | null)[]>(
        name === undefined ? query : { ...query, name },
      );
      if (name !== undefined && noteIn(session, name)) end = true;
      return rows[0] ?? [];
    } catch (error) {
      end = true; // as the pool's own `query` does
      throw error;
    } finally {
      done();
      session.release(end);
    }
  }

  return {
    async row(statement, turns) {
      const free = turns.enter();
      if (free) await free;
      try {
        return await ask(statement, turns);
      } finally {
        turns.leave();
      }
    },
  };
}

const TEXTS = { getTypeParser: () => (text: string) => text };
