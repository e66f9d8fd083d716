import { z } from 'zod';

import { storedObjectSchema } from '../kernel/json.js';

/**
 * What controllers must remember about a deployment and no user may see. Every field has a default, so that a row from
 * before the field was added loads.
 */
const text = z.string().max(1024).nullable();
const stack = storedObjectSchema.nullable();

const fields = {
  /** The identity that the provider gave: removal goes by it, never by configuration that may have changed since. */
  runtimeId: text,
  runtimeName: text,
  runtimeResourceId: text,
  runtimeNamespace: text,
  /** The identity that the workload presents. */
  actorSubject: text,
  appProtocol: text,
  lastAppliedFingerprint: text,
  /** The force request that was honoured already. */
  lastForceToken: text,
  /** Successful polls in a row that did not see the workload. */
  discoveryMisses: z.int().min(0),
  preparedStack: stack,
  pendingPreparedStack: stack,
  lastSyncedEnvHash: text,
  /** Names only: what is removed from the environment is deleted by its recorded name. */
  lastSyncedSecretNames: z.array(z.string().max(255)).max(256),
  accessGranted: z.boolean(),
};

export const deploymentInternalSchema = z.object({
  runtimeId: fields.runtimeId.default(null),
  runtimeName: fields.runtimeName.default(null),
  runtimeResourceId: fields.runtimeResourceId.default(null),
  runtimeNamespace: fields.runtimeNamespace.default(null),
  actorSubject: fields.actorSubject.default(null),
  appProtocol: fields.appProtocol.default(null),
  lastAppliedFingerprint: fields.lastAppliedFingerprint.default(null),
  lastForceToken: fields.lastForceToken.default(null),
  discoveryMisses: fields.discoveryMisses.default(0),
  preparedStack: fields.preparedStack.default(null),
  pendingPreparedStack: fields.pendingPreparedStack.default(null),
  lastSyncedEnvHash: fields.lastSyncedEnvHash.default(null),
  lastSyncedSecretNames: fields.lastSyncedSecretNames.default([]),
  accessGranted: fields.accessGranted.default(false),
});
export type DeploymentInternal = z.output<typeof deploymentInternalSchema>;

/** Named fields only: what is not named stays. No defaults, or a patch of one field would reset the others. */
export const deploymentInternalPatchSchema = z
  .strictObject(fields)
  .partial()
  .refine((patch) => Object.values(patch).some((value) => value !== undefined), {
    error: 'must name a field',
  });
export type DeploymentInternalPatch = z.input<typeof deploymentInternalPatchSchema>;
