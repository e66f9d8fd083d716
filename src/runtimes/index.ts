export { runtimeCommands, type RuntimeCommands } from './commands.js';
export { runtimeFilterSchema } from './filter.js';
export { drivenByClients, notDrivenByClients, RUNTIME_TYPES } from './model.js';
export { runtimesWanted } from './reads.js';
export {
  runtimeFinish,
  runtimeReadReferred,
  runtimesPurgeUnchecked,
  runtimesSweepUnchecked,
  runtimeTypes,
  type RuntimeRef,
} from './store.js';
