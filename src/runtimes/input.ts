import { z } from 'zod';

import { generationSchema, MESSAGE_INPUT_MAX, reportedConditionsSchema } from '../kernel/conditions.js';
import { idSchema } from '../kernel/ids.js';
import {
  absentAsUndefined,
  expectedVersionSchema,
  idempotencyKeySchema,
  namespaceFieldSchema,
  versionSchema,
} from '../kernel/input-fields.js';
import { jsonObjectSchema } from '../kernel/json.js';
import { labelsSchema } from '../kernel/labels.js';
import { nameSchema } from '../kernel/names.js';
import { reasonSchema, textSchema } from '../kernel/text.js';
import { RUNTIME_TYPES } from './model.js';

const RUNTIME_CONFIG_MAX_BYTES = 65_536;

const id = idSchema('RUNTIME');
const environmentSchema = nameSchema.nullish();
const configSchema = jsonObjectSchema(RUNTIME_CONFIG_MAX_BYTES);
const said = {
  reason: absentAsUndefined(reasonSchema),
  message: absentAsUndefined(textSchema(MESSAGE_INPUT_MAX)),
};

export const createRuntimeSchema = z.strictObject({
  namespace: namespaceFieldSchema,
  name: nameSchema,
  type: z.enum(RUNTIME_TYPES, { error: `must be a known runtime type: ${RUNTIME_TYPES.join(', ')}` }),
  environment: environmentSchema,
  config: absentAsUndefined(configSchema),
  labels: absentAsUndefined(labelsSchema),
  idempotencyKey: idempotencyKeySchema,
});

/** What is absent stays as it is; null clears `environment`. Type, name and namespace never change. */
export const updateRuntimeSchema = z.strictObject({
  id,
  environment: environmentSchema,
  config: absentAsUndefined(configSchema),
  labels: absentAsUndefined(labelsSchema),
  expectedVersion: expectedVersionSchema,
  idempotencyKey: idempotencyKeySchema,
});

export const deleteRuntimeSchema = z.strictObject({ id, expectedVersion: expectedVersionSchema, ...said });

export const patchRuntimeStatusSchema = z.strictObject({
  id,
  expectedVersion: versionSchema,
  observedGeneration: absentAsUndefined(generationSchema),
  conditions: absentAsUndefined(reportedConditionsSchema),
  ...said,
  idempotencyKey: idempotencyKeySchema,
});

export type CreateRuntimeInput = z.input<typeof createRuntimeSchema>;
export type UpdateRuntimeInput = z.input<typeof updateRuntimeSchema>;
export type DeleteRuntimeInput = z.input<typeof deleteRuntimeSchema>;
export type PatchRuntimeStatusInput = z.input<typeof patchRuntimeStatusSchema>;
