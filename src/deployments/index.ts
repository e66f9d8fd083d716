export { deploymentCommands, type DeploymentCommands } from './commands.js';
export { deploymentFilterSchema, type DeploymentFilter } from './filter.js';
export { checkLifecycle, DEPLOYMENT_PHASES, edgeOf, rulesOf, type DeploymentPhase } from './lifecycle.js';
export type { DeploymentError, DeploymentState } from './model.js';
export type { StatusReport } from './status.js';
export { deploymentsWanted } from './reads.js';
export { checkStoredPhases, deploymentsPurgeUnchecked } from './store.js';
