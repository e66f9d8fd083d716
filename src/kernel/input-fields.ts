import { z } from 'zod';

import { DEFAULT_NAMESPACE, nameSchema } from './names.js';
import { textSchema } from './text.js';

/** Fields that inputs of many commands share. GraphQL clients send null for what they leave out: both mean absent. */
export function absentAsUndefined<S extends z.ZodType>(schema: S) {
  return schema.nullish().transform((value) => value ?? undefined);
}

/** A version or a generation as PostgreSQL's integer holds it. */
export const versionSchema = z.int().min(1).max(2_147_483_647);
export const expectedVersionSchema = absentAsUndefined(versionSchema);

export const IDEMPOTENCY_KEY_MAX = 255;
/** Per caller, for 24 hours: the same key with the same input gives the first result again. */
export const idempotencyKeySchema = absentAsUndefined(textSchema(IDEMPOTENCY_KEY_MAX, 1));

export const namespaceFieldSchema = nameSchema.nullish().transform((name) => name ?? DEFAULT_NAMESPACE);
