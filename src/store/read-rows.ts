import type { PageRead, PageResult, ReadRow, TimelineResult } from './public-types.js';
import type { Attachment, ReadStatement } from './read-sql.js';

/** The one row that a read statement gives, as objects that refer to each other. */
export interface ReadAnswer {
  /** Rows of each set that is read for itself. */
  readonly roots: readonly ReadRow[][];
  readonly total: number | null;
  readonly position: string | null;
}

/** `cells`: texts, as the server sent them. */
export function readAnswer(statement: ReadStatement, cells: readonly (string | null)[]): ReadAnswer {
  const { sets, attachments, total, position } = statement;
  const at = position ? (cells[sets.length + (total ? 1 : 0)] ?? null) : null;
  const rowsOf = sets.map(({ moments }, index) => rowsIn(cells[index] ?? null, moments));
  for (const attachment of attachments) {
    const { to, from } = attachment;
    attach(attachment, rowsOf[to] ?? [], from === null ? [] : (rowsOf[from] ?? []), at);
  }
  return {
    roots: rowsOf.filter((_rows, index) => sets[index]?.root === true),
    total: total ? Number(cells[sets.length]) : null,
    position: at,
  };
}

function rowsIn(cell: string | null, moments: readonly string[]): ReadRow[] {
  if (cell === null) return [];
  const rows = JSON.parse(cell) as ReadRow[]; // what json_agg makes of rows
  for (const row of rows) {
    for (const field of moments) {
      const text = row[field];
      if (typeof text === 'string') row[field] = new Date(text);
    }
  }
  return rows;
}

function attach(
  { below, total }: Attachment,
  parents: readonly ReadRow[],
  rows: readonly ReadRow[],
  position: string | null,
): void {
  const { key } = below;
  if (below.kind === 'one') {
    const byId = new Map(rows.map((row) => [row['id'], row]));
    for (const parent of parents) parent[key] = byId.get(parent[below.column]) ?? null;
    return;
  }
  const owner = below.kind === 'page' ? below.column : 'object_id';
  const owned = new Map<unknown, ReadRow[]>();
  for (const row of rows) {
    const others = owned.get(row[owner]);
    if (others) others.push(row);
    else owned.set(row[owner], [row]);
  }
  for (const parent of parents) {
    const own = owned.get(parent['id']) ?? [];
    parent[key] =
      below.kind === 'page'
        ? pageOf(below.page, own, total === null ? null : Number(parent[total]), position)
        : ({ rows: own, position: position ?? '' } satisfies TimelineResult);
  }
}

export function pageOf(
  { take, fromEnd, wantMore }: PageRead,
  found: readonly ReadRow[],
  total: number | null,
  position: string | null,
): PageResult {
  const more = wantMore && found.length > take;
  const rows = more ? found.slice(0, take) : found;
  return { rows: fromEnd ? rows.toReversed() : rows, more, total, position };
}
