import type { Predicate } from '../kernel/filter.js';
import { filterSql } from './filter-sql.js';
import { LOG_POSITION } from './log-position.js';
import type {
  BelowRead,
  Keyset,
  PageRead,
  PublicTable,
  RowsRead,
  SortField,
  Wanted,
} from './public-types.js';
import { BESIDE, TABLES, type Column } from './tables.js';

/**
 * A read with everything below it as ONE statement. Each table that is read in some place is a set, a common table
 * expression: the rows of a page, the runtimes that they name, a page of deployments for each of those. A set is read
 * once however many rows name its rows, and comes back as one JSON array; `read-rows.ts` puts them together.
 *
 * Every value is a parameter. Only limits are text, numbers made here: a plan that does not know them takes a tenth of
 * the table for granted, and PostgreSQL would rather plan anew with each execution than keep that one.
 */
export interface ReadStatement {
  readonly text: string;
  readonly values: readonly unknown[];
  /** Of each of the first columns, which holds one set: its columns that are moments, and whether it stands for itself. */
  readonly sets: readonly ReadSet[];
  /** What belongs to rows of which set. */
  readonly attachments: readonly Attachment[];
  readonly total: boolean;
  readonly position: boolean;
  readonly columns: number;
  /**
   * Whether its plan depends on its values: it looks for some rows among many, and how many match only they tell. Prepared,
   * PostgreSQL may keep a plan for any values, which walks a whole list for the few that match.
   */
  readonly selective: boolean;
}

interface ReadSet {
  readonly moments: readonly string[];
  readonly root: boolean;
}

export interface Attachment {
  readonly below: BelowRead;
  /** Places in `sets`. `from` is null for a page of which only the numbers are wanted. */
  readonly to: number;
  readonly from: number | null;
  /** The column of `to` that has the page's total. */
  readonly total: string | null;
}

interface Draft {
  readonly values: unknown[];
  readonly parts: string[];
  readonly sets: ReadSet[];
  readonly attachments: Attachment[];
  position: boolean;
  selective: boolean;
}

export function pageSql(page: PageRead): ReadStatement {
  const draft = emptyDraft();
  if (page.rows) {
    addSet(draft, page.rows, { root: true, source: (columns) => pageSource(draft, page, columns) });
  }
  draft.position ||= page.wantPosition;
  return statement(draft, page.wantTotal ? countSql(draft, page.wanted) : null);
}

export function rowsSql(
  reads: readonly { readonly wanted: Wanted; readonly rows: RowsRead }[],
): ReadStatement {
  const draft = emptyDraft();
  for (const { wanted, rows } of reads) {
    addSet(draft, rows, { root: true, source: (columns) => selectSql(draft, wanted, columns) });
  }
  return statement(draft, null);
}

/** `row`: the columns that relations start from. */
export function besideSql(row: Readonly<Record<string, string | null>>, rows: RowsRead): ReadStatement {
  const draft = emptyDraft();
  const held = Object.entries(row).map(([field, value]) => `${parameter(draft, value)}::text AS "${field}"`);
  addSet(draft, rows, {
    root: true,
    source: (columns) => `SELECT ${columns} FROM (SELECT ${held.join(', ')}) t`,
    held: new Set(Object.keys(row)),
  });
  return statement(draft, null);
}

function emptyDraft(): Draft {
  return { values: [], parts: [], sets: [], attachments: [], position: false, selective: false };
}

function parameter({ values }: Draft, value: unknown): string {
  return `$${values.push(value)}`;
}

function statement(draft: Draft, total: string | null): ReadStatement {
  const { parts, sets, attachments, values, position, selective } = draft;
  const cells = sets.map((_set, index) => `(SELECT json_agg(s${index}) FROM s${index})::text`);
  if (total !== null) cells.push(total);
  if (position) cells.push(LOG_POSITION);
  const text = `${parts.length > 0 ? `WITH ${parts.join(', ')} ` : ''}SELECT ${cells.join(', ')}`;
  return {
    text,
    values,
    sets,
    attachments,
    total: total !== null,
    position,
    columns: cells.length,
    selective,
  };
}

interface SetSource {
  readonly root: boolean;
  /** The SELECT for a list of columns of the table `t`. */
  source(columns: string): string;
  /** A column that says to whom a row belongs. */
  readonly owner?: string;
  /** Columns that come with their values, under the names of fields. */
  readonly held?: ReadonlySet<string>;
}

