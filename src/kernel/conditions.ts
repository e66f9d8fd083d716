import { z } from 'zod';

import { cutToBytes, reasonSchema, textSchema } from './text.js';

/**
 * Typed observations, as in Kubernetes. They merge by type: a report replaces the conditions it names and leaves the
 * others. `lastTransitionAt` moves only when the status flips.
 */
export const CONDITION_STATUSES = ['TRUE', 'FALSE', 'UNKNOWN'] as const;
export type ConditionStatus = (typeof CONDITION_STATUSES)[number];

export interface Condition {
  readonly type: string;
  readonly status: ConditionStatus;
  readonly reason: string;
  readonly message: string;
  /** ISO 8601, UTC, milliseconds: conditions are stored as JSON. */
  readonly lastTransitionAt: string;
  /** The generation that the observation is about. */
  readonly observedGeneration: number;
}

/** As reported. Without a generation it is about the one that the whole report is about. */
export interface ReportedCondition {
  readonly type: string;
  readonly status: ConditionStatus;
  readonly reason: string;
  readonly message?: string | undefined;
  readonly observedGeneration?: number | undefined;
}

/** Types of conditions that one object may have; a report that would pass it is refused. */
export const CONDITIONS_MAX = 32;
export const MESSAGE_MAX_BYTES = 4096;
/** What a caller may send; beyond MESSAGE_MAX_BYTES it is cut, not refused, so that no failure goes unreported. */
export const MESSAGE_INPUT_MAX = 65_536;

export const generationSchema = z.int().min(0).max(2_147_483_647);

const reportedConditionSchema = z.strictObject({
  type: reasonSchema,
  status: z.enum(CONDITION_STATUSES),
  reason: reasonSchema,
  message: textSchema(MESSAGE_INPUT_MAX)
    .nullish()
    .transform((text) => text ?? undefined),
  observedGeneration: generationSchema.nullish().transform((generation) => generation ?? undefined),
});

export const reportedConditionsSchema = z
  .array(reportedConditionSchema)
  .max(CONDITIONS_MAX, { error: `must have at most ${CONDITIONS_MAX} conditions` })
  .refine((conditions) => new Set(conditions.map((condition) => condition.type)).size === conditions.length, {
    error: 'must name each condition type once',
  });

/** As stored. Fields that a later version may add are ignored. */
export const storedConditionsSchema = z.array(
  z.object({
    type: z.string(),
    status: z.enum(CONDITION_STATUSES),
    reason: z.string().default(''),
    message: z.string().default(''),
    lastTransitionAt: z.string(),
    observedGeneration: z.number().default(0),
  }),
);

/**
 * The conditions after a report about `observedGeneration`. Order is that of first appearance, so equal content is
 * equal JSON. A condition's own generation never goes back.
 */
export function mergeConditions(
  current: readonly Condition[],
  reported: readonly ReportedCondition[],
  observedGeneration: number,
  now: Date,
): readonly Condition[] {
  if (reported.length === 0) return current;
  const merged = new Map(current.map((condition) => [condition.type, condition]));
  for (const report of reported) {
    const known = merged.get(report.type);
    merged.set(report.type, {
      type: report.type,
      status: report.status,
      reason: report.reason,
      message: cutToBytes(report.message ?? '', MESSAGE_MAX_BYTES),
      lastTransitionAt: known?.status === report.status ? known.lastTransitionAt : now.toISOString(),
      observedGeneration: Math.max(
        report.observedGeneration ?? observedGeneration,
        known?.observedGeneration ?? 0,
      ),
    });
  }
  return [...merged.values()];
}
