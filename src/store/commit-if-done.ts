import type { PoolClient } from 'pg';

import type { Database } from './database.js';

/** Carries what was not done out of its transaction, which takes back what was written on the way. */
class NotDone<T> extends Error {
  readonly answer: T;
  constructor(answer: T) {
    super('rolled back');
    this.answer = answer;
  }
}

/** Runs `work` in a transaction of its own; commits what is done, and takes back what was refused or is to be decided again. */
export async function commitIfDone<T extends { readonly done: boolean } | 'again'>(
  database: Pick<Database, 'inTransaction'>,
  work: (tx: PoolClient) => Promise<T>,
): Promise<T> {
  try {
    return await database.inTransaction(async (tx) => {
      const answer = await work(tx);
      if (answer === 'again' || !answer.done) throw new NotDone(answer);
      return answer;
    });
  } catch (error) {
    if (error instanceof NotDone) return (error as NotDone<T>).answer; // thrown above, with that answer
    throw error;
  }
}

/** Runs `work` in a transaction of its own and takes back whatever it wrote: what would happen, by what would do it. */
export async function takeBack<T>(
  database: Pick<Database, 'inTransaction'>,
  work: (tx: PoolClient) => Promise<T>,
): Promise<T> {
  try {
    return await database.inTransaction(async (tx) => {
      throw new NotDone(await work(tx));
    });
  } catch (error) {
    if (error instanceof NotDone) return (error as NotDone<T>).answer; // thrown above, with that answer
    throw error;
  }
}