/** Adds a set and those below it; its place among them. */
function addSet(draft: Draft, rows: RowsRead, { root, source, owner, held }: SetSource): number {
  const fields = new Set(['id', ...rows.columns]);
  if (owner !== undefined) fields.add(owner);
  for (const below of rows.below) if (below.kind === 'one') fields.add(below.column);
  const columns = [...fields].map(
    (field) => `${held?.has(field) ? `t."${field}"` : columnSql(rows.table, field)} AS "${field}"`,
  );
  const totals = rows.below.map((below, index) => {
    if (below.kind !== 'page' || !below.page.wantTotal) return null;
    const total = `~total${index}`;
    const own = `c.${ownColumn(below.page.wanted.table, below.column)} = t.id`;
    columns.push(`${countSql(draft, below.page.wanted, own)} AS "${total}"`);
    return total;
  });
  const moments = [...fields].filter((field) => isMoment(rows.table, field));
  const to = push(draft, source(columns.join(', ')), { moments, root });
  rows.below.forEach((below, index) => {
    const from = addBelow(draft, `s${to}`, below);
    draft.attachments.push({ below, to, from, total: totals[index] ?? null });
  });
  return to;
}

function push({ parts, sets }: Draft, select: string, set: ReadSet): number {
  parts.push(`s${sets.length} AS (${select})`);
  return sets.push(set) - 1;
}

function addBelow(draft: Draft, owners: string, below: BelowRead): number | null {
  switch (below.kind) {
    case 'one': {
      const { wanted, rows, column } = below;
      const named = `t.id IN (SELECT "${column}" FROM ${owners})`;
      return addSet(draft, rows, {
        root: false,
        source: (columns) => selectSql(draft, wanted, columns, { named }),
      });
    }
    case 'page': {
      const { page, column } = below;
      draft.position ||= page.wantPosition;
      if (page.rows === null) return null;
      const own = `t.${ownColumn(page.wanted.table, column)} = ${owners}.id`;
      const source = (columns: string) => eachOf(owners, pageSource(draft, page, columns, own));
      return addSet(draft, page.rows, { root: false, source, owner: column });
    }
    case 'timeline': {
      draft.position = true;
      const before =
        below.beforeVersion === null ? '' : ` AND version < ${parameter(draft, below.beforeVersion)}`;
      const changes =
        `SELECT ${CHANGE_COLUMNS} FROM change WHERE object_id = ${owners}.id${before}` +
        ` ORDER BY version DESC LIMIT ${Math.trunc(below.take)}`;
      return push(draft, eachOf(owners, changes), { moments: ['at'], root: false });
    }
  }
}

const CHANGE_COLUMNS =
  'seq::text, at, kind, object_id, namespace, op, version, from_state, to_state, reason, message, actor, trace_id';

function eachOf(owners: string, select: string): string {
  return `SELECT x.* FROM ${owners} CROSS JOIN LATERAL (${select}) x`;
}

/** `place`: what says by itself which rows, where something does. */
function selectSql(
  draft: Draft,
  wanted: Wanted,
  columns: string,
  place?: Place,
  ...bounds: readonly string[]
): string {
  const first = place?.named ? [place.named] : [];
  const all = [...first, ...bounds, ...conditions(draft, wanted, 't', place)];
  return `SELECT ${columns} FROM ${wanted.table} t${whereSql(all)}`;
}

/** How the rows of a set are found, whatever else must hold for them. */
interface Place {
  /** By rows above: an index leads from each of them to its own. */
  readonly named?: string;
  /** In the order of an index, which begins with the namespace for those of one. */
  readonly inOrder?: boolean;
}

function pageSource(draft: Draft, page: PageRead, columns: string, named?: string): string {
  const { wanted, sort, fromEnd, take } = page;
  const forwards = sort.direction === 'asc';
  const bounds = [
    ...(page.after ? [beyond(draft, sort.field, page.after, forwards)] : []),
    ...(page.before ? [beyond(draft, sort.field, page.before, !forwards)] : []),
  ];
  const direction = forwards === fromEnd ? ' DESC' : '';
  const limit = Math.trunc(take) + (page.wantMore ? 1 : 0);
  const place = named === undefined ? { inOrder: sort.field === 'createdAt' } : { named };
  return (
    selectSql(draft, wanted, columns, place, ...bounds) +
    ` ORDER BY t.${SORT_COLUMNS[sort.field]}${direction}, t.id${direction} LIMIT ${limit}`
  );
}

