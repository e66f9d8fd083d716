import { z } from 'zod';

/** JSON columns of a deployment as they are read back. Lenient about what a newer version may add, strict about shape. */
const fact = z.string().nullable().default(null);

export const storedRuntimeSchema = z
  .object({ id: fact, name: fact, resourceId: fact, endpoint: fact })
  .nullable();

export const storedEnvironmentInfoSchema = z
  .object({
    provider: fact,
    account: fact,
    region: fact,
    location: fact,
    hostname: fact,
    os: fact,
    arch: fact,
  })
  .nullable();

export const storedErrorSchema = z
  .object({ code: z.string(), message: z.string(), retryable: z.boolean().default(true) })
  .nullable();

export const storedEnvSchema = z.array(z.object({ name: z.string(), value: z.string().default('') }));

export const storedLabelsSchema = z.record(z.string(), z.string());
