import type { z } from 'zod';

import { done, invalidInput, type Failure, type InputIssue, type Outcome } from './failure.js';

/** Issues that one answer names; an input with more is told the first ones. */
export const INPUT_ISSUES_MAX = 100;

/** The input as its schema gives it, or every issue with its path below `input`. */
export function parseInput<S extends z.ZodType>(
  schema: S,
  input: unknown,
): Outcome<z.output<S>, Failure<never> & { kind: 'InvalidInput' }> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return done(parsed.data);
  return invalidInput(parsed.error.issues.slice(0, INPUT_ISSUES_MAX).flatMap(issuesOf));
}

function issuesOf(issue: z.core.$ZodIssue): InputIssue[] {
  const path = ['input', ...issue.path.map(String)];
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...path, key], message: 'is not a field of this input' }));
  }
  return [{ path, message: issue.message }];
}
