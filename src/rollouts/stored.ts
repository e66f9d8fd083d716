import { z } from 'zod';

/** What the jsonb columns of a rollout hold. */
export const storedRolloutErrorSchema = z.object({ code: z.string(), message: z.string() }).nullable();
