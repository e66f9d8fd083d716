export type { RuntimeCommands, RuntimeOutcome } from './commands.js';
export { runtimeFilterSchema, type RuntimeFilter, type RuntimePredicate } from './filter.js';
export { drivenByClients, RUNTIME_TYPES } from './model.js';
export { runtimeWhere } from './reads.js';
