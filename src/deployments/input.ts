import { z } from 'zod';

import {
  generationSchema,
  MESSAGE_INPUT_MAX,
  MESSAGE_MAX_BYTES,
  reportedConditionsSchema,
} from '../kernel/conditions.js';
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
import { deploymentPhaseSchema } from './lifecycle.js';

/** What the commands of deployments take. Strict and bounded: no field through which an internal fact could be set. */
export const ENV_MAX = 256;
const ENV_VALUE_MAX = 32_768;
const RUNTIME_CONFIG_MAX_BYTES = 65_536;
export const FACT_MAX = 1024;

const id = idSchema('DEPLOYMENT');
const factSchema = textSchema(FACT_MAX)
  .nullish()
  .transform((fact) => fact ?? null);

const observedRuntimeSchema = z.strictObject({
  id: factSchema,
  name: factSchema,
  resourceId: factSchema,
  endpoint: factSchema,
});

const environmentInfoSchema = z.strictObject({
  provider: factSchema,
  account: factSchema,
  region: factSchema,
  location: factSchema,
  hostname: factSchema,
  os: factSchema,
  arch: factSchema,
});

const deploymentErrorSchema = z.strictObject({
  code: reasonSchema,
  message: textSchema(MESSAGE_INPUT_MAX),
  retryable: z
    .boolean()
    .nullish()
    .transform((retryable) => retryable ?? true),
});

/** Absent leaves a fact as it is; null clears `runtime`, `environmentInfo` and `error`. */
export const patchDeploymentStatusSchema = z.strictObject({
  id,
  expectedVersion: versionSchema,
  observedGeneration: absentAsUndefined(generationSchema),
  phase: absentAsUndefined(deploymentPhaseSchema),
  conditions: absentAsUndefined(reportedConditionsSchema),
  runtime: observedRuntimeSchema.nullish(),
  environmentInfo: environmentInfoSchema.nullish(),
  error: deploymentErrorSchema.nullish(),
  reason: absentAsUndefined(reasonSchema),
  message: absentAsUndefined(textSchema(MESSAGE_INPUT_MAX)),
  idempotencyKey: idempotencyKeySchema,
});

const envSchema = z
  .array(
    z
      .strictObject({
        name: z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,254}$/, {
          error:
            'must be the name of an environment variable: at most 255 letters, digits or `_`, no digit first',
        }),
        value: absentAsUndefined(textSchema(ENV_VALUE_MAX)),
        secretValue: absentAsUndefined(z.string()),
      })
      .check((context) => {
        const { value, secretValue } = context.value;
        if (secretValue !== undefined) {
          // Never echo the value: `input` of an issue may be logged.
          const message = 'is refused: runtimes of type `external` take no secret values';
          context.issues.push({ code: 'custom', path: ['secretValue'], message, input: undefined });
        } else if (value === undefined) {
          context.issues.push({
            code: 'custom',
            path: ['value'],
            message: 'must be given',
            input: undefined,
          });
        }
      })
      .transform(({ name, value }) => ({ name, value: value ?? '' })),
  )
  .max(ENV_MAX, { error: `must have at most ${ENV_MAX} variables` })
  .refine((env) => new Set(env.map((variable) => variable.name)).size === env.length, {
    error: 'must name each variable once',
  })
  // The order of variables means nothing: sorted, equal content is equal JSON.
  .transform((env) => [...env].sort((a, b) => (a.name < b.name ? -1 : 1)));

/** By id, or by name in the deployment's namespace: exactly one. */
const runtimeRefSchema = z
  .strictObject({ id: absentAsUndefined(idSchema('RUNTIME')), name: absentAsUndefined(nameSchema) })
  .refine((ref) => (ref.id === undefined) !== (ref.name === undefined), {
    error: 'must have either `id` or `name`',
  });

/** By id, or by app and label in the deployment's namespace; the app may be left to the deployment's. */
const releaseRefSchema = z
  .strictObject({
    id: absentAsUndefined(idSchema('RELEASE')),
    app: absentAsUndefined(nameSchema),
    label: absentAsUndefined(textSchema(128, 1)),
  })
  .refine((ref) => (ref.id === undefined) !== (ref.label === undefined), {
    error: 'must have either `id` or `label`',
  })
  .refine((ref) => ref.id === undefined || ref.app === undefined, {
    error: 'must not have both `id` and `app`',
  });

/** Everything but the writing; a key for repeating is of no use then, and is not looked at. */
/** Said to be off, it is as if it were not there: for keys of repetition too. */
const dryRunField = {
  dryRun: absentAsUndefined(z.boolean()).transform((dryRun) => (dryRun === true ? true : undefined)),
};

/** Creates or updates by name. On update, what is absent stays as it is; on create, runtime and release are needed. */
export const applyDeploymentSchema = z.strictObject({
  namespace: namespaceFieldSchema,
  name: nameSchema,
  app: absentAsUndefined(nameSchema),
  runtime: absentAsUndefined(runtimeRefSchema),
  release: absentAsUndefined(releaseRefSchema),
  labels: absentAsUndefined(labelsSchema),
  env: absentAsUndefined(envSchema),
  runtimeConfig: absentAsUndefined(jsonObjectSchema(RUNTIME_CONFIG_MAX_BYTES)),
  expectedVersion: expectedVersionSchema,
  reason: absentAsUndefined(reasonSchema),
  message: absentAsUndefined(textSchema(MESSAGE_INPUT_MAX)),
  idempotencyKey: idempotencyKeySchema,
  ...dryRunField,
});

