import type { DeploymentPhase } from './generated/graphql.js';

/** Where a wait can end. */
export type DeploymentGoal = 'RUNNING' | 'UNDEPLOYED' | 'DELETED';

/**
 * What a phase means to somebody who waits for a goal: `reached`, `failed` (nothing more happens by itself), `elsewhere`
 * (settled, or on the way to something that excludes the goal), `working`.
 */
export type PhaseMeaning = 'reached' | 'failed' | 'elsewhere' | 'working';

type Meanings = Readonly<Record<DeploymentGoal, PhaseMeaning>>;
const towards = (RUNNING: PhaseMeaning, UNDEPLOYED: PhaseMeaning, DELETED: PhaseMeaning): Meanings => ({
  RUNNING,
  UNDEPLOYED,
  DELETED,
});

/** Total over the server's phases: one that is new does not compile until its meaning is decided. */
export const PHASE_MEANINGS: Readonly<Record<DeploymentPhase, Meanings>> = {
  PENDING: towards('working', 'elsewhere', 'elsewhere'),
  PREFLIGHTS_FAILED: towards('failed', 'elsewhere', 'elsewhere'),
  INITIAL_SETUP: towards('working', 'elsewhere', 'elsewhere'),
  INITIAL_SETUP_FAILED: towards('failed', 'elsewhere', 'elsewhere'),
  PROVISIONING: towards('working', 'elsewhere', 'elsewhere'),
  PROVISIONING_FAILED: towards('failed', 'elsewhere', 'elsewhere'),
  WAITING_FOR_AGENTS: towards('working', 'elsewhere', 'elsewhere'),
  RUNNING: towards('reached', 'elsewhere', 'elsewhere'),
  REFRESH_FAILED: towards('failed', 'elsewhere', 'elsewhere'),
  UPDATE_PENDING: towards('working', 'elsewhere', 'elsewhere'),
  UPDATING: towards('working', 'elsewhere', 'elsewhere'),
  UPDATE_FAILED: towards('failed', 'elsewhere', 'elsewhere'),
  UNDEPLOYING: towards('elsewhere', 'working', 'elsewhere'),
  UNDEPLOY_FAILED: towards('elsewhere', 'failed', 'elsewhere'),
  UNDEPLOYED: towards('elsewhere', 'reached', 'elsewhere'),
  DELETE_PENDING: towards('elsewhere', 'elsewhere', 'working'),
  DELETING: towards('elsewhere', 'elsewhere', 'working'),
  DELETE_FAILED: towards('elsewhere', 'elsewhere', 'failed'),
  TEARDOWN_REQUIRED: towards('elsewhere', 'elsewhere', 'failed'),
  TEARDOWN_FAILED: towards('elsewhere', 'elsewhere', 'failed'),
  DELETED: towards('elsewhere', 'elsewhere', 'reached'),
  ERROR: towards('failed', 'failed', 'failed'),
};

/** The facts of a deployment that a wait goes by. */
export interface WaitedDeployment {
  readonly generation: number;
  readonly status: { readonly phase: DeploymentPhase; readonly observedGeneration: number };
}

export function meaningFor(goal: DeploymentGoal, deployment: WaitedDeployment): PhaseMeaning {
  const meaning = PHASE_MEANINGS[deployment.status.phase][goal];
  // Running an older specification than the one that is wanted: not there yet.
  const current = deployment.status.observedGeneration >= deployment.generation;
  return meaning === 'reached' && goal === 'RUNNING' && !current ? 'working' : meaning;
}
