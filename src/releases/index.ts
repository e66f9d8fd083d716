export type { ReleaseCommands } from './commands.js';
export { releaseFilterSchema, type ReleaseFilter, type ReleasePredicate } from './filter.js';
export type { ReleaseResource, ReleaseSource } from './model.js';
export { releaseWhere } from './reads.js';
