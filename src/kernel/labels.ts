import { z } from 'zod';

export const LABELS_MAX = 64;
const KEY_PATTERN =
  /^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;
const VALUE_PATTERN = /^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$/;

export type Labels = Readonly<Record<string, string>>;

export const labelKeySchema = z.string().regex(KEY_PATTERN, {
  error: 'must be a label key: 1 to 63 letters, digits, `-`, `_`, `.`, with an optional DNS prefix and `/`',
});
export const labelValueSchema = z.string().regex(VALUE_PATTERN, {
  error: 'must be a label value: at most 63 letters, digits, `-`, `_`, `.`, letter or digit at both ends',
});

export const labelsSchema = z
  .record(labelKeySchema, labelValueSchema)
  .refine((labels) => Object.keys(labels).length <= LABELS_MAX, {
    error: `must have at most ${LABELS_MAX} labels`,
  });

/** One requirement of a selector, as in Kubernetes. Absent keys match NOT_IN and NOT_EXISTS. */
export interface LabelRequirement {
  readonly key: string;
  readonly operator: 'IN' | 'NOT_IN' | 'EXISTS' | 'NOT_EXISTS';
  /** For IN and NOT_IN: 1 to 100 values. Empty otherwise. */
  readonly values: readonly string[];
}

export function labelsMatch(labels: Labels, requirement: LabelRequirement): boolean {
  const present = Object.hasOwn(labels, requirement.key);
  const value = present ? labels[requirement.key] : undefined;
  switch (requirement.operator) {
    case 'EXISTS':
      return present;
    case 'NOT_EXISTS':
      return !present;
    case 'IN':
      return value !== undefined && requirement.values.includes(value);
    case 'NOT_IN':
      return value === undefined || !requirement.values.includes(value);
  }
}
