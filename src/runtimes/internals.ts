import { z } from 'zod';

/** What controllers must remember about a runtime and no user may see. Every field has a default. */
const fields = {
  /** The host whose replica alone works on this runtime. */
  host: z.string().max(255).nullable(),
  /** ISO 8601; when the runtime last answered a poll. */
  lastPolledAt: z.iso.datetime().nullable(),
  pollFailures: z.int().min(0),
};

export const runtimeInternalSchema = z.object({
  host: fields.host.default(null),
  lastPolledAt: fields.lastPolledAt.default(null),
  pollFailures: fields.pollFailures.default(0),
});
export type RuntimeInternal = z.output<typeof runtimeInternalSchema>;

/** Named fields only: what is not named stays. No defaults, or a patch of one field would reset the others. */
export const runtimeInternalPatchSchema = z
  .strictObject(fields)
  .partial()
  .refine((patch) => Object.values(patch).some((value) => value !== undefined), {
    error: 'must name a field',
  });
export type RuntimeInternalPatch = z.input<typeof runtimeInternalPatchSchema>;
