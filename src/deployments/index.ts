export {
  deploymentCommands,
  type AppliedDeployment,
  type ApplyOutcome,
  type ApplyResult,
  type DeploymentCommands,
  type DeploymentDeps,
  type DeploymentOutcome,
} from './commands.js';
export { deploymentFilterSchema, type DeploymentFilter, type DeploymentPredicate } from './filter.js';
export { DELETE_MODES, type DeleteMode } from './input.js';
export { checkLifecycle, DEPLOYMENT_PHASES, LIFECYCLE, rulesOf, type DeploymentPhase } from './lifecycle.js';
export { blockedBy, canDelete, canRetry, DEPLOYMENT_ORIGINS, DESIRED_STATES, summarise } from './model.js';
export { deploymentWhere } from './reads.js';
export { checkStoredPhases, deploymentsPurgeUnchecked } from './store.js';
