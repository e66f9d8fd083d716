import type { DeploymentRow } from '../store/rows.js';
import type { DeploymentState, DeploymentStatus } from './model.js';

/**
 * What a status write leaves behind, for the cache and the next decision. Written out by name: copies of objects with so many fields
 * cost more than all that a patch decides.
 */
export function rowWithStatus(from: DeploymentRow, status: DeploymentStatus, updatedAt: Date): DeploymentRow {
  const row = {
    id: from.id,
    namespace: from.namespace,
    name: from.name,
    app: from.app,
    origin: from.origin,
    runtimeId: from.runtimeId,
    labels: from.labels,
    generation: from.generation,
    desiredState: from.desiredState,
    env: from.env,
    runtimeConfig: from.runtimeConfig,
    phase: status.phase,
    conditions: status.conditions,
    observedGeneration: status.observedGeneration,
    observedRuntime: status.observedRuntime,
    environmentInfo: status.environmentInfo,
    error: status.error,
    currentReleaseId: status.currentReleaseId,
    targetReleaseId: status.targetReleaseId,
    retryRequested: status.retryRequested,
    protocolVersion: from.protocolVersion,
    deletionRequestedAt: from.deletionRequestedAt,
    deletedAt: status.deletedAt,
    version: from.version + 1,
    createdAt: from.createdAt,
    updatedAt,
  } satisfies Record<keyof DeploymentRow, unknown>;
  return row as unknown as DeploymentRow; // JSON as it was written is JSON as it is read
}

export function stateWithStatus(from: DeploymentState, status: DeploymentStatus): DeploymentState {
  return {
    phase: status.phase,
    conditions: status.conditions,
    observedGeneration: status.observedGeneration,
    observedRuntime: status.observedRuntime,
    environmentInfo: status.environmentInfo,
    error: status.error,
    currentReleaseId: status.currentReleaseId,
    targetReleaseId: status.targetReleaseId,
    retryRequested: status.retryRequested,
    deletedAt: status.deletedAt,
    desiredState: from.desiredState,
    env: from.env,
    runtimeConfig: from.runtimeConfig,
    labels: from.labels,
    generation: from.generation,
    protocolVersion: from.protocolVersion,
    deletionRequestedAt: from.deletionRequestedAt,
  };
}
