import { IDEMPOTENCY_KEY_MAX } from '../kernel/input-fields.js';

/** Descriptions of input fields that many mutations share. */
export const INPUT_WORDS = {
  reason: 'Why, for machines: 1 to 128 letters, digits or `_`; stands in the change log. Null: nothing said.',
  message: 'Why, for people; stands in the change log, cut beyond 4 KiB. Null: nothing said.',
  idempotencyKey: `Makes repeating safe: for 24 hours the same key with the same input gives the first result again. At most ${IDEMPOTENCY_KEY_MAX} characters, kept per caller. Null: not repeatable.`,
  expectedVersion: 'Only if the object is at this version. Null: whatever it is now.',
  dryRun:
    'Whether to answer with what would be, and write nothing; `idempotencyKey` is not looked at then. Null: false.',
} as const;
