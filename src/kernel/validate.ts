import type { z } from 'zod';

import { done, invalidInput, type Failure, type Outcome } from './failure.js';

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
  return invalidInput(
    result.error.issues.slice(0, ISSUES_MAX).map((issue) => ({
      path: [...path, ...issue.path.map(String)],
      message: issue.message,
    })),
  );
}
