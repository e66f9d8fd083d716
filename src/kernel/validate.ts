import type { z } from 'zod';

import { done, invalidInput, type Failure, type InputIssue, type Outcome } from './failure.js';

/** At most so many issues are told of one input; the rest would only repeat them. */
const ISSUES_MAX = 20;

/** What `schema` makes of an operation's input, or InvalidInput with a path for each issue. Never throws. */
export function validated<T>(
  schema: z.ZodType<T>,
  input: unknown,
  path: readonly string[] = ['input'],
): Outcome<T, Failure<never> & { kind: 'InvalidInput' }> {
  const result = schema.safeParse(input);
  if (result.success) return done(result.data);
  return invalidInput(result.error.issues.flatMap((issue) => issuesOf(issue, path)).slice(0, ISSUES_MAX));
}

function issuesOf(issue: z.core.$ZodIssue, base: readonly string[]): InputIssue[] {
  const path = [...base, ...issue.path.map(String)];
  // Told by the path of each key, as every other issue is.
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...path, key], message: 'is not a field here' }));
  }
  return [{ path, message: issue.message }];
}
