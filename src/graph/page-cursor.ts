import { z } from 'zod';

import { parseMoment } from '../kernel/clock.js';
import { storable } from '../kernel/text.js';
import type { Keyset, PublicTable, SortDirection, SortField } from '../store/public-types.js';

/**
 * A page cursor carries the values of the row it was made from, so that a page can be turned when that row is gone. It
 * says of which list and in which order it is: turning a page of another is refused instead of answered wrongly.
 */
export interface ListOrder {
  readonly table: PublicTable;
  readonly field: SortField;
  readonly direction: SortDirection;
}

const FORMAT = 1;
const MAX_CHARACTERS = 1_024;
const schema = z.tuple([
  z.literal(FORMAT),
  z.string(),
  z.string(),
  z.string(),
  z.string(),
  z.string().max(64),
]);

export function encodePageCursor({ table, field, direction }: ListOrder, place: Keyset): string {
  const value = place.value instanceof Date ? place.value.toISOString() : place.value;
  return Buffer.from(JSON.stringify([FORMAT, table, field, direction, value, place.id])).toString(
    'base64url',
  );
}

/** Undefined for what is no cursor of ours, or one of another list or order. */
export function decodePageCursor(text: string, order: ListOrder): Keyset | undefined {
  if (text.length > MAX_CHARACTERS || !/^[\w-]+$/.test(text)) return undefined;
  const parsed = schema.safeParse(jsonOf(Buffer.from(text, 'base64url').toString()));
  if (!parsed.success) return undefined;
  const [, table, field, direction, value, id] = parsed.data;
  // NUL and half characters: the database would refuse the query as a whole.
  if (!storable(value) || !storable(id)) return undefined;
  if (table !== order.table || field !== order.field || direction !== order.direction) return undefined;
  if (field === 'name') return { value, id };
  const moment = parseMoment(value);
  return moment && { value: moment, id };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // what does not parse is no cursor
  }
}
