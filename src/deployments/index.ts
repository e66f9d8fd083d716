export { deploymentCommands, type DeploymentCommands } from './commands.js';
export { checkLifecycle, DEPLOYMENT_PHASES } from './lifecycle.js';
export { checkStoredPhases, deploymentsPurgeUnchecked } from './store.js';
