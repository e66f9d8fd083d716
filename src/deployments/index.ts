export type { AppliedDeployment, ApplyResult, DeploymentCommands, DeploymentOutcome } from './commands.js';
export { deploymentFilterSchema, type DeploymentFilter, type DeploymentPredicate } from './filter.js';
export { checkLifecycle, DEPLOYMENT_PHASES, LIFECYCLE, type DeploymentPhase } from './lifecycle.js';
export { deploymentWhere } from './reads.js';
