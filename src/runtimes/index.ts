export { runtimeCommands, type RuntimeCommands, type RuntimeDeps, type RuntimeOutcome } from './commands.js';
export { runtimeFilterSchema, type RuntimeFilter, type RuntimePredicate } from './filter.js';
export { drivenByClients, notDrivenByClients, RUNTIME_TYPES, type RuntimeType } from './model.js';
export { runtimeWhere } from './reads.js';
export {
  runtimeFinish,
  runtimeReadReferred,
  runtimesPurgeUnchecked,
  runtimesSweepUnchecked,
  runtimeTypes,
  type RuntimeRef,
} from './store.js';
