import type { DeploymentPhase } from '../../src/deployments/lifecycle.js';
import type { DeploymentState } from '../../src/deployments/model.js';

export const AT = new Date('2030-01-01T00:00:00.000Z');
export const LATER = new Date('2030-01-01T00:01:00.000Z');

/** A deployment in memory, in that phase, as consistent as the phase asks for. */
export function stateIn(phase: DeploymentPhase, more: Partial<DeploymentState> = {}): DeploymentState {
  const leaving = /^(DELET|TEARDOWN)/.test(phase);
  return {
    phase,
    conditions: [],
    observedGeneration: 0,
    observedRuntime: null,
    environmentInfo: null,
    error: null,
    currentReleaseId: null,
    targetReleaseId: 'rel_target',
    retryRequested: false,
    deletedAt: phase === 'DELETED' ? AT : null,
    desiredState: /^UNDEPLOY/.test(phase) ? 'UNDEPLOYED' : 'DEPLOYED',
    env: [],
    runtimeConfig: {},
    labels: {},
    generation: 1,
    protocolVersion: 1,
    deletionRequestedAt: leaving ? AT : null,
    ...more,
  };
}
