import { z } from 'zod';

import { absentAsUndefined, idempotencyKeySchema, namespaceFieldSchema } from '../kernel/input-fields.js';
import { jsonObjectSchema } from '../kernel/json.js';
import { nameSchema } from '../kernel/names.js';
import { textSchema } from '../kernel/text.js';
import { RESOURCE_LIFECYCLES, RESCHEDULES, resourceProblems } from './model.js';

export const RESOURCES_MAX = 100;
export const RESOURCE_SPEC_MAX_BYTES = 65_536;
/** All resources of one release together: a release is read whole by whoever carries it out. */
const RESOURCES_MAX_BYTES = 1_048_576;
export const LABEL_MAX = 128;

const sourceFact = textSchema(1024)
  .nullish()
  .transform((fact) => fact ?? null);

const resourceSchema = z.strictObject({
  name: nameSchema,
  serviceType: nameSchema,
  spec: absentAsUndefined(jsonObjectSchema(RESOURCE_SPEC_MAX_BYTES)).transform((spec) => spec ?? {}),
  requires: absentAsUndefined(z.array(nameSchema).max(RESOURCES_MAX)).transform((names) => names ?? []),
  lifecycle: z
    .enum(RESOURCE_LIFECYCLES)
    .nullish()
    .transform((lifecycle) => lifecycle ?? 'LIVE'),
  reschedule: z
    .enum(RESCHEDULES)
    .nullish()
    .transform((reschedule) => reschedule ?? 'NEVER'),
});

export const createReleaseSchema = z.strictObject({
  namespace: namespaceFieldSchema,
  app: nameSchema,
  label: z.string().regex(/^[A-Za-z0-9]([A-Za-z0-9._+-]{0,126}[A-Za-z0-9])?$/, {
    error: `must be 1 to ${LABEL_MAX} letters, digits or \`.\`, \`_\`, \`+\`, \`-\`, with a letter or digit at both ends`,
  }),
  description: absentAsUndefined(textSchema(4096)),
  resources: z
    .array(resourceSchema)
    .min(1, { error: 'must have at least 1 resource' })
    .max(RESOURCES_MAX, { error: `must have at most ${RESOURCES_MAX} resources` })
    .check((context) => {
      for (const { path, message } of resourceProblems(context.value)) {
        context.issues.push({ code: 'custom', path: [...path], message, input: undefined });
      }
      if (Buffer.byteLength(JSON.stringify(context.value)) > RESOURCES_MAX_BYTES) {
        const message = `must have at most ${RESOURCES_MAX_BYTES} bytes as JSON`;
        context.issues.push({ code: 'custom', message, input: undefined });
      }
    }),
  source: z
    .strictObject({
      sha: sourceFact,
      branch: sourceFact,
      repository: sourceFact,
      dirty: z
        .boolean()
        .nullish()
        .transform((dirty) => dirty ?? null),
      message: textSchema(4096)
        .nullish()
        .transform((message) => message ?? null),
      author: sourceFact,
    })
    .nullish(),
  idempotencyKey: idempotencyKeySchema,
});

export type CreateReleaseInput = z.input<typeof createReleaseSchema>;
