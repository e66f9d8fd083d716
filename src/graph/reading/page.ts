import { z } from 'zod';

import type {
  Keyset,
  PageRead,
  RowsRead,
  SortDirection,
  SortField,
  Wanted,
} from '../../store/public-types.js';
import { operationError } from '../errors.js';
import { InvalidInputError } from '../failures.js';
import { decodePageCursor, type ListOrder } from '../page-cursor.js';

/** From the arguments of a connection to the page that is read. */
export const PAGE_SIZE_DEFAULT = 50;
export const PAGE_SIZE_MAX = 100;

type Optional<T> = T | null | undefined;
export interface PageArgs {
  readonly first?: Optional<number>;
  readonly after?: Optional<string>;
  readonly last?: Optional<number>;
  readonly before?: Optional<string>;
  readonly orderBy?: Optional<{ readonly field?: Optional<SortField>; readonly direction: SortDirection }>;
  readonly filter?: unknown;
  readonly includeDeleted?: Optional<boolean>;
}

const sizeMessage = { error: `must be between 1 and ${PAGE_SIZE_MAX}` };
/** Of every argument that says how many: a size that is refused must not be measured by `cost.ts` either. */
export const pageSizeSchema = z.int(sizeMessage).min(1, sizeMessage).max(PAGE_SIZE_MAX, sizeMessage);

/** What of a connection is selected. */
export interface PageWants {
  readonly rows: boolean;
  /** Cursors, of edges or of the page. */
  readonly places: boolean;
  readonly more: boolean;
  readonly total: boolean;
  readonly position: boolean;
}

export interface PageFrame {
  readonly order: ListOrder;
  readonly forward: boolean;
  readonly after: Keyset | null;
  readonly before: Keyset | null;
  readonly take: number;
}

/** Throws an operation error for arguments that make no page. */
export function pageFrame(args: PageArgs, { table }: Wanted): PageFrame {
  const { first, last } = args;
  if (typeof first === 'number' && typeof last === 'number') {
    throw operationError('BAD_USER_INPUT', '`first` and `last` must not be given together.');
  }
  const order: ListOrder = {
    table,
    field: args.orderBy?.field ?? 'createdAt',
    direction: args.orderBy?.direction ?? 'asc',
  };
  return {
    order,
    forward: typeof last !== 'number',
    after: place(args.after, order, 'after'),
    before: place(args.before, order, 'before'),
    take: sizeOf(first ?? last),
  };
}

/** The field's own validation comes first where it is resolved; below another field this is the only one. */
export function sizeOf(size: Optional<number>): number {
  const parsed = pageSizeSchema.safeParse(size ?? PAGE_SIZE_DEFAULT);
  if (parsed.success) return parsed.data;
  throw new InvalidInputError(parsed.error.issues);
}

export function pageRead(frame: PageFrame, wanted: Wanted, wants: PageWants, rows: RowsRead): PageRead {
  const { order, forward, after, before, take } = frame;
  return {
    wanted,
    rows: wants.rows ? (wants.places ? { ...rows, columns: [...rows.columns, order.field] } : rows) : null,
    sort: order,
    after,
    before,
    take,
    fromEnd: !forward,
    wantMore: wants.more,
    wantTotal: wants.total,
    wantPosition: wants.position,
  };
}

function place(cursor: Optional<string>, order: ListOrder, argument: string): Keyset | null {
  if (cursor === null || cursor === undefined) return null;
  const decoded = decodePageCursor(cursor, order);
  if (decoded) return decoded;
  throw operationError('BAD_PAGE_CURSOR', `\`${argument}\` is not a cursor of this list in this order.`);
}
