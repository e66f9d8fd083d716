import type { Database } from './database.js';
import { namedStatements } from './named-statements.js';
import type { PublicReads } from './public-types.js';
import { pageOf, readAnswer, type ReadAnswer } from './read-rows.js';
import { besideSql, pageSql, rowsSql, type ReadStatement } from './read-sql.js';

/** The reads of the graph, as the read role. */
export function publicReads({ readPool }: Pick<Database, 'readPool'>): PublicReads {
  const statements = namedStatements(readPool);
  const run = async (statement: ReadStatement): Promise<ReadAnswer> =>
    // What selects nothing asks nothing.
    readAnswer(
      statement,
      statement.columns === 0
        ? []
        : await statements.row(statement.text, statement.values, !statement.selective),
    );
  return {
    async rows(reads) {
      const { roots } = await run(rowsSql(reads));
      return roots.flat();
    },
    async page(page) {
      const { roots, total, position } = await run(pageSql(page));
      return pageOf(page, roots[0] ?? [], total, position);
    },
    async beside(row, rows) {
      const { roots } = await run(besideSql(row, rows));
      return roots[0]?.[0] ?? {};
    },
  };
}
