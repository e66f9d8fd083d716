import type { Database, Statement } from '../../src/store/database.js';

/** A place in a use case: right before a statement whose name begins so. */
export interface Hook {
  readonly database: Database;
  /** How often the place was reached. The hook itself runs the first time only. */
  readonly hits: number;
}

/** The same database, with something that happens between two statements: of whatever uses this one, not of others. */
export function hooked(database: Database, before: string, act: () => Promise<unknown>): Hook {
  let hits = 0;
  const hooking = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(owner, key) {
        const member: unknown = Reflect.get(owner, key);
        if (typeof member !== 'function') return member;
        if (key !== 'query') return member.bind(owner) as unknown; // the pool's own methods, unchanged
        return async (statement: Statement | string, ...rest: unknown[]) => {
          const name = typeof statement === 'string' ? statement : (statement.name ?? statement.text);
          if (name.startsWith(before)) {
            hits += 1;
            if (hits === 1) await act();
          }
          return member.call(owner, statement, ...rest) as unknown; // whatever the real one answers
        };
      },
    });
  return {
    get hits() {
      return hits;
    },
    database: {
      ...database,
      pool: hooking(database.pool),
      writer: hooking(database.writer),
      inTransaction: (work, isolation) => database.inTransaction((tx) => work(hooking(tx)), isolation),
    },
  };
}
