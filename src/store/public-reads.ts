import type { Log } from '../kernel/log.js';
import type { ReadTurns } from '../kernel/read-turns.js';
import type { Database } from './database.js';
import { namedStatements } from './named-statements.js';
import type { PublicReads } from './public-types.js';
import { pageOf, readAnswer, type ReadAnswer } from './read-rows.js';
import { besideSql, pageSql, rowsSql, type ReadStatement } from './read-sql.js';
import { cancelStatements } from './session.js';

/** The reads of the graph, as the read role. */
export function publicReads({ readPool }: Pick<Database, 'readPool'>, log: Log): PublicReads {
  const statements = namedStatements(readPool, cancelStatements(readPool, log));
  const run = async (statement: ReadStatement, turns: ReadTurns): Promise<ReadAnswer> => {
    const { text, values, columns, selective } = statement;
    // What selects nothing asks nothing.
    const cells = columns === 0 ? [] : await statements.row({ text, values, prepare: !selective }, turns);
    return readAnswer(statement, cells);
  };
  return {
    async rows(reads, turns) {
      const { roots } = await run(rowsSql(reads), turns);
      return roots.flat();
    },
    async page(page, turns) {
      const { roots, total, position } = await run(pageSql(page), turns);
      return pageOf(page, roots[0] ?? [], total, position);
    },
    async beside(row, rows, turns) {
      const { roots } = await run(besideSql(row, rows), turns);
      return roots[0]?.[0] ?? {};
    },
  };
}
