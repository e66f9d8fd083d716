import { z } from 'zod';

/**
 * Text that every store can hold: PostgreSQL refuses NUL, and neither UTF-8 nor jsonb can carry half a surrogate pair.
 */
const UNSTORABLE = /[\0\p{Cs}]/u;

export function storable(text: string): boolean {
  return !UNSTORABLE.test(text);
}

/** Free text of at most `max` UTF-16 units. */
export function textSchema(max: number, min = 0) {
  return z
    .string()
    .min(min, { error: `must have at least ${min} characters` })
    .max(max, { error: `must have at most ${max} characters` })
    .refine(storable, { error: 'must be well-formed Unicode without NUL' });
}

/** Names of reasons and types, as machines read them: `ProgressDeadlineExceeded`. */
const REASON_MAX = 128;
export const reasonSchema = z.string().regex(/^[A-Za-z][A-Za-z0-9_]{0,127}$/, {
  error: `must be 1 to ${REASON_MAX} letters, digits or \`_\`, beginning with a letter`,
});

/** The longest prefix of `text` that has at most `maxBytes` bytes of UTF-8 and ends at a character boundary. */
export function cutToBytes(text: string, maxBytes: number): string {
  // No UTF-16 unit takes more than three bytes, so most texts need no count.
  if (text.length * 3 <= maxBytes) return text;
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length <= maxBytes) return text;
  let end = maxBytes;
  // 10xxxxxx continues a character: step back to where one begins.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.toString('utf8', 0, end);
}