const SORT_COLUMNS: Readonly<Record<SortField, string>> = { createdAt: 'created_at', name: 'name' };

/** The rows strictly beyond a place: a row comparison, at which an index can begin. */
function beyond(draft: Draft, field: SortField, { value, id }: Keyset, forwards: boolean): string {
  const type = field === 'createdAt' ? 'timestamptz' : 'text';
  const place = `(${parameter(draft, value)}::${type}, ${parameter(draft, id)}::text)`;
  return `(t.${SORT_COLUMNS[field]}, t.id) ${forwards ? '>' : '<'} ${place}`;
}

/** With an alias of its own: it stands among the columns of another set. */
function countSql(draft: Draft, wanted: Wanted, named?: string): string {
  const place = named === undefined ? { inOrder: true } : { named };
  const all = [...(named === undefined ? [] : [named]), ...conditions(draft, wanted, 'c', place)];
  return `(SELECT count(*)::int FROM ${wanted.table} c${whereSql(all)})`;
}

/** What holds for the rows that are meant. The text depends on what is asked, so that each has the plan that fits it. */
function conditions(draft: Draft, wanted: Wanted, alias: 't' | 'c', place: Place = {}): string[] {
  const columns: Readonly<Record<string, Column>> = TABLES[wanted.table];
  const { ids, namespaces, predicate } = wanted;
  const limited = namespaces !== 'all' && columns['namespace'] !== undefined;
  const filtered = predicate !== undefined && !(predicate.kind === 'all' && predicate.of.length === 0);
  const named = ids !== undefined || place.named !== undefined;
  // The index of one namespace gives all that is in it, in order: the plan for any namespace is the plan for this one.
  const searched = limited && !named && !(place.inOrder === true && namespaces.size === 1);
  draft.selective ||= searched || (filtered && ids === undefined);
  return [
    ...(ids === undefined ? [] : [oneOf(draft, `${alias}.id`, ids)]),
    ...(wanted.deleted || !columns['deletedAt'] ? [] : [`${alias}.deleted_at IS NULL`]),
    ...(limited ? [seen(oneOf(draft, `${alias}.namespace`, [...namespaces]), named)] : []),
    ...(predicate === undefined ? [] : filterConditions(draft, wanted.table, predicate)),
  ];
}

/** Of rows that are found otherwise it is only checked: in this form no index can be taken for it. */
function seen(condition: string, named: boolean): string {
  return named ? `(${condition}) IS TRUE` : condition;
}

/** One value by `=`: only then does an index that begins with the column also give its order. */
function oneOf(draft: Draft, column: string, values: readonly string[]): string {
  const [only] = values;
  return values.length === 1 && only !== undefined
    ? `${column} = ${parameter(draft, only)}::text`
    : `${column} = ANY(${parameter(draft, [...values])}::text[])`;
}

function filterConditions(draft: Draft, table: PublicTable, predicate: Predicate<string>): string[] {
  if (predicate.kind === 'all') return predicate.of.flatMap((part) => filterConditions(draft, table, part));
  const columns: Readonly<Record<string, Column>> = TABLES[table];
  const { text, values } = filterSql(predicate, columns, draft.values.length + 1);
  draft.values.push(...values);
  return [text];
}

function whereSql(all: readonly string[]): string {
  return all.length === 0 ? '' : ` WHERE ${all.join(' AND ')}`;
}

function ownColumn(table: PublicTable, field: string): string {
  const columns: Readonly<Record<string, Column>> = TABLES[table];
  const column = columns[field];
  if (!column) throw new Error(`${table} has no public column ${field}`);
  return column.name;
}

function columnSql(table: PublicTable, field: string): string {
  const beside = BESIDE[table]?.[field];
  if (!beside) return `t.${ownColumn(table, field)}`;
  return `(SELECT b.${beside.name} FROM ${beside.table} b WHERE b.${beside.owner} = t.id)`;
}

function isMoment(table: PublicTable, field: string): boolean {
  const name = BESIDE[table]?.[field]?.name ?? ownColumn(table, field);
  return name.endsWith('_at');
}
