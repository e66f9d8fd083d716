import type { z } from 'zod';

import type { ObjectKind } from '../kernel/ids.js';

/**
 * What is stored of one object cannot be read: somebody wrote past the server, or a newer version did. It names the
 * object and the part, never a value, and stops only the operation on that object.
 */
export class MalformedObjectError extends Error {
  override readonly name = 'MalformedObjectError';
  readonly kind: ObjectKind;
  readonly objectId: string;
  readonly part: string;

  constructor(kind: ObjectKind, objectId: string, part: string, detail: string) {
    super(`${kind} ${objectId}: stored ${part} is malformed: ${detail}`);
    this.kind = kind;
    this.objectId = objectId;
    this.part = part;
  }
}

/** A stored part as its schema gives it. */
export function storedPart<T>(
  schema: z.ZodType<T>,
  kind: ObjectKind,
  objectId: string,
  part: string,
  value: unknown,
): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  // The path and the code say where to look; the message could repeat what is stored.
  throw new MalformedObjectError(
    kind,
    objectId,
    part,
    issue ? `${issue.path.join('.') || part} (${issue.code})` : 'unknown',
  );
}
