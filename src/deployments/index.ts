export { deploymentCommands, type DeploymentCommands } from './commands.js';
export { deploymentFilterSchema, type DeploymentFilter } from './filter.js';
export { checkLifecycle, DEPLOYMENT_PHASES } from './lifecycle.js';
export type { EnvironmentInfo, ObservedRuntime } from './model.js';
export { deploymentsWanted } from './reads.js';
export { deploymentsPurgeUnchecked } from './store.js';
