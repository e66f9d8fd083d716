import { z } from 'zod';

import { parseMoment } from '../kernel/clock.js';
import type { Keyset, SortField } from '../store/public-types.js';

/**
 * A page cursor carries the values of the row it was made from, so that a page can be turned when that row is gone. It
 * says by which field it was sorted: turning a page of another order is refused instead of answered wrongly.
 */
const FORMAT = 1;
const MAX_CHARACTERS = 1_024;
const schema = z.tuple([z.literal(FORMAT), z.enum(['createdAt', 'name']), z.string(), z.string().max(64)]);

export function encodePageCursor(field: SortField, place: Keyset): string {
  const value = place.value instanceof Date ? place.value.toISOString() : place.value;
  return Buffer.from(JSON.stringify([FORMAT, field, value, place.id])).toString('base64url');
}

/** Undefined for what is no cursor of ours, or one of another order. */
export function decodePageCursor(text: string, field: SortField): Keyset | undefined {
  if (text.length > MAX_CHARACTERS || !/^[\w-]+$/.test(text)) return undefined;
  const parsed = schema.safeParse(jsonOf(Buffer.from(text, 'base64url').toString()));
  if (!parsed.success || parsed.data[1] !== field) return undefined;
  const [, , value, id] = parsed.data;
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