const intentFields = {
  id,
  expectedVersion: expectedVersionSchema,
  reason: absentAsUndefined(reasonSchema),
  message: absentAsUndefined(textSchema(MESSAGE_INPUT_MAX)),
  idempotencyKey: idempotencyKeySchema,
};
export const undeployDeploymentSchema = z.strictObject(intentFields);
export const retryDeploymentSchema = z.strictObject(intentFields);

/**
 * DELETE removes what runs, then the record. DETACH leaves what runs and drops the record (OPERATOR). FORGET drops the
 * record of what can never be removed (ADMIN).
 */
export const DELETE_MODES = ['DELETE', 'DETACH', 'FORGET'] as const;
export type DeleteMode = (typeof DELETE_MODES)[number];
export const deleteDeploymentSchema = z.strictObject({
  ...intentFields,
  mode: z
    .enum(DELETE_MODES)
    .nullish()
    .transform((mode) => mode ?? 'DELETE'),
});

const sourceFact = textSchema(FACT_MAX)
  .nullish()
  .transform((fact) => fact ?? null);
/** Where what is rolled out was built from, as whoever built it says. */
const rolloutSourceSchema = z.strictObject({
  sha: sourceFact,
  branch: sourceFact,
  repository: sourceFact,
  dirty: z
    .boolean()
    .nullish()
    .transform((dirty) => dirty ?? null),
  message: textSchema(MESSAGE_MAX_BYTES)
    .nullish()
    .transform((message) => message ?? null),
  author: sourceFact,
});
const attemptFields = {
  source: absentAsUndefined(rolloutSourceSchema),
  logUrl: absentAsUndefined(
    textSchema(2048).refine((url) => /^https?:\/\//.test(url) && URL.canParse(url), {
      error: 'must be a URL that begins with `http://` or `https://`',
    }),
  ),
};
export const deployReleaseSchema = z.strictObject({
  ...intentFields,
  ...attemptFields,
  ...dryRunField,
  release: releaseRefSchema,
});
/** To what ran before, unless it names a rollout of the deployment or a release. */
export const rollbackDeploymentSchema = z
  .strictObject({
    ...intentFields,
    ...attemptFields,
    ...dryRunField,
    rolloutId: absentAsUndefined(idSchema('ROLLOUT')),
    release: absentAsUndefined(releaseRefSchema),
  })
  .refine((input) => input.rolloutId === undefined || input.release === undefined, {
    error: 'must not have both `rolloutId` and `release`',
  });
export const FORCE_TOKEN_MAX = 128;
export const reapplyDeploymentSchema = z.strictObject({
  ...intentFields,
  forceToken: absentAsUndefined(textSchema(FORCE_TOKEN_MAX, 1)),
});

// Rollouts that their client drives -----------------------------------------------------------------------------------
const rolloutFields = {
  id: idSchema('ROLLOUT'),
  expectedVersion: expectedVersionSchema,
  idempotencyKey: idempotencyKeySchema,
};
export const beginRolloutSchema = z.strictObject({ ...intentFields, ...attemptFields });
/** What every mutation of a rollout names. */
export const rolloutSchema = z.strictObject(rolloutFields);
export const activateRolloutSchema = z.strictObject({
  ...rolloutFields,
  release: releaseRefSchema,
  reason: absentAsUndefined(reasonSchema),
  message: absentAsUndefined(textSchema(MESSAGE_INPUT_MAX)),
});
export const failRolloutSchema = z.strictObject({
  ...rolloutFields,
  code: absentAsUndefined(reasonSchema),
  message: textSchema(MESSAGE_INPUT_MAX, 1),
});
export const cancelRolloutSchema = z.strictObject({
  ...rolloutFields,
  message: absentAsUndefined(textSchema(MESSAGE_INPUT_MAX)),
});

export type DeployReleaseInput = z.input<typeof deployReleaseSchema>;
export type RollbackDeploymentInput = z.input<typeof rollbackDeploymentSchema>;
export type ReapplyDeploymentInput = z.input<typeof reapplyDeploymentSchema>;
export type BeginRolloutInput = z.input<typeof beginRolloutSchema>;
export type ActivateRolloutInput = z.input<typeof activateRolloutSchema>;
export type FailRolloutInput = z.input<typeof failRolloutSchema>;
export type CancelRolloutInput = z.input<typeof cancelRolloutSchema>;
export type PatchDeploymentStatus = z.output<typeof patchDeploymentStatusSchema>;
export type ApplyDeployment = z.output<typeof applyDeploymentSchema>;
export type PatchDeploymentStatusInput = z.input<typeof patchDeploymentStatusSchema>;
export type ApplyDeploymentInput = z.input<typeof applyDeploymentSchema>;
export type UndeployDeploymentInput = z.input<typeof undeployDeploymentSchema>;
export type RetryDeploymentInput = z.input<typeof retryDeploymentSchema>;
export type DeleteDeploymentInput = z.input<typeof deleteDeploymentSchema>;
