export { releaseCommands, type ReleaseCommands, type ReleaseDeps, type ReleaseOutcome } from './commands.js';
export { releaseFilterSchema, type ReleaseFilter, type ReleasePredicate } from './filter.js';
export { RESCHEDULES, RESOURCE_LIFECYCLES, type ReleaseResource, type ReleaseSource } from './model.js';
export { releaseWhere } from './reads.js';
export { releaseReadReferred, type ReleaseRef } from './store.js';
